"""The KPQA metrics: the equations a second time, the paper's examples, and what happens at the edges."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

from elench.engine.drive import Driver  # noqa: E402
from elench.errors import Unscored, UsageError  # noqa: E402
from elench.metrics import metric  # noqa: E402
from elench.metrics.kpqa import Side, clipped, code_bleu, code_lcs, common_subsequence, f_measure  # noqa: E402
from elench.models.base import ModelSet  # noqa: E402
from elench.records.record import Record  # noqa: E402
from elench.requests import Failure, WordWeights  # noqa: E402
from elench.show.evidence import evidence_text  # noqa: E402
from elench.text.roots import is_number, root, words_of  # noqa: E402
from tests.metrics import second_kpqa as second  # noqa: E402
from tests.tiny import tiny  # noqa: E402

NAMES = ("bleu1-kpqa", "rouge-l-kpqa", "bertscore-kpqa")
TEXTS = st.lists(st.tuples(st.sampled_from("abcd"), st.floats(0.01, 1.0)), min_size=1, max_size=6)


def made(words: list[tuple[str, float]]) -> Side:
    names = tuple(w for w, _ in words)
    return Side(names, names, np.array([k for _, k in words]))


@cache
def classifier() -> Path:
    """A token classifier with random weights on the tiny BERT."""
    folder = tiny("bert").parent / "kpqa-classifier"
    torch.manual_seed(5)
    config = transformers.BertConfig.from_pretrained(tiny("bert"), num_labels=2)
    transformers.BertForTokenClassification(config).save_pretrained(folder)
    transformers.AutoTokenizer.from_pretrained(tiny("bert")).save_pretrained(folder)
    return folder


@cache
def models() -> ModelSet:
    return ModelSet({"encoder": str(tiny("bert")), "keyphrases": str(classifier())})


def score(spec: str, answer: str, *references: str, question: str = "who wrote the great old book ?") -> Any:
    record = Record(id="1", question=question, answer=answer, references=tuple(references), judge="answer")
    (result,) = Driver(models()).run([metric(spec).score(record)])
    if isinstance(result, Failure):
        raise result.error
    return result


@settings(max_examples=60, deadline=None)
@given(TEXTS, TEXTS, st.sampled_from([0.5, 1.0, 1.2]), st.booleans())
def test_lexical_kernels_agree_with_the_plain_ones(
    said: list[tuple[str, float]], wanted: list[tuple[str, float]], beta: float, longest: bool
) -> None:
    ours, theirs = made(said), made(wanted)
    pairs = clipped(ours, theirs)
    assert sum(ours.weights[i] for i, _ in pairs) / ours.total == pytest.approx(second.bleu1(said, wanted), abs=1e-6)
    pairs = common_subsequence(ours, theirs, longest)
    assert pairs == sorted(pairs) and all(ours.keys[i] == theirs.keys[j] for i, j in pairs)
    precision = sum(ours.weights[i] for i, _ in pairs) / ours.total
    recall = sum(theirs.weights[j] for _, j in pairs) / theirs.total
    plain = second.rouge_l(said, wanted, beta, longest)
    assert f_measure(precision, recall, beta) == pytest.approx(plain, abs=1e-6)
    assert code_bleu(ours, theirs) == pytest.approx(second.code_bleu1(said, [w for w, _ in wanted]), abs=1e-6)
    shared = code_lcs(ours, theirs)
    value = f_measure(shared / ours.total, shared / theirs.total, 1.0)
    assert value == pytest.approx(second.code_rouge_l(said, wanted), abs=1e-6)


ANSWER, REFERENCE = "jane austen wrote 4 books in the city", "austen wrote the 7 old books by the river"


def piece_weights(question: str, answer: str, form: str) -> tuple[list[str], list[float], list[tuple[int, int]]]:
    """The tiny classifier's weights, one pair at a time, straight from transformers."""
    model = transformers.AutoModelForTokenClassification.from_pretrained(classifier()).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(classifier())
    asked = tokenizer(question, add_special_tokens=False)["input_ids"]
    coded = tokenizer(answer, add_special_tokens=False, return_offsets_mapping=True)
    if form == "code" and not question:
        ids, types = [2, *coded["input_ids"], 3], [0] * (len(coded["input_ids"]) + 2)
    else:
        ids = [2, *asked, 3, *coded["input_ids"], 3]
        types = [int(form == "code"), *[0] * (len(asked) + 1), *[1] * (len(coded["input_ids"]) + 1)]
    with torch.no_grad():
        logits = model(input_ids=torch.tensor([ids]), token_type_ids=torch.tensor([types])).logits[0]
    weights = torch.softmax(logits, -1)[-1 - len(coded["input_ids"]) : -1, 0].tolist()
    return tokenizer.convert_ids_to_tokens(coded["input_ids"]), weights, coded["offset_mapping"]


def word_weights(question: str, answer: str, key: Callable[[str], str] = str.lower) -> list[tuple[str, float]]:
    _, weights, places = piece_weights(question, answer, "paper")
    found = []
    for word, (start, end) in words_of(answer):
        own = [k for k, (a, b) in zip(weights, places, strict=True) if a < end and start < b]
        found.append((key(word), sum(own) / len(own)))
    return found


@pytest.mark.parametrize("on", [True, False])
@pytest.mark.parametrize(("form", "key", "longest"), [("paper", str.lower, True), ("ours", root, False)])
def test_paper_and_our_form_end_to_end(on: bool, form: str, key: Callable[[str], str], longest: bool) -> None:
    asked, off = ("who wrote it ?", "") if on else ("", ",question=off")
    said, wanted = word_weights(asked, ANSWER, key), word_weights(asked, REFERENCE, key)
    value = score(f"bleu1-kpqa[form={form}{off}]", ANSWER, REFERENCE, question="who wrote it ?").value
    assert value == pytest.approx(second.bleu1(said, wanted), abs=1e-5)
    value = score(f"rouge-l-kpqa[form={form},beta=1.2{off}]", ANSWER, REFERENCE, question="who wrote it ?").value
    assert value == pytest.approx(second.rouge_l(said, wanted, 1.2, longest), abs=1e-5)


@pytest.mark.parametrize("on", [True, False])
def test_code_form_end_to_end(on: bool) -> None:
    asked, off = ("who wrote it ?", "") if on else ("", ",question=off")
    ours, theirs = piece_weights(asked, ANSWER, "code"), piece_weights(asked, REFERENCE, "code")
    said, wanted = list(zip(*ours[:2], strict=True)), list(zip(*theirs[:2], strict=True))
    value = score(f"bleu1-kpqa[form=code{off}]", ANSWER, REFERENCE, question="who wrote it ?").value
    assert value == pytest.approx(second.code_bleu1(said, theirs[0]), abs=1e-5)
    value = score(f"rouge-l-kpqa[form=code{off}]", ANSWER, REFERENCE, question="who wrote it ?").value
    assert value == pytest.approx(second.code_rouge_l(said, wanted), abs=1e-5)


@pytest.mark.parametrize("spec", ["[form=ours]", "[layer=2]", "[form=code]"])
def test_bertscore_end_to_end(spec: str) -> None:
    question, form = "who wrote it ?", "code" if "code" in spec else "paper"
    layer = 2 if "layer=2" in spec else 1
    model = transformers.AutoModel.from_pretrained(tiny("bert")).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(tiny("bert"))

    def vectors(text: str) -> tuple[Any, list[float], list[str]]:
        coded = tokenizer(text, return_tensors="pt", return_offsets_mapping=True)
        places = coded.pop("offset_mapping")[0].tolist()[1:-1]
        with torch.no_grad():
            rows = model(**coded, output_hidden_states=True).hidden_states[layer][0]
        if form == "code":  # [CLS] and [SEP] are there to be matched, with no weight of their own
            pieces, weights, _ = piece_weights(question, text, form)
            return rows, [0.0, *weights, 0.0], ["[CLS]", *pieces, "[SEP]"]
        rows = rows[1:-1]
        words = [
            rows[[n for n, (a, b) in enumerate(places) if a < end and start < b]].mean(0)
            for _, (start, end) in words_of(text)
        ]
        return torch.stack(words), [k for _, k in word_weights(question, text)], [w for w, _ in words_of(text)]

    ours, said, left = vectors(ANSWER)
    theirs, wanted, right = vectors(REFERENCE)
    strict = "ours" in spec
    banned = torch.tensor(
        [[strict and (is_number(a) or is_number(b)) and root(a) != root(b) for b in right] for a in left]
    )
    plain = second.bertscore(ours, said, theirs, wanted, 0.25 if strict else 0.0, banned)
    assert score(f"bertscore-kpqa{spec}", ANSWER, REFERENCE, question=question).value == pytest.approx(plain, abs=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_same_text_scores_one_and_unrelated_less(name: str) -> None:
    assert score(name, "Jane Austen wrote it", "jane austen wrote it").value == pytest.approx(1.0, abs=1e-6)
    assert score(name, "the king", "jane austen wrote it").value < 0.9


@pytest.mark.parametrize("name", NAMES)
def test_best_reference_wins_and_is_named(name: str) -> None:
    result = score(name, "jane austen", "the king", "jane austen", "the river")
    assert result.value == pytest.approx(1.0) and result.evidence["reference"] == "jane austen"
    assert score(f"{name}[references=mean]", "jane austen", "the king", "jane austen").value < 1.0


@pytest.mark.parametrize("name", NAMES)
def test_evidence_has_the_words_their_weights_and_matches(name: str) -> None:
    result = score(name, "jane austen, in 1813", "it was austen")
    assert [w for w, _ in result.evidence["answer_words"]] == ["jane", "austen", "in", "1813"]
    assert any((i, j) == (1, 2) for i, j, _ in result.evidence["matches"])
    json.dumps(result.evidence)
    shown = evidence_text(result.evidence)
    assert "austen" in shown and "precision" in shown


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "answer, references, reason",
    [
        ("", ("jane",), "empty answer"),
        ("?!", ("jane",), "no word in the answer"),
        ("jane", (), "no reference"),
        ("jane", ("...",), "no word in any reference"),
    ],
)
def test_what_cannot_be_scored_says_why(name: str, answer: str, references: tuple[str, ...], reason: str) -> None:
    with pytest.raises(Unscored, match=reason):
        score(name, answer, *references)


def test_no_question_is_a_reason_unless_it_is_off() -> None:
    with pytest.raises(Unscored, match="empty question"):
        score("bleu1-kpqa", "jane", "jane", question=" ")
    assert score("bleu1-kpqa[question=off]", "jane", "jane", question=" ").value == 1.0


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("form", ["paper", "code", "ours"])
@pytest.mark.parametrize(
    "answer, reference",
    [
        ("who wrote the great old book ?", "jane austen wrote the great old book ."),
        ("yes", "no"),
        ("yes .", "yes , she wrote it ."),
        ("5 to 20 hours", "seven hours"),
        ("the " * 2000, "the king in the new city"),
        ("¿Dónde? 東京 — naïve", "東京"),
    ],
)
def test_edge_cases_are_numbers_between_zero_and_one(name: str, form: str, answer: str, reference: str) -> None:
    value = score(f"{name}[form={form}]", answer, reference).value
    assert 0.0 <= value <= 1.0 or (form == "code" and name == "rouge-l-kpqa" and value > 0)  # its program has no cap


def test_only_our_form_tells_numbers_apart_and_knows_their_words() -> None:
    assert score("bertscore-kpqa[form=ours]", "four", "seven").value == 0.0
    assert score("bertscore-kpqa", "four", "seven").value > 0.0
    assert score("bleu1-kpqa[form=ours]", "4 steps", "four step").value == pytest.approx(1.0)
    assert score("bleu1-kpqa", "4 steps", "four step").value == 0.0


def test_the_longest_subsequence_counts_in_the_paper_and_the_heaviest_in_ours() -> None:
    said, wanted = made([("a", 0.1), ("b", 0.1), ("k", 1.0)]), made([("k", 1.0), ("a", 0.1), ("b", 0.1)])
    assert common_subsequence(said, wanted, longest=True) == [(0, 1), (1, 2)]
    assert common_subsequence(said, wanted, longest=False) == [(2, 0)]


def test_bad_parameters_are_refused() -> None:
    for spec in ("rouge-l-kpqa[beta=0]", "bertscore-kpqa[rescale=0]", "bertscore-kpqa[layer=-1]", "bleu1-kpqa[form=x]"):
        with pytest.raises(UsageError):
            metric(spec)


@pytest.mark.embedded
def test_figure_1_a_wrong_number_costs_more_than_half() -> None:
    """The paper's Figure 1, with the shipped keyphrase model and the embedded encoder."""
    from elench.engine.scoring import score as run
    from elench.metrics.kpqa import EXAMPLE

    right = {**EXAMPLE, "id": "right", "answer": "There are four steps involved in a hypothesis test."}
    polar = {"question": "Was the letter mailed?", "judge": "answer", "references": ["yes, it was mailed"]}
    records = [
        EXAMPLE,
        right,
        {**polar, "id": "yes", "answer": "yes"},
        {**polar, "id": "no", "answer": "no, it was not"},
    ]
    names = [f"{name}[form=ours]" for name in NAMES]
    result = run(records, ["bleu[n=1]", "rouge-l", "bertscore[layer=1]", *NAMES, *names], cache=False)
    for plain, weighted in zip(("bleu[n=1]", "rouge-l", "bertscore[layer=1]"), names, strict=True):
        before, after = result[plain, "figure-1"], result[weighted, "figure-1"]
        assert after < before / 2 and result[weighted, "right"] > 0.9
        assert result[weighted, "yes"] > 0.6 > 0.4 > result[weighted, "no"]
    for plain, weighted in (("bleu[n=1]", "bleu1-kpqa"), ("rouge-l", "rouge-l-kpqa")):
        assert result[weighted, "figure-1"] < result[plain, "figure-1"] / 2


@pytest.mark.parametrize(("spec", "value"), [("rouge-l-kpqa", 0.2 / 1.2), ("rouge-l-kpqa[form=ours]", 1 / 1.2)])
def test_the_form_decides_which_common_subsequence_counts(spec: str, value: float) -> None:
    """By hand: "a b" is the longest, weight .2 of 1.2 on both sides; "k" the heaviest, weight 1 of 1.2."""
    steps = metric(spec).compare("a b k", "k a b", Record(id="1", question="q", judge="answer")).__await__()  # type: ignore[attr-defined]
    next(steps)
    spans = ((0, 1), (2, 3), (4, 5))
    said, wanted = (
        WordWeights(("a", "b", "k"), spans, (0.1, 0.1, 1.0)),
        WordWeights(("k", "a", "b"), spans, (1.0, 0.1, 0.1)),
    )
    with pytest.raises(StopIteration) as done:
        steps.send([said, wanted])
    assert done.value.value.value == pytest.approx(value)
