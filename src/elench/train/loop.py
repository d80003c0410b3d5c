"""One small fine-tuning loop for all of elench's trainers: seeded, length-bucketed, bounded, resumable.

A trainer brings three things: a model, a function that gives an epoch's examples, and a function that turns one
batch into a loss. The loop does the rest, and leaves `checkpoint.safetensors` and `checkpoint.json` in its folder.
"""

from __future__ import annotations

import ctypes
import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

import numpy as np

from elench.errors import UsageError
from elench.models.catalog import entry
from elench.models.packing import pack
from elench.models.shipped import WEIGHTS, grow
from elench.train.relative_attention import quicken

if TYPE_CHECKING:
    import torch
    from torch.nn import Module

T = TypeVar("T")
Averages = dict[str, "torch.Tensor"]
"""Running averages of the trained tensors, by name."""


@dataclass(frozen=True)
class Schedule:
    """How long and how fast to train; the learning rate falls to zero at whichever bound comes first."""

    steps: int = 0
    """Stop after this many steps (0: no bound by steps)."""
    minutes: float = 0.0
    """Stop after this many minutes of training time, resumed parts included (0: no bound by time)."""
    lr: float = 1e-4
    batch: int = 16
    """Examples per step."""
    at_once: int = 4096
    """Tokens of a step that go through the model at once, so that long texts do not need more memory than there is.
    Each part's loss counts by its examples, which is the same as one step where the loss is a mean of theirs."""
    warmup: float = 0.06
    """Part of the run during which the learning rate rises."""
    decay: float = 0.01
    """Weight decay of matrices; biases and norms have none."""
    clip: float = 1.0
    """Largest gradient norm."""
    average: float = 0.0
    """Decay of a running average of the weights, which is what the run ends with (0: the last weights themselves)."""
    seed: int = 7
    save_minutes: float = 4.0
    log_steps: int = 50
    threads: int = 1
    bf16: bool = True
    """Matrix products in bfloat16 (weights and optimizer stay float32): twice as fast where the processor has it."""

    def __post_init__(self) -> None:
        if self.steps <= 0 and self.minutes <= 0:
            raise ValueError("a schedule needs a bound: steps or minutes")


def schedule_of(
    minutes: float, steps: int, lr: float, batch: int, seed: int, threads: int, pack_only: bool
) -> Schedule | None:
    """The schedule of a command's options; None where only the last checkpoint is to be stored."""
    if pack_only:
        return None
    if minutes <= 0 and steps <= 0:
        raise UsageError("give --minutes or --steps: how long to train")
    return Schedule(steps=steps, minutes=minutes, lr=lr, batch=batch, seed=seed, threads=threads)


@dataclass
class TrainingRun:
    """What a training run did so far."""

    step: int = 0
    seconds: float = 0.0
    epoch: int = 0
    batch: int = 0
    """Batches of the present epoch already used."""
    examples: int = 0
    losses: list[float] = field(default_factory=list)
    """Mean loss of every logged stretch."""


@dataclass(frozen=True)
class Trainer(Generic[T]):
    """A model's way of learning: which examples an epoch has, how long each is, what a batch costs."""

    model: Module
    examples: Callable[[np.random.Generator, int], Sequence[T]]
    """Examples of an epoch, drawn anew from its own generator; the second argument counts epochs from 0."""
    length: Callable[[T], int]
    loss: Callable[[Module, list[T]], torch.Tensor]


def buckets(lengths: Sequence[int], batch: int, rng: np.random.Generator, span: int = 40) -> list[list[int]]:
    """Shuffled batches of indices whose lengths are alike: sorted within stretches of `span` batches."""
    order = rng.permutation(len(lengths))
    batches: list[list[int]] = []
    for start in range(0, len(order), batch * span):
        stretch = sorted(order[start : start + batch * span], key=lambda i: lengths[i])
        batches += [[int(i) for i in stretch[at : at + batch]] for at in range(0, len(stretch), batch)]
    return [batches[i] for i in rng.permutation(len(batches))]


def slope(progress: float, warmup: float) -> float:
    """Linear rise during `warmup`, linear fall to zero at progress 1."""
    if progress < warmup:
        return progress / warmup
    return max(0.0, (1.0 - progress) / max(1.0 - warmup, 1e-9))


def fit(
    trainer: Trainer[T],
    schedule: Schedule,
    folder: Path,
    *,
    resume: bool = False,
    log: Callable[[str], None] = print,
) -> TrainingRun:
    """Train until the schedule's bound, saving a checkpoint every few minutes; `resume` goes on from the last one."""
    import torch

    keep_memory()
    torch.set_num_threads(schedule.threads)
    torch.manual_seed(schedule.seed)
    folder.mkdir(parents=True, exist_ok=True)
    model = trainer.model
    named = {name: p for name, p in model.named_parameters() if p.requires_grad}
    optimizer = _optimizer(list(named.values()), schedule)
    run = TrainingRun()
    averages: Averages = {name: p.detach().clone() for name, p in named.items()} if schedule.average else {}
    if resume and (folder / "checkpoint.json").exists():
        run = load_checkpoint(folder, named, optimizer, averages)
        log(f"resumed at step {run.step}, {run.seconds / 60:.1f} min")
    model.train()
    before, begun, saved, logged, stretch = run.seconds, time.monotonic(), time.monotonic(), run.step, 0.0
    for items in _batches(trainer, schedule, run):
        run.seconds = before + time.monotonic() - begun
        progress = _progress(schedule, run)
        if progress >= 1.0:
            break
        for group in optimizer.param_groups:
            group["lr"] = schedule.lr * max(slope(progress, schedule.warmup), 1e-3)
        for part in pack([trainer.length(item) for item in items], schedule.at_once):
            with torch.autocast("cpu", dtype=torch.bfloat16, enabled=schedule.bf16):
                loss = trainer.loss(model, [items[i] for i in part]) * (len(part) / len(items))
            loss.backward()
            stretch += float(loss.detach())
        torch.nn.utils.clip_grad_norm_(list(named.values()), schedule.clip)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        run.step, run.batch, run.examples = run.step + 1, run.batch + 1, run.examples + len(items)
        decay = min(schedule.average, run.step / (run.step + 10))  # the first steps are soon forgotten
        for name, mean in averages.items():
            mean.lerp_(named[name].detach(), 1 - decay)
        if run.step % schedule.log_steps == 0:
            mean = stretch / (run.step - logged)
            run.losses.append(round(mean, 4))
            log(f"step {run.step} epoch {run.epoch} loss {mean:.3f} min {run.seconds / 60:.1f} done {progress:.1%}")
            logged, stretch = run.step, 0.0
        if time.monotonic() - saved > schedule.save_minutes * 60:
            save_checkpoint(folder, run, named, optimizer, averages)
            saved = time.monotonic()
    run.seconds = before + time.monotonic() - begun
    save_checkpoint(folder, run, named, optimizer, averages)
    with torch.no_grad():
        for name, mean in averages.items():
            named[name].copy_(mean)
    model.eval()
    return run


def keep_memory() -> None:
    """Let the C library keep freed memory for the next step instead of handing it back to the system.

    A step frees and takes gigabytes; what was handed back is cleared page by page before it is had again, which took a
    third of the time. Only glibc has these switches; elsewhere nothing happens.
    """
    most_mapped, trim_from, never = -4, -1, -1  # M_MMAP_MAX and M_TRIM_THRESHOLD of malloc.h
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except (OSError, AttributeError, TypeError):
        return
    mallopt(most_mapped, 0)
    mallopt(trim_from, never)


def _optimizer(parameters: list[torch.nn.Parameter], schedule: Schedule) -> torch.optim.Optimizer:
    """AdamW; biases and norms do not decay."""
    import torch

    matrices, vectors = [p for p in parameters if p.ndim > 1], [p for p in parameters if p.ndim <= 1]
    groups = [{"params": matrices, "weight_decay": schedule.decay}, {"params": vectors, "weight_decay": 0.0}]
    return torch.optim.AdamW(groups, lr=schedule.lr)


def _progress(schedule: Schedule, run: TrainingRun) -> float:
    by_steps = run.step / schedule.steps if schedule.steps > 0 else 0.0
    by_time = run.seconds / (schedule.minutes * 60) if schedule.minutes > 0 else 0.0
    return max(by_steps, by_time)


def _batches(trainer: Trainer[T], schedule: Schedule, run: TrainingRun) -> Iterator[list[T]]:
    """Batches epoch after epoch; a resumed run skips what it has seen, because each epoch has its own seed."""
    while True:
        rng = np.random.default_rng([schedule.seed, run.epoch])
        examples = trainer.examples(rng, run.epoch)
        if not examples:
            raise ValueError("no examples to train on")
        order = buckets([trainer.length(e) for e in examples], schedule.batch, rng)
        for indices in order[run.batch :]:
            yield [examples[i] for i in indices]
        run.epoch, run.batch = run.epoch + 1, 0


def save_checkpoint(
    folder: Path,
    run: TrainingRun,
    named: dict[str, torch.nn.Parameter],
    optimizer: torch.optim.Optimizer,
    averages: Averages | None = None,
) -> None:
    """Write trained tensors, optimizer moments and position; the old checkpoint stays whole until the new one is."""
    from safetensors.torch import save_file

    tensors = {f"model.{name}": p.detach().contiguous() for name, p in named.items()}
    for name, p in named.items():
        for key, value in optimizer.state.get(p, {}).items():
            tensors[f"{key}.{name}"] = value.detach().contiguous()
    tensors |= {f"average.{name}": mean for name, mean in (averages or {}).items()}
    save_file(tensors, folder / "checkpoint.tmp", metadata={"run": json.dumps(asdict(run))})
    (folder / "checkpoint.tmp").replace(folder / "checkpoint.safetensors")
    (folder / "checkpoint.json").write_text(json.dumps(asdict(run)) + "\n")


def load_checkpoint(
    folder: Path,
    named: dict[str, torch.nn.Parameter],
    optimizer: torch.optim.Optimizer | None = None,
    averages: Averages | None = None,
) -> TrainingRun:
    """Put a checkpoint's tensors back into the model (and the optimizer, to train further) and return where it was."""
    import torch
    from safetensors import safe_open

    if not (folder / "checkpoint.safetensors").exists():
        raise UsageError(f"{folder}: holds no checkpoint")
    with safe_open(folder / "checkpoint.safetensors", framework="pt") as stored, torch.no_grad():
        run = TrainingRun(**json.loads(stored.metadata()["run"]))
        keys = set(stored.keys())
        for name, p in named.items():
            p.copy_(stored.get_tensor(f"model.{name}"))
            if optimizer is not None and f"exp_avg.{name}" in keys:
                optimizer.state[p] = {
                    key: stored.get_tensor(f"{key}.{name}") for key in ("step", "exp_avg", "exp_avg_sq")
                }
        for name, mean in (averages or {}).items():
            mean.copy_(stored.get_tensor(f"average.{name}" if f"average.{name}" in keys else f"model.{name}"))
    return run


def start_from(folder: Path, named: dict[str, torch.nn.Parameter]) -> None:
    """Put the tensors of a stored model or of a checkpoint in `folder` into a model, to be further trained."""
    import torch
    from safetensors.numpy import load_file

    if (folder / "checkpoint.safetensors").exists():
        load_checkpoint(folder, named)
        return
    if not (folder / WEIGHTS).exists():
        raise UsageError(f"{folder}: holds neither {WEIGHTS} nor a checkpoint")
    stored = grow(load_file(folder / WEIGHTS))
    missing = sorted(set(named) - set(stored))
    if missing:
        raise UsageError(f"{folder / WEIGHTS}: lacks {missing[0]}")
    with torch.no_grad():
        for name, p in named.items():
            p.copy_(torch.from_numpy(stored[name]))


def halfway(start: Path, named: dict[str, torch.nn.Parameter]) -> None:
    """Put the mean of the weights in `start` and of those at the end of a further training into the model.

    The two make different mistakes; halfway between them a model is often better than either (Wortsman et al. 2022).
    """
    import torch

    ended = {name: p.detach().clone() for name, p in named.items()}
    start_from(start, named)
    with torch.no_grad():
        for name, p in named.items():
            p.add_(ended[name]).div_(2)


def started_from(folder: Path | None, mean: bool = False) -> dict[str, str]:
    """For a card: which stored model was trained further."""
    if not folder or not (folder / "card.json").exists():
        return {}
    how = "; the weights are the mean of its own and of those at the end" if mean else ""
    return {"started from": _described(folder) + how}


def taught_by(folder: Path | None) -> dict[str, str]:
    """For a card: whose probabilities were learnt."""
    return {"teacher": _described(folder)} if folder else {}


def _described(folder: Path) -> str:
    card = json.loads((folder / "card.json").read_text())
    seen = f"{card['examples']} examples" if "examples" in card else f"{card['passages']} passages"
    return f"{card['name']} of {seen}, {card['minutes']} minutes, on {card['base']}"


def freeze(model: Module, *endings: str) -> None:
    """Keep parameters whose names end so as they are: they are not trained and need not be shipped."""
    for name, p in model.named_parameters():
        if name.endswith(endings):
            p.requires_grad_(False)


FROZEN = ("word_embeddings.weight", "position_embeddings.weight")
"""The encoder's lookup tables: half its size or more, left alone in all trainings."""
BASES = {"embedded": "all-minilm-l6-v2", "large": "deberta-v3-xsmall"}
"""The encoder that a family's models are trained on."""


def freeze_words(model: Module) -> None:
    """Leave the vectors of words and positions as they are, and use the quicker attention where there is one."""
    freeze(model, *FROZEN)
    quicken(model)


def about_base(family: str) -> str:
    """For a card: the base encoder, and what of it training left alone."""
    known, name = entry(BASES[family]), BASES[family]
    kept = "word and position embeddings" if family == "embedded" else "word embeddings"
    return f"{name}, its {kept} unchanged; licence: {known.licence if known else 'unknown'}"


def write_card(folder: Path, facts: dict[str, object]) -> None:
    """Write what a model is made of, for people (card.md) and programs (card.json)."""
    rounded = {k: float(f"{v:.4g}") if isinstance(v, float) else v for k, v in facts.items()}
    (folder / "card.json").write_text(json.dumps(rounded, indent=1, ensure_ascii=False) + "\n")
    lines = [f"# {rounded.get('name', folder.name)}", ""]
    for key, value in rounded.items():
        if key != "name":
            shown = ", ".join(f"{k} {v}" for k, v in value.items()) if isinstance(value, dict) else value
            lines.append(f"- **{key}**: {shown}")
    (folder / "card.md").write_text("\n".join(lines) + "\n")
