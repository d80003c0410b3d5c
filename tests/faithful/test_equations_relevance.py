"""QRelScore and QAScore as printed, on scripted models: every expected number is worked out by hand beside it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from elench.metrics.qascore import by_word, prompt
from elench.metrics.qrelscore import pick_layers, power_mean, rescaled
from elench.models.encoder import _mean
from elench.models.relating import reduce
from elench.requests import Continue, Recover, Relate, Relevance, TokenScores
from tests.scripted import run, scripted

QUESTION, CONTEXT = "Who fed it?", "Ada fed it."
# two layers, two question pieces, three context pieces; the attention is already the maximum over heads
ATTENTION = np.array([[[0.2, 0.4, 0.1], [0.3, 0.1, 0.6]], [[0.5, 0.25, 0.25], [0.1, 0.2, 0.2]]])
COSINE = np.array([[[0.5, 0.9, -0.2], [0.1, 0.8, 0.5]], [[0.2, 0.8, 0.6], [0.9, 0.4, 0.3]]])


def encoder(request: Relate) -> Relevance:
    return reduce(request, ATTENTION, COSINE, ("who", "fed"), ("ada", "fed", "it"))


def scores(*logprobs: float, chunks: int = 1) -> TokenScores:
    spans = tuple((4 * k, 4 * k + 3) for k in range(len(logprobs)))
    return TokenScores(("x",) * len(logprobs), spans, logprobs, chunks)


def causal(request: Continue) -> TokenScores:
    """Σ log p is -10 for the context alone, -8 after the question and a new line, -9 after a blank."""
    plain = {
        "": scores(-2.0, -3.0, -5.0),
        f"{QUESTION}\n": scores(-1.5, -2.0, -4.5),
        f"{QUESTION} ": scores(-2.0, -2.0, -5.0),
    }
    if not request.end:
        return plain[request.prefix]
    assert request.prefix == ""
    found = {CONTEXT: (0.5, 0.25), f"{QUESTION} {CONTEXT}": (0.6, 0.5, 0.4)}[request.target]
    return scores(*map(math.log, found))


def value(spec: str, **more: Any) -> float:
    models = {"encoder": encoder, "causal": causal}
    return run(spec, models, question=QUESTION, context=CONTEXT, judge="question", **more).value


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        # peak: layer 1 rows [.25 .9 -.05] and [.05 .13 .5] -> (.9 + .5)/2; layer 2 [.2 .4 .3] and [.45 .4 .3] -> .425
        ("", (0.7 + 0.425) / 2),
        ("[p=2]", math.sqrt((0.49 + 0.180625) / 2)),
        ("[p=0.5]", ((math.sqrt(0.7) + math.sqrt(0.425)) / 2) ** 2),
        ("[layers=1]", 0.7),
        ("[layers=2]", 0.425),
        # raw: (.36 + .3)/2 and (.2 + .09)/2
        ("[attention=raw]", (0.33 + 0.145) / 2),
        # hard: the cosine at the row's peak, the first of two equal ones: (.9 + .5)/2 and (.2 + .4)/2
        ("[attention=hard]", (0.7 + 0.3) / 2),
        # rows (.25 + .9 - .05)/3 and (.05 + .8/6 + .5)/3; (.2 + .4 + .3)/3 and (.45 + .4 + .3)/3
        ("[aggregate=mean]", (1.1 + 0.55 + 0.8 / 6 + 0.9 + 1.15) / 12),
        # transport, rows 1/2 and columns 1/3: .9/3 + .25/6 + .5/3 + .05/6, and .45/3 + .4/3 + .3/3
        ("[aggregate=mover]", (0.51666667 + 0.38333333) / 2),
        # the program loses the last piece on both sides: the cosines at the peaks of [.2 .4] and [.5 .25]
        ("[form=code]", (0.9 + 0.2) / 2),
    ],
)
def test_qrelscore_local_relevance(options: str, expected: float) -> None:
    assert value(f"qrel-lrm{options}") == pytest.approx(expected, abs=1e-7)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ("", (-8 + 10) / 10),
        ("[separator=blank]", (-9 + 10) / 10),
        ("[gain=absolute]", -8 + 10),
        ("[gain=rate]", 0.2 / 3),  # three words in the question
        ("[form=code]", (0.5 - 0.375) / 0.375),  # mean probabilities of everything read, question and end included
    ],
)
def test_qrelscore_global_relevance(options: str, expected: float) -> None:
    assert value(f"qrel-grg{options}") == pytest.approx(expected)


def test_qrelscore_a_question_that_makes_the_context_less_likely_gains_nothing() -> None:
    worse = {"encoder": encoder, "causal": lambda r: scores(-12.0 if r.prefix else -10.0)}
    fields = {"question": QUESTION, "context": CONTEXT, "judge": "question"}
    assert run("qrel-grg", worse, **fields).value == run("qrelscore", worse, **fields).value == 0.0


def test_qrelscore_is_the_harmonic_mean_of_both() -> None:
    assert value("qrelscore") == pytest.approx(2 * 0.5625 * 0.2 / (0.5625 + 0.2))
    lrm, grg = 0.55, 1 / 3
    assert value("qrelscore[form=code]") == pytest.approx(2 * lrm * grg / (lrm + grg + 1e-8), abs=1e-12)


def test_ref_qrelscore_is_the_mean_of_context_and_best_reference() -> None:
    gains = {CONTEXT: -8.0, "Who fed it": -7.0, "Who?": -9.0}
    models = {"encoder": encoder, "causal": lambda r: scores(gains[r.target] if r.prefix else -10.0)}
    against = {text: 2 * 0.5625 * g / (0.5625 + g) for text, g in ((CONTEXT, 0.2), ("Who fed it", 0.3))}
    found = run("ref-qrelscore", models, question=QUESTION, context=CONTEXT, references=["Who?", "Who fed it"])
    assert found.value == pytest.approx(sum(against.values()) / 2)


def test_qrelscore_averages_the_parts_of_a_long_context() -> None:
    """§3: chunks that the model accepts are read one by one; their scores are averaged."""
    text = "aaa bbb ccc ddd"
    gains = {"aaa bbb ": (-4.0, -3.0), "ccc ddd": (-4.0, -2.0)}

    def say(request: Continue) -> TokenScores:
        if request.target == text:
            return scores(-1.0, -1.0, -1.0, -1.0, chunks=3)  # three windows, each half a window on: two parts
        return scores(gains[request.target][bool(request.prefix)])

    found = run("qrel-grg", {"causal": say}, question=QUESTION, context=text, judge="question")
    assert found.value == pytest.approx((1 / 4 + 2 / 4) / 2)
    parts = [Relevance((v, w), ("who",), (("a",), ("b",)), ((v,), (w,))) for v, w in ((0.2, 0.6), (0.4, 1.0))]
    assert _mean(parts).layers == pytest.approx((0.3, 0.8))


def test_qrelscore_layers_of_table_3_and_equations_3_and_5() -> None:
    named = {"first": [0, 1, 2, 3], "middle": [4, 5, 6, 7], "last": [8, 9, 10, 11], "specific": [0, 3, 7, 11]}
    assert {name: pick_layers(name, 12) for name in named} == named
    assert pick_layers("all", 12) == list(range(12))
    assert power_mean((0.1, 0.4, 0.7), 3) == pytest.approx(((0.001 + 0.064 + 0.343) / 3) ** (1 / 3))
    assert rescaled(0.6, 0.2) == pytest.approx(0.4 / 0.8)


# --- QAScore ---------------------------------------------------------------------------------------------------------

FED = {"context": CONTEXT, "question": QUESTION, "answer": "old Ada", "judge": "question"}


@pytest.mark.parametrize(("options", "expected"), [("", -1.75), ("[reduce=mean]", -0.875), ("[form=code]", -2.0)])
def test_qascore_sums_the_words_of_the_answer(options: str, expected: float) -> None:
    """Equation 12: Σ l_w; the program takes the mean over its masks, one per piece."""
    said = {"paper": scores(-0.5, -1.25), "code": scores(-1.0, -2.0, -3.0)}
    models = scripted({"masked": lambda r: said[r.form]})
    assert run(f"qascore{options}", models, **FED).value == pytest.approx(expected)
    form = "code" if "code" in options else "paper"
    assert models.loaded["masked"].asked == [Recover(CONTEXT, QUESTION, "old Ada", form)]


def test_qascore_only_the_program_reads_blanks_around_the_answer() -> None:
    """Checked on the program itself: " the  old bridge " and the same without outer blanks differ by .04."""
    models = scripted({"masked": lambda r: scores(-1.0)})
    for form in ("paper", "code"):
        run(f"qascore[form={form}]", models, **{**FED, "answer": " Ada "})
    assert [r.answer for r in models.loaded["masked"].asked] == ["Ada", " Ada "]


def test_qascore_with_a_causal_model_sums_the_pieces_of_each_word() -> None:
    pieces = TokenScores((" o", "ld", " Ad", "a"), ((0, 2), (2, 4), (4, 7), (7, 8)), (-1.0, -0.5, -2.0, -0.25))
    models = scripted({"causal": lambda r: pieces})
    found = run("qascore[form=causal]", models, **FED)
    assert found.value == -3.75 and found.evidence["words"] == [["old", -1.5], ["Ada", -2.25]]
    assert run("qascore[form=causal,reduce=mean]", models, **FED).value == -1.875
    written = f"{CONTEXT}\n\nQuestion: {QUESTION}\nAnswer:"
    assert models.loaded["causal"].asked == [Continue(written, " old Ada")] * 2
    assert prompt(CONTEXT, QUESTION) == written
    assert by_word("a b", TokenScores(("a", " b"), ((0, 1), (1, 3)), (-1.0, -2.0))) == [("a", -1.0), ("b", -2.0)]
