"""Answers with their keyphrases marked, made from question-answer data.

The key words of an answer are the words of the answer span that say something (no stop words) and that the question
does not hold already. Six kinds of answers are made, so that the model meets what generated answers look like:
sentences of the text that hold the span (KPQA §3.1), such sentences among others, statements built from question and
answer, short phrases, definitions, and yes/no answers.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from elench.requests import Span
from elench.text.roots import is_number, is_stop_word, root, words_of
from elench.train.examples import Example

ABBREVIATED = re.compile(
    r"(?:\b(?:Mr|Mrs|Ms|Dr|St|vs|No|Jr|Sr|Gen|Col|Lt|Prof|Rev|Hon|Inc|Co|Ltd|approx|c|ca|e\.g|i\.e)|\b[A-Z])\s?\.$"
)
BREAK = re.compile(r"[.!?]+[\"'”’)\]]*(?:\[\d+\])*\s+(?=[\"'“‘(\[]?[A-Z0-9])|\n\s*\n")
LEANING = re.compile(r"(?:It|Its|He|She|His|Her|They|Their|This|These|Those|That|Such|There)\b")
_AUXILIARIES = "is are was were am do does did has have had can could will would shall should may might must"
AUXILIARIES = frozenset(_AUXILIARIES.split())
ASKING = frozenset(("who", "whom", "whose", "what", "which", "when", "where", "why", "how"))
PARTICIPLE = re.compile(r"(?:ed|en|ing|own|ade|ilt|orn|eld|ung|ound|old|aid|eft|ost|ept|ent|aught|ought)$")
QUANTITY = re.compile(r"(?:.*\b)?how (?!(?:do|does|did|is|are|was|were|can|to)\b)\w+", re.IGNORECASE)
_UNITS = """
years months weeks days hours minutes seconds miles kilometers kilometres meters metres feet foot inches yards acres
pounds dollars euros cents percent degrees fahrenheit celsius grams kilograms ounces gallons liters litres cups
calories mg ml kg km cm mm oz lb lbs ft people times
"""
UNITS = frozenset(map(root, _UNITS.split()))
UNIT = 0.3
"""How much of a key word a unit is where a number is asked for: "40 years" and "50 years" are different answers, and
the paper's error analysis (§5.4) finds units weighted too high."""
PRONOUNS = re.compile(r"(?:it|he|she|they|we|you|i|there|this|that)$", re.IGNORECASE)


@dataclass(frozen=True)
class Marked:
    """An answer to a question, with the words that carry it marked."""

    question: str
    answer: str
    key: tuple[float, ...]
    """One per word of the answer, as `words_of` gives them: 1 for a key word, 0 for another, UNIT for a unit."""
    kind: str


def sentences(text: str) -> list[Span]:
    """Offsets of the sentences of a text; initials and common abbreviations do not end one."""
    starts = [0]
    for found in BREAK.finditer(text):
        if not ABBREVIATED.search(text[: found.end()].rstrip()):
            starts.append(found.end())
    return [(a, b) for a, b in zip(starts, [*starts[1:], len(text)], strict=True) if text[a:b].strip()]


def mark(question: str, answer: str, spans: Sequence[Span], kind: str) -> Marked | None:
    """Mark the telling, new words of the spans; all their words if none is telling; None if they hold no word."""
    words = words_of(answer)
    asked = {root(w) for w, _ in words_of(question)}
    inside = [any(a < end and start < b for a, b in spans) for _, (start, end) in words]
    measured = bool(QUANTITY.match(question)) and any(
        i and is_number(w) for i, (w, _) in zip(inside, words, strict=True)
    )
    for wanted in (
        [i and not is_stop_word(w) and root(w) not in asked for i, (w, _) in zip(inside, words, strict=True)],
        [i and not is_stop_word(w) for i, (w, _) in zip(inside, words, strict=True)],
        inside,
    ):
        if any(wanted):
            key = [
                UNIT if w and measured and root(t) in UNITS else float(w)
                for w, (t, _) in zip(wanted, words, strict=True)
            ]
            return Marked(question, answer, tuple(key), kind)
    return None


def holding(example: Example, more: int = 0) -> tuple[str, Span] | None:
    """The sentence that holds the answer span whole, and the span in it.

    Sentences the span runs over are joined; a sentence that leans on the one before ("It was …") brings it along;
    `more` adds that many neighbours on each side.
    """
    if example.start < 0:
        return None
    found = sentences(example.context)
    inside = [n for n, (a, b) in enumerate(found) if a < example.end and example.start < b]
    if not inside:
        return None
    first, last = inside[0], inside[-1]
    while first > 0 and LEANING.match(example.context[found[first][0] :].lstrip()) and last - first < 2:
        first -= 1
    first, last = max(0, first - more), min(len(found) - 1, last + more)
    begin, end = found[first][0], found[last][1]
    return example.context[begin:end], (example.start - begin, example.end - begin)


def linked(example: Example) -> tuple[str, Span] | None:
    """For questions that need several sentences: the holding one, after the one that shares most with the question."""
    base = holding(example)
    if base is None:
        return None
    asked = {root(w) for w, _ in words_of(example.question) if not is_stop_word(w)}
    shared = [
        (len(asked & {root(w) for w, _ in words_of(example.context[a:b])}), example.context[a:b])
        for a, b in sentences(example.context)
        if not (a < example.end and example.start < b)
    ]
    best = max(shared, key=lambda pair: pair[0], default=(0, ""))[1].strip()
    if not best or best in base[0]:
        return base
    return f"{best} {base[0]}", (base[1][0] + len(best) + 1, base[1][1] + len(best) + 1)


# --- statements from question and answer -----------------------------------------------------------------------------


@dataclass(frozen=True)
class QuestionParts:
    """A question taken apart: "In what year | was | the hall built"."""

    lead: str
    """What precedes the question word."""
    asking: str
    noun: str
    """What comes between question word and auxiliary: "steps" in "how many steps are …"."""
    auxiliary: str
    rest: str


def take_apart(question: str) -> QuestionParts | None:
    """The parts of a wh-question; None if it has no question word."""
    tokens = question.strip().rstrip("?").split()
    at = next((i for i, t in enumerate(tokens) if t.lower() in ASKING), None)
    if at is None:
        return None
    asking, after = tokens[at].lower(), at + 1
    if asking == "how" and len(tokens) > after and tokens[after].lower() not in AUXILIARIES:
        asking, after = f"how {tokens[after].lower()}", after + 1
    limit = min(len(tokens), after + 5)
    aux = next((i for i in range(after, limit) if tokens[i].lower() in AUXILIARIES), None)
    lead = " ".join(tokens[:at])
    if aux is None:
        return QuestionParts(lead, asking, "", "", " ".join(tokens[after:]))
    return QuestionParts(lead, asking, " ".join(tokens[after:aux]), tokens[aux].lower(), " ".join(tokens[aux + 1 :]))


def declarative(asked: QuestionParts) -> str:
    """The rest of the question with its auxiliary put back: "the hall was built", "turtles live"."""
    if not asked.auxiliary or asked.auxiliary in ("do", "does", "did"):
        return asked.rest
    tokens = asked.rest.split()
    at = next((i for i, t in enumerate(tokens) if i > 0 and PARTICIPLE.search(t)), None)
    if at is None:
        at = 1 if tokens and PRONOUNS.match(tokens[0]) else len(tokens)
    return " ".join([*tokens[:at], asked.auxiliary, *tokens[at:]])


JOINTS = {"when": ("in", "on", "", "during"), "where": ("in", "at", "", "from"), "why": ("because", "to", "because of"),
          "how long": ("for", "", "about"), "how": ("by", "", "through"), "who": ("", "by")}  # fmt: skip


def statement(question: str, answer: str, rng: np.random.Generator) -> tuple[str, Span]:
    """A sentence that says what the answer says: the question turned into a statement around it."""
    answer = answer.strip().rstrip(".").strip()
    asked = take_apart(question)
    if asked is None:
        return _around("", answer, "")
    if asked.lead and len(asked.lead.split()) > 2:  # "The statue stands in front of what building?"
        return _around(asked.lead, answer, " ".join(filter(None, (asked.auxiliary, asked.rest))))
    joint = str(rng.choice(JOINTS.get(asked.asking, ("",))))
    if asked.lead and asked.lead.lower() in ("in", "on", "at", "to", "from", "for", "by", "with", "of", "during"):
        joint = asked.lead.lower()
    if answer.lower().startswith(("in ", "on ", "at ", "to ", "by ", "because ", "for ", "from ")):
        joint = ""
    said = declarative(asked)
    noun = "" if asked.noun.lower().split()[-1:] and asked.noun.lower().split()[-1] in answer.lower() else asked.noun
    counted = asked.asking.startswith("how ") and noun
    shapes = [(f"{said} {joint}", noun if counted else ""), (f"{said} {joint}", noun if counted else "")]
    if not asked.auxiliary:
        shapes = [("", asked.rest)] * 3 + [(f"the {asked.asking} that {asked.rest} is", "")]
    elif asked.auxiliary in ("is", "are", "was", "were") and asked.asking not in ("when", "where", "why"):
        shapes += [("", f"{noun if counted else ''} {asked.auxiliary} {asked.rest}")]
    if counted:
        shapes += [("there are", f"{noun} {asked.rest}"), ("", f"{noun} {asked.auxiliary} {asked.rest}")]
    elif noun:
        shapes += [(f"the {noun} {said} {joint}", ""), ("the " + noun + " is", "")]
    shapes += [
        (str(rng.choice(["it is", "they are", "it was", joint, "because" if asked.asking == "why" else ""])), "")
    ]
    before, after = shapes[int(rng.integers(len(shapes)))]
    return _around(before, answer, after)


def _around(before: str, answer: str, after: str) -> tuple[str, Span]:
    before, after = " ".join(before.split()), " ".join(after.split())
    start = len(before) + 1 if before else 0
    return " ".join(filter(None, (before, answer, after))) + " .", (start, start + len(answer))


def polar(question: str, answer: str, other: str, rng: np.random.Generator) -> Marked | None:
    """A yes/no question made from a wh-question and its answer, and a reply to it; "no" may bring another answer."""
    asked = take_apart(question)
    if asked is None or not asked.auxiliary or asked.lead:
        return None
    answer = answer.strip().rstrip(".")
    asked_now = f"{asked.auxiliary} {asked.rest} {answer}?"
    yes = bool(rng.integers(2))
    word = "yes" if yes else "no"
    said = declarative(asked)
    pronoun = str(rng.choice(["it", "they", "he", "she"]))
    shape = int(rng.integers(5))
    tail = ("", f", {said} {answer}", f", {pronoun} {asked.auxiliary}", f" , {said}", "")[shape]
    spans = [(0, len(word))]
    if not yes and shape == 4:
        tail = f", {said} {other}"
        spans.append((len(word) + 3 + len(said), len(word) + len(tail)))
    return mark(asked_now, f"{word}{tail} .", spans, "yes/no")


NO_NAME = re.compile(
    r"(?:It|Its|He|She|His|Her|They|Their|This|These|Those|That|Such|There|We|You|I|In|On|At|And|But|Up|Just|As|Below|Although"
    r"|Immediately|Round|Then|Here|What|Who|When|Among|While|Also|Both|One|Another|Some|My|Your|Our|So|If|With|For|From)\b"
)
DEFINING = re.compile(
    r"^(?P<name>(?:The |A |An )?[A-Z][\w'-]*(?: [\w'’-]+){0,3}?),? "
    r"(?P<be>is|are|was|were) (?P<what>(?:a|an|the|one of) .{20,})$"
)


def definition(text: str, rng: np.random.Generator) -> Marked | None:
    """ "what is X" with a sentence "X is a …" of the text: all it says of X is key."""
    found = DEFINING.match(" ".join(text.split()))
    if not found or NO_NAME.match(found["name"]):
        return None
    name = re.sub(r"^(The|A|An) ", "", found["name"])
    shape = str(
        rng.choice(
            ["what {be} {name}", "{name} definition", "define {name}", "who {be} {name}", "what does {name} mean"]
        )
    )
    what = re.split(r"[;(]|, (?:and|but|which|who)\b", found["what"])[0]
    start = found.start("what")
    return mark(
        shape.format(be=found["be"], name=name),
        found.string[: start + len(what)],
        [(start, start + len(what))],
        "definition",
    )


def definitions(examples: Sequence[Example]) -> list[str]:
    """The sentences of the texts that `definition` can use."""
    contexts = dict.fromkeys(e.context for e in examples)
    parts = (" ".join(c[a:b].split()) for c in contexts for a, b in sentences(c))
    return [part for part in parts if len(part) < 400 and DEFINING.match(part) and not NO_NAME.match(part)]


# --- the mixture -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Mixture:
    """Gives each epoch its marked answers, one of each example, of kinds drawn by chance."""

    examples: Sequence[Example]
    definitions: Sequence[str] = ()
    """Sentences that say what something is."""
    shares: tuple[tuple[str, float], ...] = (
        ("sentence", 0.24), ("among", 0.16), ("statement", 0.26), ("swapped", 0.16), ("phrase", 0.07), ("yes/no", 0.06),
        ("definition", 0.05),
    )  # fmt: skip
    silent: float = 0.12
    """Part of the answers shown without their question: the "KP" ablation is the same model with an empty question."""

    def __call__(self, rng: np.random.Generator, epoch: int) -> list[Marked]:
        pools: dict[str, list[Example]] = defaultdict(list)
        for e in self.examples:
            pools[self.pool(e)].append(e)
        names, chances = [n for n, _ in self.shares], np.array([s for _, s in self.shares])
        kinds = rng.choice(len(names), size=len(self.examples), p=chances / chances.sum())
        made = []
        for e, kind in zip(self.examples, kinds, strict=True):
            pool = pools[self.pool(e)]
            marked = self.make(e, names[kind], pool[int(rng.integers(len(pool)))], rng)
            if marked is not None and len(marked.key) <= 110:
                made.append(self.worn(marked, rng))
        return made

    @staticmethod
    def pool(example: Example) -> str:
        """Examples whose answers can be swapped: asked for with the same word, about as long."""
        asked = take_apart(example.question)
        return f"{asked.asking if asked else ''} {min(len(example.answers[0].split()), 8) // 3}"

    def make(self, e: Example, kind: str, other: Example, rng: np.random.Generator) -> Marked | None:
        """The example as one kind of answer; as a statement where it does not lend itself to that kind."""
        answer = e.answers[0]
        if kind in ("sentence", "among"):
            found = linked(e) if e.id.startswith("hotpot") else holding(e, int(kind == "among"))
            if found is not None:
                return mark(e.question, found[0], [found[1]], kind)
        if kind == "phrase":
            return mark(e.question, answer, [(0, len(answer))], kind)
        if kind == "yes/no":
            marked = polar(e.question, answer, other.answers[0].strip().rstrip("."), rng)
            if marked is not None:
                return marked
        if kind == "definition" and self.definitions:
            marked = definition(self.definitions[int(rng.integers(len(self.definitions)))], rng)
            if marked is not None:
                return marked
        said, span = statement(e.question, other.answers[0] if kind == "swapped" else answer, rng)
        return mark(e.question, said, [span], "statement")

    def worn(self, marked: Marked, rng: np.random.Generator) -> Marked:
        """As people type: some questions lose their mark or their politeness, some are not shown at all."""
        chance = rng.random()
        if chance < self.silent:
            return Marked("", marked.answer, marked.key, marked.kind)
        question = marked.question.rstrip("? ") if chance < 0.6 else marked.question
        return Marked(question, marked.answer, marked.key, marked.kind)


@dataclass(frozen=True)
class AnswerSentences:
    """The paper's training data (§3.1): the sentence that holds an answer, every word of the answer's span marked."""

    examples: Sequence[Example]
    question: bool = True
    """off: the KP ablation, trained without the question"""

    def __call__(self, rng: np.random.Generator, epoch: int) -> list[Marked]:
        marked = []
        for example in self.examples:
            for first, last in sentences(example.context):
                if first <= example.start and example.end <= last:
                    begin, end, text = example.start - first, example.end - first, example.context[first:last]
                    key = tuple(float(a < end and begin < b) for _, (a, b) in words_of(text))
                    marked.append(Marked(example.question if self.question else "", text, key, "sentence"))
        return [m for m in marked if any(m.key)]
