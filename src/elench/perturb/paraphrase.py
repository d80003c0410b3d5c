"""Positives: other words for the same thing, by people, by translation there and back, or by rules and WordNet."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import numpy as np

from elench.perturb.edit import Edit, Kind, Scene, pick, replaced
from elench.records.record import Record
from elench.requests import BackTranslate, Span, Word
from elench.text.roots import is_stop_word
from elench.text.wordnet import tables

STATED = r"(?!\s+(?:the(?:re|se|y|ir)?|an?|this|that|those|h[ei]s?|her|she|its?|our|we|my|your?|any|all|I|[A-Z]\w*)\b)"
"""Not before a subject, as in a question: "why did not the army" is nobody's English."""
ASKED = r"(?=\s+(?:did|do|does|was|were|is|are|has|have|had|can|could|will|would|should|must|may|might)\b)"
"""Before the verb of a question, as "when" is: not "in what year of his reign", "in which country's capital"."""
RULES = [
    (r"^[Ii]n (?:what|which) year" + ASKED, "when"),
    (r"^[Ii]n (?:what|which) (?:city|country|place|town)" + ASKED, "where"),
    (r"^[Ww]hat is the name of the\b", "what is the"),
    (r"^[Ww]hat was the name of the\b", "what was the"),
    (r"\b([Ww])hat is(?=\s+\w)", r"\1hat's"),
    (r"\b([Ww])ho is(?=\s+\w)", r"\1ho's"),
    (r"\b(did|was|is|were|are|does|do|has|had|could|would|should)n['’]t\b" + STATED, r"\1 not"),
    (r"\bcan['’]t\b" + STATED, "cannot"),
    (r"\bbecause of\b", "owing to"),
    (r"\ba lot of\b", "plenty of"),
    (r"\bapproximately\b", "about"),
    (r"\blocated in\b", "situated in"),
]
"""Turns of phrase that mean the same."""


def paired(records: Sequence[Record], paraphrased: Iterable[Record]) -> tuple[dict[str, str], int]:
    """The paraphrase of each record (by its id), and how many were found by context and answer instead of the id.

    Ids alone are not trusted: two published files number the same questions differently. A paraphrase belongs to the
    record with its id if it has the same context, or none; else to the only record with its context and answer.
    """
    own = {record.id: record for record in records}
    several = {record.id for record in records if own[record.id] is not record}  # one id in several systems
    places: dict[tuple[str | None, str | None], list[str]] = {}
    for record in records:
        places.setdefault((record.context, record.answer), []).append(record.id)
    found: dict[str, str] = {}
    elsewhere = 0
    for other in paraphrased:
        text = other.judged_text
        if not text:
            continue
        if other.id in several:
            continue
        if other.id in own and other.context in (None, own[other.id].context):
            found[other.id] = text
        elif other.context and len(ids := places.get((other.context, other.answer), [])) == 1:
            found[ids[0]] = text
            elsewhere += 1
    return found, elsewhere


async def given(scene: Scene, rng: np.random.Generator) -> Edit | None:
    """A paraphrase that people wrote: the record's `paraphrase`, or `--paraphrases FILE`."""
    if not scene.paraphrase:
        return None
    return Edit(scene.paraphrase, (0, len(scene.text)), scene.text, scene.paraphrase, "human paraphrase")


async def back_translation(scene: Scene, rng: np.random.Generator) -> Edit | None:
    """English to Portuguese and back, by the translator role."""
    other = (await BackTranslate(scene.text)).strip()
    if not other or other.casefold() == scene.text.strip().casefold():
        return None
    return Edit(other, (0, len(scene.text)), scene.text, other, "back-translation")


async def by_rules(scene: Scene, rng: np.random.Generator) -> Edit | None:
    """A turn of phrase or one word becomes another of the same meaning: rules and WordNet, no translation."""
    options: list[tuple[Span, str]] = _numbered(scene.parsed.words)
    for pattern, other in RULES:
        if found := re.search(pattern, scene.text):
            options.append((found.span(), found.expand(other)))
    if not options:
        options = _synonyms(scene)
    return replaced(scene.text, *pick(options, rng), "rule or synonym") if options else None


def _numbered(words: Sequence[Word]) -> list[tuple[Span, str]]:
    """How many becomes what number of, where things that are counted follow: not in "how many of" or "many more"."""
    options: list[tuple[Span, str]] = []
    for i in range(len(words) - 2):
        if (words[i].text.lower(), words[i + 1].text.lower()) != ("how", "many"):
            continue
        k = i + 3 if words[i + 2].tag == "JJ" else i + 2
        tags = [word.tag for word in words[k : k + 2]]
        if tags and tags[0] in ("NNS", "NNPS") and "JJR" not in tags and "RBR" not in tags:
            options.append(((words[i].span[0], words[i + 1].span[1]), "what number of"))
    return options


FIXED = {"not", "never", "no", "none", "nobody", "nothing", "one", "nowhere", "neither"}
WORD_CLASS = {"JJ": "ADJ", "RB": "ADV", "NN": "NOUN", "VB": "VERB"}
"""Tag → class; a pronoun or particle that has the tag (nobody, not) has no synonyms."""


def _synonyms(scene: Scene) -> list[tuple[Span, str]]:
    """Words in base form with one sense only, and the other words of that sense: WordNet's safest exchanges."""
    known = tables()
    parts = {"JJ": "a", "RB": "r", "NN": "n", "VB": "v"}
    options = []
    for word in scene.parsed.words:
        part, lemma = parts.get(word.tag), word.lemma.lower()
        if word.pos != WORD_CLASS.get(word.tag) or lemma in FIXED:
            continue
        if not part or word.entity or is_stop_word(lemma) or word.relation == "neg" or word.text.lower() != lemma:
            continue
        senses = known.index[part].get(lemma, [])
        if len(senses) == 1:
            others = [o for o in known.synsets[senses[0]] if o.isalpha() and o.islower() and o != lemma]
            options += [(word.span, other) for other in others]
    return options


POSITIVES: dict[str, Kind] = {
    "given": given,
    "back-translation": back_translation,
    "paraphrase-rules": by_rules,
}
