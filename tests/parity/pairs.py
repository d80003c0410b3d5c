"""Varied pairs of texts for comparing with outside tools: made by a seeded generator from the sentences below."""

from __future__ import annotations

import random
from functools import cache

from elench.errors import Unscored
from elench.metrics import metric
from elench.metrics.base import Score
from elench.records.record import Record

SENTENCES = """
The miller's daughter carried three sacks of rye to the market, but nobody was buying that day.
Dr. Osei measured the temperature at 7:45 a.m. and again at noon; it had risen by 12.5 degrees.
"Where have you been?" asked the old woman, closing the heavy door behind her.
In 1987 the town bought 1,200 street lamps (most of them second-hand) for about $45,000.
Zoë's café on the Rue de l'Église sells crêpes, naïve paintings and très bon coffee.
They can't repair the engine, and they won't say why it isn't running.
The children were running, jumping and singing while their mother's friends watched happily.
Large animals such as bears, wolves and moose are rarely seen near the well-known mountain path.
A big car and a large automobile stood side by side in the narrow street.
The committee's decision — taken on Friday — surprised everyone... except the chairwoman herself!
Who discovered the small island, and when did the first ship arrive there?
What is the name of the river that flows through the capital city of the northern province?
How many people live in the U.S. state with the smallest population?
She quickly purchased the biggest house because she had never bought one before.
The the the dog dog barked barked and and barked again and again.
Rain fell; the roof leaked; the cellar flooded; the cat, of course, slept.
E-mail me at the office/shop or call 555-0199 before 5 p.m. if you're interested.
It is a truth universally acknowledged that a short answer is better than a long one.
Nations that trade freely are generally wealthier; economists have argued about it for 200 years.
«Ça va?» dit-il – „Alles gut“, sagte sie & smiled at 100% of the guests.
Students study organizational psychology, biology, geology and the theories of relational learning.
His nervousness, hopefulness and carefulness were obviously connected with the coming examination.
The king died in the year 1066, and his brother was crowned in the cathedral a week later.
No. 7 Baker Street has two doors, four windows, and one very angry parrot named Aristotle.
The vaccine trial, which began in March, enrolled 3,000 volunteers in six countries.
Firefighters extinguished the blaze within an hour; the cause of the fire remains unknown.
A kind teacher helped the timid pupil, and a friendly instructor aided the shy student.
Gonna rain? I cannot say; 'tis hard to tell, but I wanna go home.
Prices rose 3.2% in April, fell 1.1% in May, and then rose again in June.
Αθήνα is bigger than Osaka, and Ελλάδα is older than both of them.
""".strip().splitlines()


@cache
def pairs(count: int = 1200, seed: int = 7) -> list[tuple[str, list[str]]]:
    """(judged text, its references): 1 to 80 words; equal, edited, shuffled, repeated, disjoint; one to four references."""
    chance = random.Random(seed)
    return [_pair(chance, i) for i in range(count)]


def _pair(chance: random.Random, i: int) -> tuple[str, list[str]]:
    reference = _text(chance)
    how = ("edited", "edited", "edited", "equal", "disjoint", "shuffled", "repeated", "short")[i % 8]
    words = reference.split()
    if how == "equal":
        candidate = reference
    elif how == "disjoint":
        candidate = _text(chance)
    elif how == "shuffled":
        candidate = " ".join(chance.sample(words, len(words)))
    elif how == "repeated":
        candidate = " ".join(word for word in words for _ in range(chance.choice((1, 1, 2, 3))))[:400].rstrip()
    elif how == "short":
        candidate = " ".join(words[: chance.randint(1, 4)])
    else:
        candidate = _edit(chance, words)
    others = [
        _edit(chance, words) if chance.random() < 0.6 else _text(chance) for _ in range(chance.choice((0, 0, 1, 3)))
    ]
    return candidate, [reference, *others]


def _text(chance: random.Random) -> str:
    """One to five sentences, sometimes on lines of their own, cut to at most 80 words."""
    chosen = chance.sample(SENTENCES, chance.choice((1, 1, 1, 2, 3, 5)))
    text = chance.choice((" ", " ", "\n")).join(chosen)
    most = chance.choice((3, 12, 40, 80))
    lines = [line.split() for line in text.split("\n")]
    kept = []
    for line in lines:
        kept.append(" ".join(line[:most]))
        most = max(most - len(line), 0)
    return "\n".join(line for line in kept if line)


def _edit(chance: random.Random, words: list[str]) -> str:
    """Drop, swap, replace and add words."""
    pool = " ".join(SENTENCES).split()
    edited = []
    for word in words:
        fate = chance.random()
        if fate < 0.12:
            continue
        edited.append(chance.choice(pool) if fate < 0.24 else word.upper() if fate < 0.27 else word)
    if len(edited) > 3 and chance.random() < 0.5:
        at = chance.randrange(len(edited) - 1)
        edited[at], edited[at + 1] = edited[at + 1], edited[at]
    return " ".join(edited) or words[0]


def result(spec: str, candidate: str, references: list[str], **fields: str) -> Score | None:
    """What a metric says of one record; None when it is unscored."""
    record = Record(id="1", answer=candidate, references=tuple(references), judge="answer", any_language=True, **fields)
    try:
        metric(spec).score(record).send(None)  # a lexical metric awaits nothing: it is done at once
    except StopIteration as done:
        return done.value
    except Unscored:
        pass
    return None


def values(spec: str, given: list[tuple[str, list[str]]]) -> list[float]:
    """The scores of all pairs; every one must be scored."""
    scores = [result(spec, candidate, references) for candidate, references in given]
    assert None not in scores
    return [score.value for score in scores if score]
