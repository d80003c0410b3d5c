"""Bad questions made from good ones: what the well-formedness model learns to tell apart.

Most keep the words of a topic and a local order that looks right, but make no sense, as weak generators write them;
the others have one fault of grammar. Each kind has a target: how well formed raters would still call it.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from elench.requests import Parsed

Span = tuple[int, int]


@dataclass(frozen=True)
class Asked:
    """A question of a corpus with its parse, its answer and the article it is about."""

    text: str
    parsed: Parsed
    answer: str = ""
    article: str = ""

    def place(self, words: Span) -> Span:
        """Characters of a range of words."""
        return self.parsed.words[words[0]].span[0], self.parsed.words[words[1] - 1].span[1]

    def phrases(self) -> list[Span]:
        """Noun phrases, in characters, without those that hold the question word or are one short word."""
        words = self.parsed.words
        whole = [(a, b) for a, b in self.parsed.phrases if not any(w.tag.startswith("W") for w in words[a:b])]
        return [self.place((a, b)) for a, b in whole if b - a > 1 or words[a].pos in ("NOUN", "PROPN")]

    def replaced(self, place: Span, new: str) -> str:
        """With another text at a place; no space is doubled or left before the question mark."""
        text = f"{self.text[: place[0]]}{new}{self.text[place[1] :]}"
        return re.sub(r"\s+(?=[?,.])", "", " ".join(text.split()))


Change = Callable[[Asked, Asked, np.random.Generator], "str | None"]
"""Makes a question bad, with the help of another one on the same article; None where it cannot."""


def _one(items: Sequence[Span], rng: np.random.Generator) -> Span:
    return items[int(rng.integers(len(items)))]


# --- senseless -------------------------------------------------------------------------------------------------------


def repeated(asked: Asked, other: Asked, rng: np.random.Generator) -> str | None:
    """A noun phrase in the place of another: "What is the WHO in the WHO?"."""
    phrases = asked.phrases()
    if len(phrases) < 2:
        return None
    i, j = (int(k) for k in rng.choice(len(phrases), 2, replace=False))
    return asked.replaced(phrases[i], asked.text[slice(*phrases[j])])


def other_phrase(asked: Asked, other: Asked, rng: np.random.Generator) -> str | None:
    """A noun phrase of another question in the place of one."""
    mine, theirs = asked.phrases(), other.phrases()
    if not mine or not theirs:
        return None
    return asked.replaced(_one(mine, rng), other.text[slice(*_one(theirs, rng))])


CUTS = ("IN", "TO", "MD", "VBD", "VBZ", "VBP", "VBN", "VB", "NN", "NNP", "NNS")
"""Tags of words at which two questions are joined."""


def joined(asked: Asked, other: Asked, rng: np.random.Generator) -> str | None:
    """The beginning of one question and the end of another, joined where both have a word of the same tag."""
    words, others = asked.parsed.words, other.parsed.words
    pairs = [
        (i, j)
        for i in range(2, len(words) - 1)
        if words[i].tag in CUTS
        for j in range(2, len(others) - 1)
        if others[j].tag == words[i].tag and others[j].text != words[i].text
    ]
    if not pairs:
        return None
    i, j = _one(pairs, rng)
    return f"{asked.text[: words[i].span[0]]}{other.text[others[j].span[0] :]}"


def filled(asked: Asked, other: Asked, rng: np.random.Generator) -> str | None:
    """The answer left in, though the question word already stands for it: "What did Anna sell her house?"."""
    words = asked.parsed.words
    inner = [i for i, w in enumerate(words) if i > 1 and w.relation == "ROOT" and w.tag == "VB"]
    end = asked.text.rstrip(" ?")
    answer = asked.answer.split()
    if not answer or len(answer) > 8 or not inner or asked.answer.lower() in asked.text.lower():
        return None
    first = words[0].text.lower()
    if first in ("when", "where", "in", "at", "on") and answer[0].lower() not in ("in", "at", "on", "the"):
        answer.insert(0, "in")
    if len(answer) > 2 and rng.random() < 0.3:
        answer = answer[: int(rng.integers(1, len(answer)))]
    at = words[inner[0]].span[1] if rng.random() < 0.6 else len(end)
    return f"{end[:at]} {' '.join(answer)}{end[at:]}?"


QUESTION_WORDS = {
    "who": ("When", "How many", "Where", "How much"), "when": ("Who", "What", "How many", "Which"),
    "where": ("Who", "What", "How much", "Which"), "what": ("When", "How much", "Why many", "Whose"),
    "which": ("Who", "When", "Where"), "why": ("Who", "What", "How many"), "how": ("Who", "Whose", "Which"),
    "whose": ("When", "How"),
}  # fmt: skip
"""Question words that mostly do not fit where the first one does."""


def other_question_word(asked: Asked, other: Asked, rng: np.random.Generator) -> str | None:
    """A question word that does not fit: "Who did the war end?"."""
    words = asked.parsed.words
    found = next((i for i, w in enumerate(words[:4]) if w.text.lower() in QUESTION_WORDS), None)
    if found is None:
        return None
    options = QUESTION_WORDS[words[found].text.lower()]
    new = options[int(rng.integers(len(options)))]
    return asked.replaced(asked.place((found, found + 1)), new if found == 0 else new.lower())


# --- ungrammatical ---------------------------------------------------------------------------------------------------


def dangling(asked: Asked, other: Asked, rng: np.random.Generator) -> str | None:
    """The end cut off after a preposition, a determiner, an auxiliary or a possessive."""
    loose = ("IN", "DT", "PRP$", "TO", "MD", "POS", "CC", "JJ")
    words = asked.parsed.words
    ends = [(i, 0) for i, w in enumerate(words[:-2]) if i > 3 and w.tag in loose and words[i + 1].pos != "PUNCT"]
    return f"{asked.text[: words[_one(ends, rng)[0]].span[1]]}?" if ends else None


def dropped(asked: Asked, other: Asked, rng: np.random.Generator) -> str | None:
    """Without one word that it needs: a verb, a noun, a preposition."""
    words = asked.parsed.words
    needed = [
        (i, i + 1)
        for i, w in enumerate(words)
        if i > 0
        and (w.pos in ("VERB", "AUX", "ADP", "PRON") or (w.pos == "NOUN" and words[i - 1].pos in ("DET", "ADJ")))
    ]
    return asked.replaced(asked.place(_one(needed, rng)), "") if needed else None


def doubled(asked: Asked, other: Asked, rng: np.random.Generator) -> str | None:
    """With one to three words written twice."""
    words = asked.parsed.words
    if len(words) < 5:
        return None
    a = int(rng.integers(1, len(words) - 1))
    b = min(len(words) - 1, a + int(rng.integers(1, 4)))
    place = asked.place((a, b))
    return asked.replaced(place, f"{asked.text[slice(*place)]} {asked.text[slice(*place)]}")


def disordered(asked: Asked, other: Asked, rng: np.random.Generator) -> str | None:
    """With two neighbouring stretches of one or two words in each other's place."""
    words = asked.parsed.words
    if len(words) < 6:
        return None
    a = int(rng.integers(0, len(words) - 3))
    b = a + int(rng.integers(1, 3))
    c = min(len(words) - 1, b + int(rng.integers(1, 3)))
    (start, middle), (after, end) = asked.place((a, b)), asked.place((b, c))
    first, second = asked.text[start:middle], asked.text[after:end]
    return asked.replaced((start, end), f"{second} {first}") if first.lower() != second.lower() else None


AGREEMENT = {
    "is": "are", "are": "is", "was": "were", "were": "was", "has": "have", "have": "has", "does": "is", "did": "was",
    "do": "does",
}  # fmt: skip


def wrong_form(asked: Asked, other: Asked, rng: np.random.Generator) -> str | None:
    """With a verb in a wrong form: "What did they sells?", "When were it built?"."""
    words = asked.parsed.words
    verbs = [(i, i + 1) for i, w in enumerate(words) if i > 0 and w.pos in ("VERB", "AUX") and w.text.isalpha()]
    if not verbs:
        return None
    place = _one(verbs, rng)
    word = words[place[0]]
    old = word.text.lower()
    if old in AGREEMENT:
        new = AGREEMENT[old]
    elif word.tag == "MD":
        return None
    else:
        stem = word.lemma.rstrip("e") if word.lemma.isalpha() else old.rstrip("e")
        forms = [f for f in (word.lemma, f"{word.lemma}s", f"{stem}ed", f"{stem}ing") if f != old]
        forms = [f for f in forms if word.tag not in ("VBD", "VBN") or not f.endswith("ed")]
        new = forms[int(rng.integers(len(forms)))]
    return asked.replaced(asked.place(place), new)


# --- common beginnings -----------------------------------------------------------------------------------------------


def common_beginnings(texts: Iterable[str], least: int) -> list[str]:
    """First two to five words that at least so many questions share, up to a word that a noun phrase may follow; each
    as often as the root of its number."""
    split = (text.split() for text in texts)
    counts = Counter(
        " ".join(w[:k]) for w in split for k in range(2, 6) if len(w) > k + 1 and w[k - 1] in BEFORE_PHRASE
    )
    return [b for b, n in sorted(counts.items()) if n >= least for _ in range(int(n**0.5))]


ARTICLES = ("the", "a", "an")
BEFORE_PHRASE = {
    *ARTICLES, "of", "in", "is", "was", "were", "are", "did", "does", "do", "for", "by", "to", "from", "with",
    "between", "on", "at", "has", "had",
}  # fmt: skip
"""Words after which a noun phrase is locally right."""
TAILS = ("IN", "TO", "VBD", "VBZ", "VBN", "VB", "VBG")


def begun(beginning: str, asked: Asked, other: Asked, rng: np.random.Generator) -> str | None:
    """A common beginning, a noun phrase of the topic, and the end of a question on it: what a generator falls back on,
    "What is the name of the metro built?"."""
    phrases, words = other.phrases(), asked.parsed.words
    if not phrases:
        return None
    phrase = other.text[slice(*_one(phrases, rng))]
    if beginning.endswith(tuple(f" {article}" for article in ARTICLES)):
        phrase = re.sub(r"^(?:the|an?)\s+", "", phrase, flags=re.IGNORECASE)
    ends = [(i, 0) for i, w in enumerate(words[:-1]) if i > len(words) // 2 and w.tag in TAILS]
    end = asked.text[words[_one(ends, rng)[0]].span[0] :] if ends and rng.random() < 0.7 else "?"
    return f"{beginning} {phrase} {end}".replace(" ?", "?")


# --- wandering through an article's questions ------------------------------------------------------------------------


class Wanderer:
    """Writes questions word by word: each word has followed the last one or two in some question of the article.

    Where two words have one continuation only, the last one decides, so that no question is copied out.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        self.texts = {" ".join(t.split()) for t in texts}
        self.first: list[str] = []
        self.after: dict[tuple[str, ...], list[str]] = defaultdict(list)
        for text in sorted(self.texts):
            words = text.replace("?", " ?").split()
            self.first.append(words[0])
            for i in range(1, len(words)):
                self.after[(words[i - 1],)].append(words[i])
                if i > 1:
                    self.after[(words[i - 2], words[i - 1])].append(words[i])

    def write(self, rng: np.random.Generator, beginning: str = "", most: int = 18) -> str | None:
        """A question of at most so many words; None where it finds no end, or wrote a question that exists."""
        words = beginning.split() or [self.first[int(rng.integers(len(self.first)))]]
        while len(words) < most and words[-1] != "?":
            known = self.after.get(tuple(words[-2:]), [])
            if len(words) > 1 and len(set(known)) < 2 and rng.random() < 0.7:
                known = self.after.get((words[-1],), [])
            if not known:
                return None
            words.append(known[int(rng.integers(len(known)))])
        text = " ".join(words).replace(" ?", "?")
        inside = any(text[:-1] in t for t in self.texts)
        return text if words[-1] == "?" and len(words) > 5 and not inside else None


# --- the mixture -----------------------------------------------------------------------------------------------------

KINDS: dict[str, tuple[Change | None, float, float]] = {
    "repeated": (repeated, 0.05, 0.13), "other phrase": (other_phrase, 0.2, 0.08), "joined": (joined, 0.1, 0.14),
    "wandering": (None, 0.1, 0.18), "begun": (None, 0.1, 0.15), "filled": (filled, 0.1, 0.1),
    "other question word": (other_question_word, 0.15, 0.05), "dangling": (dangling, 0.1, 0.05),
    "dropped": (dropped, 0.2, 0.05), "doubled": (doubled, 0.15, 0.02), "disordered": (disordered, 0.1, 0.02),
    "wrong form": (wrong_form, 0.3, 0.03),
}  # fmt: skip
"""For each kind of bad question: how it is made, its target, its share."""


@dataclass(frozen=True)
class BadQuestion:
    text: str
    target: float
    kind: str


class BadQuestions:
    """Draws bad questions made from parsed ones, in the shares of their kinds."""

    def __init__(self, asked: Sequence[Asked], texts: Iterable[tuple[str, str]]) -> None:
        """`texts`: article and question of everything the wanderers may read."""
        self.asked = list(asked)
        self.by_article: dict[str, list[Asked]] = defaultdict(list)
        for question in self.asked:
            self.by_article[question.article].append(question)
        read: dict[str, list[str]] = defaultdict(list)
        for article, text in texts:
            read[article].append(text)
        self.beginnings = common_beginnings((text for found in read.values() for text in found), least=12)
        self.wanderers = [Wanderer(found) for _, found in sorted(read.items()) if len(found) > 20]

    def draw(self, n: int, rng: np.random.Generator) -> list[BadQuestion]:
        names, shares = list(KINDS), np.array([share for _, _, share in KINDS.values()])
        made: list[BadQuestion] = []
        while len(made) < n:
            kind = names[int(rng.choice(len(names), p=shares / shares.sum()))]
            text = self._make(kind, rng)
            if text is not None:
                made.append(BadQuestion(text, KINDS[kind][1], kind))
        return made

    def _make(self, kind: str, rng: np.random.Generator) -> str | None:
        beginning = self.beginnings[int(rng.integers(len(self.beginnings)))] if self.beginnings else ""
        if kind == "wandering":
            if not self.wanderers:
                return None
            wanderer = self.wanderers[int(rng.integers(len(self.wanderers)))]
            return wanderer.write(rng, beginning if rng.random() < 0.5 else "")
        asked = self.asked[int(rng.integers(len(self.asked)))]
        near = self.by_article[asked.article]
        other = near[int(rng.integers(len(near)))]
        if other is asked:
            return None
        change = KINDS[kind][0]
        text = change(asked, other, rng) if change else begun(beginning, asked, other, rng) if beginning else None
        return None if text is None or text.lower() == asked.text.lower() else text
