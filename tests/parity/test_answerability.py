"""Answerability and its mixtures equal a second, readable implementation of equations (3) and (4) of the QAScore paper.

The authors' program cannot be installed; what it is mixed with is the outside tool itself (sacrebleu, rouge-score).
"""

import string
from functools import cache

import pytest
from nltk.tokenize import word_tokenize
from rouge_score.rouge_scorer import RougeScorer
from sacrebleu.metrics import BLEU

from elench.errors import UsageError
from elench.metrics import metric
from elench.records.record import Record
from elench.text.wordlists import FUNCTION_WORDS, QUESTION_WORDS

from .pairs import pairs

WEIGHTS = {"N": 0.6, "Q": 0.2, "R": 0.1, "F": 0.1}


@cache
def words(text: str, kind: str) -> tuple[str, ...]:
    """The words of one kind: named entity, question type, relevant content, function word."""
    chosen = []
    for token in word_tokenize(text, preserve_line=True):
        if not any(character.isalnum() for character in token):
            continue
        is_question, is_function = token.lower() in QUESTION_WORDS, token.lower() in FUNCTION_WORDS
        is_name = token[0].isupper() and not is_question and not is_function
        is_kind = {"Q": is_question, "F": is_function, "N": is_name}
        if is_kind.get(kind, not any(is_kind.values())):
            chosen.append(token.lower())
    return tuple(chosen)


def h(q: str, r: str, kind: str) -> int:
    """How many words of a kind in q have a partner of that kind in r."""
    partners = list(words(r, kind))
    found = 0
    for word in words(q, kind):
        if word in partners:
            partners.remove(word)
            found += 1
    return found


def second_answerability(q: str, r: str) -> float:
    present = {i: w for i, w in WEIGHTS.items() if words(q, i) or words(r, i)}
    w = {i: weight / sum(present.values()) for i, weight in present.items()}  # the weights sum to 1
    P = sum(w[i] * h(q, r, i) / len(words(q, i)) for i in w if words(q, i))
    R = sum(w[i] * h(q, r, i) / len(words(r, i)) for i in w if words(r, i))
    return 2 * P * R / (P + R) if P + R else 0.0


def given() -> list[tuple[str, str]]:
    letters = set(string.ascii_letters)
    return [(c, r[0]) for c, r in pairs() if letters & set(c)]


def value(spec: str, question: str, **fields) -> float:
    try:
        metric(spec).score(Record("1", question=question, judge="question", any_language=True, **fields)).send(None)
    except StopIteration as done:
        return done.value.value


@pytest.mark.parametrize("against", ["references", "context"])
def test_answerability_is_equation_3(against):
    assert len(given()) >= 1000
    for question, reference in given():
        fields = {"context": reference} if against == "context" else {"references": (reference,)}
        ours = value(f"answerability[against={against}]", question, **fields)
        assert ours == pytest.approx(second_answerability(question, reference), abs=1e-6), (question, reference)


@pytest.mark.parametrize("spec", ["q-bleu", "q-bleu[n=1]", "q-rouge"])
def test_mixtures_are_equation_4(spec):
    bleu = BLEU(effective_order=True, max_ngram_order=1 if "n=1" in spec else 4)
    rouge = RougeScorer(["rougeL"])
    for question, reference in given():
        other = bleu.sentence_score(question, [reference]).score / 100
        if spec == "q-rouge":
            other = rouge.score(reference, question)["rougeL"].fmeasure
        expected = 0.7 * second_answerability(question, reference) + 0.3 * other
        assert value(spec, question, references=(reference,)) == pytest.approx(expected, abs=1e-6), (
            question,
            reference,
        )


def test_q_meteor_mixes_in_meteor():
    for question, reference in given()[:100]:
        mixed = value("q-meteor[delta=0.4]", question, references=(reference,))
        own = value("answerability", question, references=(reference,))
        meteor = value("meteor", question, references=(reference,))
        assert mixed == pytest.approx(0.4 * own + 0.6 * meteor)


def test_the_best_reference_counts_and_weights_must_sum_to_one():
    references = ("Where is Rome?", "Who painted the Mona Lisa?")
    assert value("answerability", "Who painted the Mona Lisa?", references=references) == pytest.approx(1.0)
    with pytest.raises(UsageError, match="sum to 1"):
        metric("answerability[ner=0.9]")
