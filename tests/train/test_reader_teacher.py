"""A reader as teacher: its probabilities stand at the pupil's tokens, and are half of what is learnt."""

from __future__ import annotations

from collections import defaultdict
from math import log
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from elench.cli.train import command  # noqa: E402
from elench.errors import UsageError  # noqa: E402
from elench.models.shipped import shipped_folder  # noqa: E402
from elench.train.reader import span_loss  # noqa: E402
from elench.train.reader_examples import NEGATIVES, EpochSampler, corpora, crop, tokenised  # noqa: E402
from elench.train.reader_teacher import retold  # noqa: E402
from tests.train.tiny import tiny_bert, tiny_corpora  # noqa: E402


def test_probabilities_stand_where_the_pupils_tokens_begin_and_end() -> None:
    # "to Rome." – the teacher: "to", "Ro", "me", "."; the pupil: "to", "Rome."
    teacher, pupil = [(0, 2), (3, 5), (5, 7), (7, 8)], [(0, 2), (3, 8)]
    start, end = np.array([0.1, 0.2, 0.4, 0.2, 0.1]), np.array([0.1, 0.1, 0.2, 0.5, 0.1])
    found = retold(start, end, teacher, pupil)
    np.testing.assert_allclose(found, [[0.1, 0.2, 0.7], [0.1, 0.1, 0.8]], rtol=1e-6)
    # and the other way round: a long token begins with its first part and ends with its last
    back = retold(np.array([0.1, 0.2, 0.7]), np.array([0.1, 0.1, 0.8]), pupil, teacher)
    np.testing.assert_allclose(back, [[0.1, 0.2, 0.7, 0, 0], [0.1, 0.1, 0, 0, 0.8]], rtol=1e-6)


def test_a_piece_knows_its_words(tmp_path: Path) -> None:
    tokenizer = transformers.AutoTokenizer.from_pretrained(tiny_bert(tmp_path / "base"))
    sampler = EpochSampler(tokenised(corpora(tiny_corpora(tmp_path / "data"))[0], tokenizer), tokenizer)
    rng = np.random.default_rng(0)
    sources: dict[str, Any] = defaultdict(lambda: sampler.sources)
    negatives = [sampler.negative(k, s, sources, 9, rng) for k in NEGATIVES for s in sampler.sources for _ in range(9)]
    assert any(piece and piece.begin for piece in negatives)
    pieces = [piece for epoch in range(8) for piece in sampler(rng, epoch)] + [p for p in negatives if p]
    pieces += [crop(source, 4, rng) for source in sampler.sources for _ in range(9)]
    for piece in pieces:
        words, places = piece.window
        assert tuple(tokenizer(words, add_special_tokens=False)["input_ids"]) == piece.text
        assert len(places) == len(piece.text) and places[0][0] == 0 and places[-1][1] == len(words)
        assert tuple(tokenizer(piece.asked, add_special_tokens=False)["input_ids"])[:48] == piece.question[:48]


def test_half_of_the_loss_is_the_teachers() -> None:
    said = torch.log(torch.tensor([[0.5, 0.25, 0.25]]))

    def model(input_ids: Any) -> Any:
        return type("Out", (), {"start_logits": said, "end_logits": said})

    batch = {
        "input_ids": torch.zeros(1, 3, dtype=torch.long), "allowed": torch.ones(1, 3, dtype=torch.bool),
        "start": torch.tensor([1]), "end": torch.tensor([2]),
    }  # fmt: skip
    assert float(span_loss(model, batch)) == pytest.approx(-log(0.25))
    soft = torch.tensor([[[0.6, 0.4, 0.0]], [[0.2, 0.0, 0.8]]])
    first, last = -(0.6 * log(0.5) + 0.4 * log(0.25)), -(0.2 * log(0.5) + 0.8 * log(0.25))
    assert float(span_loss(model, {**batch, "soft": soft})) == pytest.approx((-log(0.25) + (first + last) / 2) / 2)


def test_command_learns_from_a_stored_reader_and_refuses_another_folder(tmp_path: Path) -> None:
    base, data = tiny_bert(tmp_path / "base"), tiny_corpora(tmp_path / "data")
    run = ["reader", "--data", str(data), "--base", str(base), "--steps", "3"]
    weights = []
    for name, more in (("alone", []), ("taught", ["--teacher", str(shipped_folder("reader"))])):
        CliRunner().invoke(command, [*run, "--out", str(tmp_path / name), *more], catch_exceptions=False)
        weights.append((tmp_path / name / "weights.safetensors").read_bytes())
        card = (tmp_path / name / "card.md").read_text()
        assert ("**teacher**: elench reader of " in card) == (name == "taught")
    assert weights[0] != weights[1]
    with pytest.raises(UsageError, match="holds no stored reader"):
        CliRunner().invoke(
            command, [*run, "--out", str(tmp_path / "x"), "--teacher", str(base)], catch_exceptions=False
        )
