"""What the kinds make is English in the case of the text around it; where it would not be, the text is left alone."""

import re

import pytest

from elench.perturb import KINDS, Skipped, perturb
from elench.records.record import Record

CONTEXT = "Paris is the capital of France. Berlin is the capital of Germany. Marie Curie met Albert Einstein in 1911."
OTHER = "Honeybees keep their brood nest warm in winter by shivering together, and they cool it with water in summer."
SPACED = "A  bad   cat sat.\n\nA good dog ran  away."
CAPITALS = "THE BRIDGE WAS CLOSED ON MONDAY BY TWO MEN. HE WAS SAD."


def outcomes(kind, texts, seeds):
    """Every text and the set of what the seeds make of it (None: left alone), with the told place checked."""
    found = {text: set() for text in texts}
    records = [Record(text, context=CONTEXT, summary=text, judge="summary") for text in texts]
    others = [Record("other", context=OTHER, summary=OTHER, judge="summary")]
    for seed in seeds:
        for text, made in zip(texts, perturb(records + others, [kind], seed), strict=False):
            if isinstance(made, Skipped):
                assert made.reason == f"nothing for {kind} to change"
                found[text].add(None)
                continue
            told = made.extra["perturbed"]
            start, end = told["at"]
            assert text[start:end] == told["from"] and made.summary != text
            assert text[:start] + told["to"] + text[end:] == made.summary
            found[text].add(made.summary)
    return found


MADE = {
    "paraphrase-rules": {
        "How many of the 27 states joined in 1995?": None,
        "How many did he see?": None,
        "How many more people came?": None,
        "How many times bigger is it?": None,
        "How many people came?": "What number of people came?",
        "HOW MANY PEOPLE CAME?": "WHAT NUMBER OF PEOPLE CAME?",
        "Tell me how many old men came.": "Tell me what number of old men came.",
        "In what year of his reign did Albert Einstein die?": None,
        "In what year did Albert Einstein die?": "When did Albert Einstein die?",
        "In which country's capital did they meet?": None,
        "In which city hall did they meet?": None,
        "In which country did they meet?": "Where did they meet?",
        "It was not only cold but also wet.": None,
        "Nobody said anything.": None,
        "Who knows what is?": None,
        "Isn't there a dog?": None,
    },
    "negation": {
        "The bridge was closed. No man was hurt. Two men fled.": "The bridge was closed. Some man was hurt. Two men fled.",
        CAPITALS: CAPITALS.replace("BRIDGE WAS", "BRIDGE WASN'T"),
        "WHO BUILT THE EIFFEL TOWER IN PARIS?": None,
        "There is no one at home.": "There is someone at home.",
        "No one came.": "Someone came.",
        "NOBODY SAW HIM.": "SOMEBODY SAW HIM.",
        "Nobody said anything.": "Somebody said something.",
        "Neither he nor she went.": None,
        "Who said that he didn't see any dog?": "Who said that he did see some dog?",
        "He won't go any longer.": None,
        "He didn't go at all.": None,
        "It was not only cold but also wet.": None,
        "It was not him but her.": None,
        "They left. Never has he seen it.": "They didn't leave. Never has he seen it.",
        "They left. Don't go there.": "They left. Go there.",
        "No matter what, he came.": None,
        "There is nothing but rain.": None,
        "There's a dog.": None,
        "What would've happened?": None,
        "We discuss it.": "We don't discuss it.",
    },
    "pronoun-swap": {
        CAPITALS: CAPITALS.replace("HE WAS", "SHE WAS"),
        "😀 She is 5 years old.": "😀 He is 5 years old.",
        "It rained. She came.": "It rained. He came.",
        "Then I was born.": "Then you were born.",
        "It rained. I was sad.": "It rained. You were sad.",
    },
    "entity-swap": {
        "Marie Curie won in 1911.": "Albert Einstein won in 1911.",
    },
    "question-word": {
        "WHO BUILT THE EIFFEL TOWER IN PARIS?": "WHAT BUILT THE EIFFEL TOWER IN PARIS?",
        "How many of the 27 states joined in 1995?": None,
        "How many more people came?": None,
        "How many times bigger is it?": None,
        "How much did it cost?": None,
        "How good a player is he?": None,
        "How long does it take him to get there?": None,
        "What a nice day": None,
        "What about Paris?": None,
        "What happened at noon?": None,
        "What did John say about it?": None,
        "What else was found?": "Who else was found?",
    },
    "antonym": {
        "Let's travel to Paris.": None,
        "Which of these is right?": None,
        "Which of these is true?": "Which of these is false?",
        "It rained. A young woman came.": "It rained. An old woman came.",
        CAPITALS: CAPITALS.replace("CLOSED", "OPEN"),
    },
}
"""Kind → text → the one thing that can be made of it, whatever the seed."""


@pytest.mark.embedded
@pytest.mark.parametrize("kind", MADE)
def test_what_is_made_is_english_and_in_the_right_case(kind):
    assert outcomes(kind, list(MADE[kind]), range(2)) == {text: {wanted} for text, wanted in MADE[kind].items()}


@pytest.mark.embedded
def test_a_name_among_capitals_is_in_capitals():
    (made,) = outcomes("entity-swap", ["WHO BUILT THE EIFFEL TOWER IN PARIS?"], range(4)).values()
    assert made and all(other and other.isupper() for other in made)


NUMBERS = {
    "Where did twenty-two men live?": None,
    "Where did twenty two men live?": None,
    "It ate two-thirds of it.": None,
    "It began at 12:30.": None,
    "Pay 1,2,3 now.": None,
    "It was 1/2.": None,
    "The COVID-19 case.": None,
    "The sum is 9" + "0" * 50 + ".": None,
    "The sum is 12345678901234567890123.": r"The sum is \d{23}\.",
    "Pay 1,000 now.": r"Pay (?:\d{1,3}|\d,\d{3}) now\.",
    "It rose 100% of the time.": r"It rose \d\d?% of the time\.",
    "It rose 99.5 percent.": r"It rose \d\d?\.5 percent\.",
    "It came on 30 May.": r"It came on (?:\d|1\d|2[0-8]) May\.",
    "It came at 5 p.m. today.": r"It came at (?:\d|1[0-2]) p\.m\. today\.",
    "He was an 8-year-old.": r"He was (?:an (?:8|11)|a (?:[2-79]|1[02-7]))-year-old\.",
    "It has a $9 fee.": r"It has (?:an \$(?:8|11|18)|a \$(?:[2-7]|1[02-7]))\ fee\.",
    "They came. Two men fled.": r"They came\. [A-Z][a-z]+ men fled\.",
    "BY TWO MEN.": r"BY [A-Z]+ MEN\.",
    "A two-month trip.": r"(?:An e|A [^e])[a-z]+-month trip\.",
}


@pytest.mark.embedded
def test_another_number_can_stand_where_the_old_one_stood():
    for text, made in outcomes("number", list(NUMBERS), range(15)).items():
        for other in made:
            assert (other is None) == (NUMBERS[text] is None), text
            assert other is None or re.fullmatch(NUMBERS[text], other), other


@pytest.mark.embedded
def test_a_word_is_left_out_whole():
    texts = [
        "There is more than 5% left.",
        "They came at 12:30 for $3.50.",
        'He said "never again" at 10 a.m. today.',
        "It is in Berlin, Germany.",
    ]
    for text, made in outcomes("drop", texts, range(12)).items():
        tokens = text.rstrip(".").replace(",", "").split()  # a mark stays where its word is left out
        for other in made - {None}:
            assert not re.search(r"[.,][.,]", other)
            assert other.rstrip(".").replace(",", "").split() in [
                tokens[:i] + tokens[i + 1 :] for i in range(len(tokens))
            ]


@pytest.mark.embedded
def test_shuffled_words_bring_no_second_full_stop():
    texts = ["He left. She stayed. They were happy.", "a. b.", "It is in Berlin, Germany!"]
    for made in outcomes("shuffle", texts, range(12)).values():
        assert not any(re.search(r"[.,!][.,!]$", other) for other in made)


@pytest.mark.embedded
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("given", "back-translation")])
def test_what_is_told_holds_for_any_blanks(kind):
    (made,) = outcomes(kind, [SPACED], range(6)).values()
    for other in made - {None}:
        if kind != "shuffle":
            assert "\n\n" in other and other.startswith("A  ") and other.endswith(".")
    assert made != {None} or kind in ("paraphrase-rules", "entity-swap", "pronoun-swap", "number", "question-word")
