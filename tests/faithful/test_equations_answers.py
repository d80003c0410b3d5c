"""KPQA, QSTS and QuestEval as printed and in form=ours, on scripted models: expected numbers are worked out by hand."""

from __future__ import annotations

import re
from collections.abc import Callable
from math import sqrt
from typing import Any

import numpy as np
import pytest

from elench.metrics.qsts import class_factor, class_similarity
from elench.requests import Embed, Parse, Parsed, QuestionClass, Read, Reading, TokenVectors, Weigh, Word, WordWeights
from elench.text.roots import words_of
from tests.scripted import run, scripted

# --- KPQA ------------------------------------------------------------------------------------------------------------

FOX, BOX = "the red red fox steps", "Red fox was step the"
WEIGHTS = {
    FOX: (0.1, 0.6, 0.2, 0.9, 0.3),  # 2.1 in all
    BOX: (0.5, 0.8, 0.1, 0.4, 0.2),  # 2.0
    "key of the": (0.9, 0.05, 0.05),
    "of the key": (0.1, 0.1, 0.8),
    "ape bee": (0.2, 0.7),
    "bee ape": (0.6, 0.4),
    "big fox": (0.4, 0.8),
    "fox den": (0.9, 0.3),
    "seven days": (0.8, 0.2),
    "four days": (0.6, 0.4),
}


def weigh(request: Weigh) -> WordWeights:
    """Planted weights; the pieces of the code form are the words, and each weighs half as much."""
    found = words_of(request.answer)
    words, spans = tuple(w for w, _ in found), tuple(s for _, s in found)
    weights = WEIGHTS[request.answer]
    return WordWeights(words, spans, weights, tuple(w.lower() for w in words), tuple(w / 2 for w in weights))


VECTORS = {
    # [CLS], the pieces, [SEP]; "fox" of the answer comes in two pieces, whose mean is (1, 1)
    "big fox": [("[CLS]", (0, 0), (1, 3)), ("big", (0, 3), (1, 0)), ("fo", (4, 6), (0, 2)), ("##x", (6, 7), (2, 0)),
                ("[SEP]", (0, 0), (-1, 0))],
    "fox den": [("[CLS]", (0, 0), (1, 1)), ("fox", (0, 3), (0, 1)), ("den", (4, 7), (1, 0)), ("[SEP]", (0, 0), (0, -1))],
    "seven days": [("[CLS]", (0, 0), (1, 1)), ("seven", (0, 5), (1, 0)), ("days", (6, 10), (0.6, 0.8))],
    "four days": [("[CLS]", (0, 0), (1, 1)), ("four", (0, 4), (1, 0)), ("days", (5, 9), (0, 1))],
}  # fmt: skip


def embed(request: Embed) -> TokenVectors:
    assert request.layer == 1  # the paper found the first layer best
    rows = VECTORS[request.text]
    special = tuple(name.startswith("[") for name, _, _ in rows)
    vectors = np.array([v for *_, v in rows], dtype=np.float32)
    return TokenVectors(tuple(n for n, *_ in rows), (0,) * len(rows), tuple(s for _, s, _ in rows), special, vectors)


def kpqa(spec: str, answer: str, reference: str) -> float:
    models = {"keyphrases": weigh, "encoder": embed}
    return run(spec, models, question="Q?", answer=answer, references=[reference], judge="answer").value


def f(precision: float, recall: float, beta: float = 1.0) -> float:
    """Equation 4 (β = 1: equation 8)."""
    return (1 + beta**2) * recall * precision / (recall + beta**2 * precision)


@pytest.mark.parametrize(
    ("spec", "answer", "reference", "expected"),
    [
        # equation 1: the, fox and one red, the heavier; "steps" is not "step" as written, but by root
        ("bleu1-kpqa", FOX, BOX, (0.1 + 0.6 + 0.9) / 2.1),
        ("bleu1-kpqa[form=ours]", FOX, BOX, (0.1 + 0.6 + 0.9 + 0.3) / 2.1),
        # the program: each red has the mean weight; no brevity penalty at equal length
        ("bleu1-kpqa[form=code]", FOX, BOX, (0.1 + 0.4 + 0.9) / 2.1),
        ("bleu1-kpqa[form=code]", "ape bee", BOX, 0.0),
        # equations 2-5: "red fox" is the longest common subsequence; by root "red fox step"
        ("rouge-l-kpqa", FOX, BOX, f(1.5 / 2.1, 1.3 / 2.0)),
        ("rouge-l-kpqa[beta=2]", FOX, BOX, f(1.5 / 2.1, 1.3 / 2.0, 2)),
        ("rouge-l-kpqa[form=ours]", FOX, BOX, f(1.8 / 2.1, 1.7 / 2.0)),
        # the program adds the reference's weight, whatever the side
        ("rouge-l-kpqa[form=code]", FOX, BOX, f(1.3 / 2.1, 1.3 / 2.0)),
        # the longest one is a run of stop words; ours takes the heaviest
        ("rouge-l-kpqa", "key of the", "of the key", f(0.1, 0.2)),
        ("rouge-l-kpqa[form=ours]", "key of the", "of the key", f(0.9, 0.8)),
        ("rouge-l-kpqa", "ape bee", "bee ape", f(0.7 / 0.9, 0.6)),  # of two equally long ones, the heavier
        # equations 6-8: big is den (1), fox is 45 degrees from both; special tokens take no part
        ("bertscore-kpqa", "big fox", "fox den", f((0.4 + 0.8 / sqrt(2)) / 1.2, (0.9 / sqrt(2) + 0.3) / 1.2)),
        # a number is like an equal number only, and .25 is the cosine of unlike words: days are (.8 - .25) / .75
        ("bertscore-kpqa", "seven days", "four days", f(0.8 + 0.2 * 0.8, 0.6 + 0.4 * 0.8)),
        ("bertscore-kpqa[form=ours]", "seven days", "four days", f(0.2 * 0.55 / 0.75, 0.4 * 0.55 / 0.75)),
    ],
)
def test_kpqa(spec: str, answer: str, reference: str, expected: float) -> None:
    assert kpqa(spec, answer, reference) == pytest.approx(expected, abs=1e-6)


def test_kpqa_precision_is_over_the_answer_and_recall_over_the_reference() -> None:
    """Equations 2 and 3, and the program's version of them: what the evidence calls precision and recall."""
    for form, shares in (("paper", (1.5 / 2.1, 1.3 / 2.0)), ("code", (1.3 / 2.1, 1.3 / 2.0))):
        models = {"keyphrases": weigh, "encoder": embed}
        fields = {"question": "Q?", "answer": FOX, "references": [BOX], "judge": "answer"}
        found = run(f"rouge-l-kpqa[form={form}]", models, **fields).evidence
        assert (found["precision"], found["recall"]) == pytest.approx(shares, abs=1e-6)


def test_kpqa_brevity_penalty_of_the_program() -> None:
    """Two of five pieces said: exp(1 - 5/2)."""
    WEIGHTS["red fox"] = (0.5, 0.3)
    assert kpqa("bleu1-kpqa[form=code]", "red fox", BOX) == pytest.approx(np.exp(1 - 5 / 2), abs=1e-8)
    assert kpqa("bleu1-kpqa", "red fox", BOX) == 1.0


def test_kpqa_bertscore_of_the_program_may_match_special_tokens() -> None:
    """Pieces, [CLS] and [SEP] as targets of weight 0: in the answer, fo (0, 2) is fox, ##x (2, 0) is den."""

    def pieces(request: Weigh) -> WordWeights:
        names = ("big", "fo", "##x") if request.answer == "big fox" else ("fox", "den")
        values = (0.4, 0.5, 0.3) if request.answer == "big fox" else (0.9, 0.3)
        return WordWeights((), (), (), names, values)

    turned = {**VECTORS, "fox den": [("[CLS]", (0, 0), (1, 0)), ("fox", (0, 3), (0, 1)), ("den", (4, 7), (3, 4))]}

    def say(request: Embed) -> TokenVectors:
        kept, VECTORS["fox den"] = VECTORS["fox den"], turned["fox den"]
        try:
            return embed(request)
        finally:
            VECTORS["fox den"] = kept

    # answer: big and ##x are [CLS], fo is fox; reference: fox is fo, den (.6, .8) is nearest to [CLS] (1, 3)/√10
    precision, recall = 1.0, (0.9 + 0.3 * (0.6 + 3 * 0.8) / sqrt(10)) / 1.2
    models = {"keyphrases": pieces, "encoder": say}
    fields = {"question": "Q?", "answer": "big fox", "references": ["fox den"], "judge": "answer"}
    assert run("bertscore-kpqa[form=code]", models, **fields).value == pytest.approx(f(precision, recall), abs=1e-6)


# --- QSTS ------------------------------------------------------------------------------------------------------------


LEMMAS = {"paints": "paint", "painted": "paint", "adams": "adam", "boats": "boat", "ships": "ship"}


def parse(written: str) -> Parsed:
    """word/part of speech/relation/head[/entity]; a head of 0 is the root."""
    words = []
    for i, token in enumerate(written.split()):
        text, pos, relation, head, *entity = token.split("/")
        place = i if head == "0" else int(head) - 1
        lemma = LEMMAS.get(text.lower(), text.lower())
        words.append(Word(text, lemma, pos, "", relation, place, "".join(entity), (0, 0), False))
    return Parsed(tuple(words), (), (), ())


# the embedded parser's labels; universal dependencies call dobj obj and the object of "in" obl
WANTED = "Adams/PROPN/nsubj/2 painted/VERB/ROOT/0 old/ADJ/amod/4 boats/NOUN/dobj/2 in/ADP/prep/2 May/PROPN/pobj/5/DATE"
FOUND = "Adam/PROPN/nsubj/2 paints/VERB/ROOT/0 new/ADJ/amod/4 ships/NOUN/dobj/2 in/ADP/prep/2 May/PROPN/pobj/5/DATE"
TEXTS = {" ".join(t.split("/")[0] for t in written.split()): written for written in (WANTED, FOUND)}
REFERENCE, CANDIDATE = TEXTS
COSINES = {("old", "new"): 0.6, ("boats", "ships"): 0.8}
"""Of words as written; lemmas have none here."""


def vectors(words: tuple[str, ...]) -> Any:
    """Unit vectors with the cosines above; all others are orthogonal."""
    table = np.zeros((len(words), 2 * len(COSINES) + len(words)), dtype=np.float32)
    for i, word in enumerate(words):
        table[i, 2 * len(COSINES) + i] = 1.0
        for k, ((one, other), cosine) in enumerate(COSINES.items()):
            if word == one:
                table[i] = 0.0
                table[i, 2 * k] = 1.0
            elif word == other:
                table[i] = 0.0
                table[i, 2 * k : 2 * k + 2] = cosine, sqrt(1 - cosine**2)
    return table


def classes(question: str) -> QuestionClass:
    fine = {"LOC:other": 0.7, "LOC:city": 0.3} if question == REFERENCE else {"LOC:city": 0.8, "HUM:ind": 0.2}
    return QuestionClass({}, fine)


def qsts(spec: str) -> float:
    models: dict[str, Callable[[Any], Any]] = {
        "parser": lambda r: parse(TEXTS[r.text]),
        "vectors": lambda r: vectors(r.words),
        "classes": lambda r: classes(r.question),
    }
    return run(spec, models, question=CANDIDATE, references=[REFERENCE], judge="question").value


PAPER_EDGES = (0.0 + (0.6 + 0.8) / 2 + (0.8 + 1) / 2 + 1.0) / 4
"""Adams is not Adam; old boats: both ends similar; boats painted: painted and paints share their lemma; May is a name."""


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("qsts-names", 1 / 2),
        ("qsts-edges", PAPER_EDGES),
        ("qsts-class", 0.75),
        ("qsts", (0.75 * 0.5 * PAPER_EDGES) ** (1 / 3)),
        ("qsts[class=off]", (0.5 * PAPER_EDGES) ** (1 / 3)),
        # ours: names without possessive s, dates are words; the class factor is expected: .56 × .75 + .24 × 1
        ("qsts-names[form=ours]", 1.0),
        ("qsts-class[form=ours]", 0.56 * 0.75 + 0.24),
        # the program compares lemmas: Adams is Adam, boat and ship are unlike, the root edge counts,
        # "in" stands between paint and May (prep is ignored, pobj hangs on the stop word "in")
        ("qsts-names[form=code]", 1.0),
        ("qsts-edges[form=code]", (1.0 + 0.6 / 2 + 1 / 2 + 1.0) / 4),
    ],
)
def test_qsts(spec: str, expected: float) -> None:
    assert qsts(spec) == pytest.approx(expected, abs=1e-6)


def test_qsts_our_form_counts_an_edge_of_another_relation_half() -> None:
    """The boats stand as subject of a passive in one text: obj against nsubj, half of (.8 + 1) / 2."""
    other = "ships/NOUN/nsubjpass/3 were/AUX/auxpass/3 painted/VERB/ROOT/0"
    text = "ships were painted"
    models: dict[str, Callable[[Any], Any]] = {
        "parser": lambda r: parse(other if r.text == text else "He/PRON/nsubj/2 painted/VERB/ROOT/0 boats/NOUN/dobj/2"),
        "vectors": lambda r: vectors(r.words),
    }
    for form, expected in (("paper", 0.0), ("ours", 0.45)):
        found = run(f"qsts-edges[form={form}]", models, question=text, references=["He painted boats"])
        assert found.value == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(
    ("noun_or_verb", "expected"),
    [("ships/NOUN/ROOT/0", 0.8), ("ships/VERB/ROOT/0", 0.0)],
)
def test_qsts_a_phrase_after_a_noun_is_nmod_and_after_a_verb_obl(noun_or_verb: str, expected: float) -> None:
    """Universal dependencies keep the two apart (universaldependencies.org, obl and nmod), so the edges of "boats in
    May" match those of the noun only; the name must be the same and leaves the heads' .8."""
    written = {
        "boats in May": "boats/NOUN/ROOT/0 in/ADP/prep/1 May/PROPN/pobj/2",
        "ships in May": f"{noun_or_verb} in/ADP/prep/1 May/PROPN/pobj/2",
    }
    models: dict[str, Callable[[Any], Any]] = {
        "parser": lambda r: parse(written[r.text]), "vectors": lambda r: vectors(r.words),
    }  # fmt: skip
    found = run("qsts-edges", models, question="ships in May", references=["boats in May"])
    assert found.value == pytest.approx(expected, abs=1e-6)


def test_qsts_class_similarity_is_the_papers() -> None:
    steps = {("NUM:date", "NUM:date"): 1, ("NUM:date", "NUM:other"): 0.75, ("NUM:date", "NUM:count"): 0.5}
    assert {pair: class_similarity(*pair) for pair in steps} == steps
    assert class_similarity("NUM:other", "LOC:other") == 0
    sure, unsure = {"NUM:date": 1.0}, {"NUM:count": 0.1, "LOC:city": 0.9}
    assert class_factor(sure, unsure, "paper") == class_factor(sure, unsure, "ours") == 0.0  # .05 is below .1
    assert class_factor(sure, {"NUM:count": 0.3, "LOC:city": 0.7}, "ours") == pytest.approx(0.15)


# --- QuestEval -------------------------------------------------------------------------------------------------------

SOURCE = "Ana and Ben ran to Rome and Oslo ."
SUMMARY = "Ana Lee ran to Rome and Pisa ."
WEIGHT = {"Ana": 0.8, "Ben": 0.5, "Rome": 0.2, "Oslo": 0.4}
UNANSWERABLE = {"Ana": 0.1, "Ben": 0.9, "Rome": 0.25, "Oslo": 0.6}


def spans(request: Parse) -> Parsed:
    """Every run of capitalised words is an entity."""
    words = [
        Word(m.group(), m.group().lower(), "PROPN" if m.group()[0].isupper() else "X", "", "", i, "", m.span(), False)
        for i, m in enumerate(re.finditer(r"\w+|\.", request.text))
    ]
    runs: list[list[int]] = []
    for i, word in enumerate(words):
        if word.pos == "PROPN":
            if runs and runs[-1][1] == i:
                runs[-1][1] = i + 1
            else:
                runs.append([i, i + 1])
    return Parsed(tuple(words), ((0, len(words)),), tuple((a, b, "NAME") for a, b in runs), ())


def read(request: Read) -> Reading:
    """Each text gives its own names back, except Oslo (the source says "and Oslo"); across, names that both hold."""
    asked = request.question.removeprefix("who ")
    if request.text == SUMMARY and asked in UNANSWERABLE:
        there = {"Ana": "Ana Lee", "Rome": "Rome"}.get(asked, "")
        return Reading(there, None, UNANSWERABLE[asked], 0.5)
    if request.text == SOURCE:
        there = {"Ana Lee": "Ana", "Pisa": "", "Oslo": "and Oslo"}.get(asked, asked)
        return Reading(there, None, 0.3, 0.5)
    return Reading(asked, None, 0.2, 0.5)


def questeval(spec: str, **other: Callable[[Any], Any]) -> float:
    models = scripted({
        "parser": spans, "asker": lambda r: (f"who {r.answer}",), "reader": read,
        "weights": lambda r: WEIGHT[r.answer],
        "encoder": lambda r: TokenVectors(("[CLS]", "x"), (0, 1), ((0, 0), (0, 1)), (True, False),
                                          np.array([[0, 1], [1, len(r.text)]], dtype=np.float32)),
        **other,
    })  # fmt: skip
    return run(spec, models, summary=SUMMARY, context=SOURCE, judge="summary").value


PRECISION = (2 / 3 + 1 + 0) / 3
"""F1 of "Ana" with "Ana Lee", Rome, and no answer for Pisa."""
RECALL = (0.8 * 0.9 + 0.5 * 0.1 + 0.2 * 0.75) / (0.8 + 0.5 + 0.2)
"""Ana, Ben and Rome by weight; the question about Oslo is dropped, because its own text answers otherwise."""


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ("questeval[part=precision]", PRECISION),
        ("questeval[part=recall]", RECALL),
        ("questeval[part=recall,weights=uniform]", (0.9 + 0.1 + 0.75) / 3),
        ("questeval[part=recall,filter=off]", (0.8 * 0.9 + 0.5 * 0.1 + 0.2 * 0.75 + 0.4 * 0.4) / 1.9),
        ("questeval[part=recall,filter=overlap]", (0.8 * 0.9 + 0.5 * 0.1 + 0.2 * 0.75 + 0.4 * 0.4) / 1.9),
        ("questeval", 2 * PRECISION * RECALL / (PRECISION + RECALL)),
        ("summaqa[view=f1]", (2 / 3 + 0 + 1) / 3),
        ("qags", PRECISION),
    ],
)
def test_questeval(spec: str, expected: float) -> None:
    assert questeval(spec) == pytest.approx(expected)


def bertscore(one: str, other: str) -> float:
    """Both texts have one piece (1, length) and a [CLS] (0, 1) that can be the nearer one."""
    a, b = ((1, len(t)) / np.hypot(1, len(t)) for t in (one, other))
    precision, recall = max(a @ b, a[1]), max(a @ b, b[1])
    return float(2 * precision * recall / (precision + recall))


def test_questeval_program() -> None:
    """Three scores per question, all in one mean; mean of both directions; no answer is the word "unanswerable"."""
    none = "unanswerable"
    asked = [
        ("Ana", "Ana Lee", 0.7, 2 / 3), ("Rome", "Rome", 0.7, 1), (none, "Pisa", 0.7, 0),
    ]  # fmt: skip
    back = [
        ("Ana Lee", "Ana", 0.9, 2 / 3), (none, "Ben", 0.1, 0), ("Rome", "Rome", 0.75, 1), (none, "Oslo", 0.4, 0),
    ]  # fmt: skip
    parts = [
        np.mean([x for found, wanted, known, f1 in way for x in (known, bertscore(found, wanted), f1)])
        for way in (asked, back)
    ]
    assert questeval("questeval[form=code]") == pytest.approx(np.mean(parts), abs=1e-6)


def test_questeval_asks_every_variant_of_a_question_and_only_ours_caps_them() -> None:
    names = [f"N{chr(65 + k // 26)}{chr(97 + k % 26)}" for k in range(40)]
    long = " and ".join(names) + " ."
    for form, written in (("paper", 80), ("ours", 16)):
        beams = 1 if form == "ours" else 2
        models = scripted({
            "parser": spans, "asker": lambda r: tuple(f"who {r.answer} {k}" for k in range(r.beams)),
            "reader": lambda r: Reading("NAa", None, 0.1, 0.5), "support": lambda r: {"contradicted": 1.0},
        })  # fmt: skip
        spec = f"questeval[form={form},part=precision,filter=off" + (f",beams={beams}]" if beams > 1 else "]")
        found = run(spec, models, summary=long, context=SOURCE, judge="summary")
        assert found.evidence["summary_questions"]["written"] == written
        assert found.value == pytest.approx(1 / 40 if form == "paper" else 0.0, abs=1e-9)
