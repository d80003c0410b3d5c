"""The reader: the same answer whatever the batch, the same probabilities as by hand, any length of text."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from elench.errors import UsageError  # noqa: E402
from elench.models import reader as module  # noqa: E402
from elench.models.base import ModelChoice, load_model  # noqa: E402
from elench.models.long_texts import split, worth_reading  # noqa: E402
from elench.models.reader import Fitted, SpanReader, decode  # noqa: E402
from elench.requests import Read  # noqa: E402
from tests.train.tiny import OTHER, STORY, tiny_bert  # noqa: E402


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An untrained extractive checkpoint, as a user would name it."""
    base = tiny_bert(tmp_path_factory.mktemp("base"))
    place = tmp_path_factory.mktemp("qa")
    torch.manual_seed(5)
    model = transformers.AutoModelForQuestionAnswering.from_pretrained(base)
    torch.nn.init.normal_(model.qa_outputs.weight, std=1.0)
    model.save_pretrained(place)
    transformers.AutoTokenizer.from_pretrained(base).save_pretrained(place)
    return place


@pytest.fixture(scope="module")
def reader(folder: Path) -> SpanReader:
    loaded = load_model(ModelChoice("reader", str(folder)))
    assert isinstance(loaded, SpanReader)
    return loaded


def test_decode_agrees_with_listing_all_spans() -> None:
    rng = np.random.default_rng(0)
    start, end, none = rng.normal(size=40), rng.normal(size=40), 0.3
    spans = {(i, j): start[i] + end[j] for i in range(40) for j in range(i, min(40, i + module.LONGEST))}
    total = math.log(sum(math.exp(v) for v in spans.values()) + math.exp(none))
    found = decode(start, end, none, [(3, 4), (10, 10)])
    assert found.span == max(spans, key=spans.__getitem__)
    assert found.best == pytest.approx(max(spans.values()) - total)
    assert found.none == pytest.approx(none - total)
    assert math.exp(found.gold or 0) == pytest.approx(math.exp(spans[3, 4] - total) + math.exp(spans[10, 10] - total))

    def f1(span: tuple[int, int], place: range) -> float:
        own = range(span[0], span[1] + 1)
        return 2 * len(set(own) & set(place)) / (len(own) + len(place))

    expected = sum(math.exp(v - total) * max(f1(s, range(3, 5)), f1(s, range(10, 11))) for s, v in spans.items())
    assert found.overlap == pytest.approx(expected)


def test_probabilities_are_those_of_the_plain_model(reader: SpanReader, folder: Path) -> None:
    question, text = "Who sold the house?", STORY
    coded = transformers.AutoTokenizer.from_pretrained(folder)(question, text, return_tensors="pt")
    with torch.inference_mode():
        out = reader.network.model(**coded)
    inside = [i for i, part in enumerate(coded.sequence_ids(0)) if part == 1]
    start, end = out.start_logits[0, inside].numpy(), out.end_logits[0, inside].numpy()
    by_hand = decode(start, end, float(out.start_logits[0, 0] + out.end_logits[0, 0]), [])
    reading = reader.answer([Read(question, text)])[0]
    assert reading.unanswerable == pytest.approx(math.exp(by_hand.none), abs=1e-5)
    assert reading.confidence == pytest.approx(math.exp(by_hand.best), abs=1e-5)
    first, last = (coded.token_to_chars(inside[i]) for i in by_hand.span)
    assert reading.best == text[first.start : last.end]


def test_answers_do_not_depend_on_the_batch(reader: SpanReader) -> None:
    requests = [
        Read("Where does Anna live?", STORY, "Oslo"),
        Read("what", OTHER),
        Read("Who?", STORY * 4),
        Read("x", "Rome"),
    ]
    together = reader.answer(requests)
    for request, answer in zip(requests, together, strict=True):
        alone = reader.answer([request])[0]
        assert (alone.answer, alone.span, alone.best) == (answer.answer, answer.span, answer.best)
        assert alone.unanswerable == pytest.approx(answer.unanswerable, abs=1e-5)
        assert alone.gold == pytest.approx(answer.gold, abs=1e-5) if alone.gold is not None else answer.gold is None
        assert 0 <= answer.unanswerable <= 1 and 0 <= answer.confidence <= 1
        if answer.span:
            assert request.text[slice(*answer.span)] == answer.answer
        assert bool(answer.answer) == (answer.unanswerable <= 0.5)


def test_gold_is_found_whatever_its_case_and_none_if_absent(reader: SpanReader) -> None:
    given = [reader.answer([Read("Where?", STORY, gold)])[0].gold for gold in ("Oslo", "oslo.", "Paris", "sl", "")]
    assert given[0] is not None and given[0] == given[1]
    assert given[2:] == [None, None, None]


def test_empty_text_has_no_answer(reader: SpanReader) -> None:
    reading = reader.answer([Read("Who?", "  ")])[0]
    assert (reading.answer, reading.span, reading.unanswerable) == ("", None, 1.0)


def test_long_texts_are_read_where_they_speak_of_the_question(
    reader: SpanReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    filler = "He cooks fish every day. " * 400
    text = filler + "Smiths in Toledo made swords of iron. " + filler
    read = []
    forward = reader.logits

    def watch(pairs: list[tuple[list[int], tuple[int, ...]]]) -> list[tuple[object, object, float]]:
        read.extend(reader.tokens.decode(t) for _, t in pairs)
        return forward(pairs)  # type: ignore[return-value]

    monkeypatch.setattr(reader, "logits", watch)
    reader.answer([Read("Where did smiths made swords?", text)])
    assert len(read) == reader.most and any("toledo" in window for window in read)
    read.clear()
    assert reader.answer([Read("Where?", text, "Toledo")])[0].gold is not None, (
        "the gold answer's window is always read"
    )


def test_windows_cover_the_text_and_overlap() -> None:
    text = " ".join(f"w{i}" for i in range(1000))
    spans = [(m, m + 2) for m in range(1000)]
    windows = split(text, range(1000), spans, 224, 64)
    covered = {i for a, b in windows.ranges for i in range(a, b)}
    assert covered == set(range(1000)) and all(b - a == 224 for a, b in windows.ranges)
    assert all(a2 <= b1 - 64 for (_, b1), (a2, _) in zip(windows.ranges, windows.ranges[1:], strict=False))
    assert len(worth_reading(windows, "what is w7", 4)) == 4
    assert split("a", [1], [(0, 1)], 224, 64).ranges == ((0, 1),)


def test_a_text_to_text_reader_takes_the_role(tmp_path: Path, folder: Path) -> None:
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    torch.manual_seed(0)
    config = transformers.T5Config(
        vocab_size=len(tokenizer), d_model=16, d_kv=8, d_ff=32, num_layers=1, num_heads=2,
        pad_token_id=0, eos_token_id=3, decoder_start_token_id=0,
    )  # fmt: skip
    transformers.T5ForConditionalGeneration(config).save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    model = load_model(ModelChoice("reader", str(tmp_path)))
    requests = [Read("Who?", STORY, "Dora"), Read("Where did smiths made swords?", OTHER)]
    together = model.answer(requests)
    assert len(together) == 2 and together[1].gold is None
    for request, answer in zip(requests, together, strict=True):
        alone = model.answer([request])[0]
        assert alone.answer == answer.answer
        assert alone.unanswerable == pytest.approx(answer.unanswerable, abs=1e-5)
    assert 0 < (together[0].gold or 0) < 1


def test_a_missing_folder_is_said_in_one_line() -> None:
    with pytest.raises(UsageError, match="no such folder"):
        load_model(ModelChoice("reader", "./nowhere"))


@pytest.mark.embedded
def test_the_shipped_reader_answers_and_declines() -> None:
    model = load_model(ModelChoice("reader"))
    text = "The Rhine rises in the Swiss Alps and flows through Basel and Cologne into the North Sea."
    good, bad = model.answer([Read("Where does the Rhine rise?", text), Read("Who wrote the opera Carmen?", text)])
    assert "Swiss Alps" in good.answer
    assert bad.answer == "" and bad.unanswerable > good.unanswerable


def test_a_calibrated_reader_scales_and_shifts_the_odds_of_no_answer_and_keeps_the_order_of_spans() -> None:
    start, end, none = np.log([0.5, 0.25]), np.log([0.25, 0.5]), np.log(0.1)
    spans = 0.5 * 0.25 + 0.5 * 0.5 + 0.25 * 0.5  # first token, both, second token: by hand
    plain, changed = decode(start, end, none, []), decode(start, end, none, [], Fitted((0.5, 1.0)))
    assert plain.none == pytest.approx(np.log(0.1 / (0.1 + spans)))
    odds = np.exp(0.5 * np.log(0.1 / spans) + 1.0)
    assert changed.none == pytest.approx(np.log(odds / (1 + odds)))
    assert changed.span == plain.span == (0, 1)


def test_the_usual_length_parts_two_answers_that_were_joined() -> None:
    # tokens 0 and 2 are both likely answers; first and last apart, "0 to 2" is the likeliest span
    start, end = np.log([0.55, 0.05, 0.40]), np.log([0.40, 0.05, 0.55])
    usual = tuple(np.log([0.6, 0.3, 0.1]))
    plain, fitted = (decode(start, end, -20.0, [(2, 2)], f) for f in (Fitted(), Fitted(lengths=usual)))
    assert plain.span == (0, 2) and fitted.span in ((0, 0), (2, 2))
    # by hand: first × last × usual length of the spans 0, 1, 2, 0-1, 1-2, 0-2
    one, two, three = 0.6 * np.array([0.22, 0.0025, 0.22]), 0.3 * np.array([0.0275, 0.0275]), 0.1 * 0.3025
    total = one.sum() + two.sum() + three
    assert fitted.gold == pytest.approx(np.log(one[2] / total)) and fitted.best == pytest.approx(np.log(one[0] / total))
    # a length beyond the last known one counts like it
    assert decode(start, end, -20.0, [], Fitted(lengths=usual[:2])).best == pytest.approx(
        np.log(one[0] / (one.sum() + two.sum() + 0.3 * 0.3025))
    )
