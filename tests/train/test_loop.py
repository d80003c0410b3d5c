"""The training loop: like lengths together, bounded, and the same result whether interrupted or not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from elench.train.loop import (  # noqa: E402
    Schedule,
    Trainer,
    TrainingRun,
    buckets,
    fit,
    freeze,
    halfway,
    save_checkpoint,
    slope,
    write_card,
)


def test_buckets_use_every_example_once_and_pad_little() -> None:
    rng = np.random.default_rng(0)
    lengths = [int(n) for n in rng.integers(5, 300, size=1003)]
    batches = buckets(lengths, 8, rng)
    assert sorted(i for b in batches for i in b) == list(range(1003))
    padded = sum(max(lengths[i] for i in b) * len(b) for b in batches)
    assert padded < 1.1 * sum(lengths)
    starts = [lengths[b[0]] for b in batches]
    assert starts != sorted(starts), "short batches must not all come first"


def test_learning_rate_rises_then_falls_to_zero() -> None:
    assert slope(0.05, 0.1) == pytest.approx(0.5)
    assert slope(0.1, 0.1) == pytest.approx(1.0)
    assert slope(0.55, 0.1) == pytest.approx(0.5)
    assert slope(1.0, 0.1) == 0.0


def _trainer(stop_at: int = 10**9) -> Trainer[Any]:
    torch.manual_seed(1)
    model = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
    seen = [0]

    def loss(network: Any, batch: list[Any]) -> Any:
        seen[0] += 1
        if seen[0] > stop_at:
            raise KeyboardInterrupt
        x = torch.tensor([b[0] for b in batch])
        return ((network(x)[:, 0] - torch.tensor([b[1] for b in batch])) ** 2).mean()

    def examples(rng: np.random.Generator, epoch: int) -> list[Any]:
        points = rng.normal(size=(40, 3)).astype("float32")
        return [(p.tolist(), float(p[0] - p[1])) for p in points]

    return Trainer(model, examples, lambda e: 3, loss)


@pytest.mark.parametrize("average", [0.0, 0.9])
def test_an_interrupted_run_ends_where_an_unbroken_one_does(tmp_path: Path, average: float) -> None:
    schedule = Schedule(steps=30, lr=0.02, batch=8, save_minutes=0, log_steps=10, average=average)
    whole = _trainer()
    run = fit(whole, schedule, tmp_path / "whole", log=lambda line: None)
    assert run.step == 30 and len(run.losses) == 3 and run.losses[-1] < run.losses[0]
    with pytest.raises(KeyboardInterrupt):
        fit(_trainer(stop_at=13), schedule, tmp_path / "broken", log=lambda line: None)
    again = _trainer()
    assert fit(again, schedule, tmp_path / "broken", resume=True, log=lambda line: None).step == 30
    for a, b in zip(whole.model.parameters(), again.model.parameters(), strict=True):
        assert torch.equal(a, b)


def test_a_step_in_parts_is_the_whole_step(tmp_path: Path) -> None:
    found = []
    for at_once in (4096, 7):  # 8 examples of 3 tokens at once, or 2 and 2 and 2 and 2
        trainer, sizes = _trainer(), []
        inner = trainer.loss

        def loss(model: Any, batch: list[Any], inner: Any = inner, sizes: list[int] = sizes) -> Any:
            sizes.append(len(batch))
            return inner(model, batch)

        schedule = Schedule(steps=5, lr=0.02, batch=8, at_once=at_once, bf16=False)
        fit(Trainer(trainer.model, trainer.examples, trainer.length, loss), schedule, tmp_path / str(at_once))
        found.append((max(sizes), torch.nn.utils.parameters_to_vector(trainer.model.parameters())))
    (whole, expected), (part, actual) = found
    assert (whole, part) == (8, 2)
    torch.testing.assert_close(actual, expected, atol=1e-5, rtol=1e-4)


def test_averaged_weights_lie_between_those_of_the_steps(tmp_path: Path) -> None:
    last, mean = _trainer(), _trainer()
    fit(last, Schedule(steps=30, lr=0.02, batch=8), tmp_path / "last", log=lambda line: None)
    fit(mean, Schedule(steps=30, lr=0.02, batch=8, average=0.95), tmp_path / "mean", log=lambda line: None)
    start, middle, end = (torch.nn.utils.parameters_to_vector(t.model.parameters()) for t in (_trainer(), mean, last))
    assert 0 < (middle - start).norm() < (end - start).norm()


def test_frozen_parts_stay_as_they_are(tmp_path: Path) -> None:
    trainer = _trainer()
    freeze(trainer.model, "0.weight")
    before = trainer.model[0].weight.clone(), trainer.model[2].weight.clone()
    fit(trainer, Schedule(steps=3, lr=0.02, batch=8), tmp_path, log=lambda line: None)
    assert torch.equal(before[0], trainer.model[0].weight)
    assert not torch.equal(before[1], trainer.model[2].weight)


def test_a_plan_needs_a_bound() -> None:
    with pytest.raises(ValueError, match="bound"):
        Schedule()


def test_card_is_written_for_people_and_programs(tmp_path: Path) -> None:
    write_card(tmp_path, {"name": "x", "steps": 3, "score": {"f1": 0.5, "n": 10}})
    assert json.loads((tmp_path / "card.json").read_text())["score"]["n"] == 10
    assert "- **score**: f1 0.5, n 10" in (tmp_path / "card.md").read_text()


def test_halfway_is_the_mean_of_both_ends(tmp_path: Path) -> None:
    layer = torch.nn.Linear(2, 1)
    named = dict(layer.named_parameters())
    with torch.no_grad():
        layer.weight.copy_(torch.tensor([[1.0, 5.0]]))
        layer.bias.copy_(torch.tensor([2.0]))
    save_checkpoint(tmp_path, TrainingRun(), named, torch.optim.AdamW(layer.parameters()))
    with torch.no_grad():
        layer.weight.copy_(torch.tensor([[3.0, -1.0]]))
        layer.bias.copy_(torch.tensor([0.0]))
    halfway(tmp_path, named)
    assert layer.weight.tolist() == [[2.0, 2.0]] and layer.bias.tolist() == [1.0]
