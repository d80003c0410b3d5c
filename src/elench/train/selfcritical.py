"""Self-critical sequence training: a generator learns from a metric (QRelScore App. F, equations 11–15).

For each prompt the model writes one text greedily and some by sampling. Where a sample scores higher than the greedy
text it becomes likelier, where lower less likely; cross entropy on the human text keeps the language whole:

    L = λ · (r(greedy) - r(sample)) · Σ log P(sample) + L_lm,   λ rising from 0 to 1 over the run.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from elench.train.branching import Branched, collate

if TYPE_CHECKING:
    import torch
    from torch.nn import Module
    from transformers import PreTrainedTokenizerBase as Tokenizer

Reward = Callable[[Sequence["WritingTask"], Sequence[str]], list[float]]


@dataclass(frozen=True)
class WritingTask:
    """Something to write: the prompt in tokens, the human text in tokens, and what the reward must know."""

    prompt: tuple[int, ...]
    target: tuple[int, ...]
    fields: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class RewardSchedule:
    """How long and how fast."""

    steps: int = 100
    batch: int = 4
    samples: int = 4
    """Texts drawn for each prompt: the paper draws one; more make a step steadier and share the prompt."""
    lr: float = 5e-5
    temperature: float = 1.0
    limit: int = 32
    """Most new tokens."""
    every: int = 20
    """Steps between two looks at the held-back tasks."""
    seed: int = 7


@dataclass
class Curve:
    """Mean reward of greedy texts on held-back tasks, by step."""

    steps: list[int] = field(default_factory=list)
    rewards: list[float] = field(default_factory=list)
    n: int = 0


def write(
    model: Module,
    tokenizer: Tokenizer,
    tasks: Sequence[WritingTask],
    schedule: RewardSchedule,
    sample: bool,
) -> list[list[int]]:
    """What the model writes for each task: causal models go on after the prompt, seq2seq models answer it."""
    import torch

    pad = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else tokenizer.eos_token_id
    width = max(len(t.prompt) for t in tasks)
    seq2seq = bool(model.config.is_encoder_decoder)
    rows = [[pad] * (width - len(t.prompt)) + list(t.prompt) for t in tasks]
    mask = [[0] * (width - len(t.prompt)) + [1] * len(t.prompt) for t in tasks]
    choice = {"do_sample": True, "temperature": schedule.temperature, "top_k": 0} if sample else {"do_sample": False}
    with torch.no_grad():
        out = model.generate(
            input_ids=torch.tensor(rows), attention_mask=torch.tensor(mask), max_new_tokens=schedule.limit,
            pad_token_id=pad, eos_token_id=tokenizer.eos_token_id, **choice,
        )  # fmt: skip
    written = []
    for row in out[:, 0 if seq2seq else width :].tolist():
        row = row[1:] if seq2seq else row
        end = row.index(tokenizer.eos_token_id) + 1 if tokenizer.eos_token_id in row else len(row)
        written.append(row[:end])
    return written


def log_likelihood(
    model: Module,
    tokenizer: Tokenizer,
    tasks: Sequence[WritingTask],
    texts: Sequence[Sequence[Sequence[int]]],
) -> list[torch.Tensor]:
    """Σ log P(token | prompt, tokens before) of each text of each task, with gradients; a prompt is read once."""
    return [_of_task(model, tokenizer, task, own) for task, own in zip(tasks, texts, strict=True)]


def _of_task(model: Module, tokenizer: Tokenizer, task: WritingTask, texts: Sequence[Sequence[int]]) -> torch.Tensor:
    import torch

    end = tokenizer.eos_token_id
    written = [tuple(text) or (end,) for text in texts]
    wanted = torch.tensor([token for text in written for token in text])
    if model.config.is_encoder_decoder:
        prompt = torch.tensor([task.prompt])
        logits = torch.cat([model(input_ids=prompt, labels=torch.tensor([text])).logits[0] for text in written])
    else:
        batch = collate([Branched(task.prompt[:-1], tuple((task.prompt[-1:], text) for text in written))], end)
        inputs = {"input_ids": batch["ids"], "attention_mask": batch["mask"], "position_ids": batch["positions"]}
        logits = model(**inputs, use_cache=False).logits[batch["wanted"][:, 0], batch["wanted"][:, 1]]
    chosen = logits.log_softmax(-1).gather(1, wanted[:, None])[:, 0].split([len(text) for text in written])
    return torch.stack([own.sum() if text else own.sum() * 0 for own, text in zip(chosen, texts, strict=True)])


def critic_loss(
    model: Module,
    tokenizer: Tokenizer,
    tasks: Sequence[WritingTask],
    reward: Reward,
    schedule: RewardSchedule,
    weight: float,
) -> tuple[torch.Tensor, float]:
    """Equation 15 for a batch, its first term a mean over `samples`; and the mean reward of the greedy texts."""
    import torch

    model.eval()
    n, k = len(tasks), schedule.samples
    repeated = [task for task in tasks for _ in range(k)]
    greedy = write(model, tokenizer, tasks, schedule, sample=False)
    sampled = write(model, tokenizer, repeated, schedule, sample=True)
    texts = [tokenizer.decode(ids, skip_special_tokens=True).strip() for ids in (*greedy, *sampled)]
    rewards = np.array(reward([*tasks, *repeated], texts))
    gaps = rewards[:n, None] - rewards[n:].reshape(n, k)  # r(greedy) - r(sample), eq. 11
    model.train()
    written = [[*sampled[i * k : (i + 1) * k], task.target] for i, task in enumerate(tasks)]
    loss = torch.zeros(())
    for gap, own in zip(gaps, log_likelihood(model, tokenizer, tasks, written), strict=True):
        critical = (torch.tensor(gap, dtype=own.dtype) * own[:-1]).mean()
        loss = loss + (weight * critical - own[-1]) / n  # L_lm is a sum over the target's tokens (eq. 14)
    return loss, float(rewards[:n].mean())


def held_back_reward(
    model: Module,
    tokenizer: Tokenizer,
    tasks: Sequence[WritingTask],
    reward: Reward,
    schedule: RewardSchedule,
) -> float:
    """Mean reward of what the model writes greedily for tasks it does not learn from."""
    model.eval()
    texts: list[str] = []
    for at in range(0, len(tasks), 20):
        written = write(model, tokenizer, tasks[at : at + 20], schedule, sample=False)
        texts += [tokenizer.decode(ids, skip_special_tokens=True).strip() for ids in written]
    return float(np.mean(reward(tasks, texts)))


def learn(
    model: Module,
    tokenizer: Tokenizer,
    tasks: Sequence[WritingTask],
    held_back: Sequence[WritingTask],
    reward: Reward,
    schedule: RewardSchedule,
    log: Callable[[str], None] = print,
) -> Curve:
    """Train the model's trainable parameters; the curve says what it came to on the held-back tasks."""
    import torch

    torch.manual_seed(schedule.seed)
    rng = np.random.default_rng(schedule.seed)
    parameters = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(parameters, lr=schedule.lr, weight_decay=0.0)
    curve = Curve(n=len(held_back))
    for step in range(schedule.steps + 1):
        if step % schedule.every == 0 or step == schedule.steps:
            value = held_back_reward(model, tokenizer, held_back, reward, schedule)
            curve.steps.append(step)
            curve.rewards.append(value)
            log(f"step {step}: mean reward of {len(held_back)} held-back tasks {value:.4f}")
        if step == schedule.steps:
            break
        batch = [tasks[int(i)] for i in rng.choice(len(tasks), schedule.batch, replace=len(tasks) < schedule.batch)]
        loss, _ = critic_loss(model, tokenizer, batch, reward, schedule, weight=step / max(schedule.steps - 1, 1))
        loss.backward()  # type: ignore[no-untyped-call]  # torch's backward is untyped
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
    return curve


def save_curve(curve: Curve, folder: Path, name: str) -> None:
    """The curve as numbers (curve.json) and as a picture (curve.svg)."""
    from elench.show.plots import curve as draw

    folder.mkdir(parents=True, exist_ok=True)
    content = {"reward": name, "steps": curve.steps, "mean": curve.rewards, "n": curve.n}
    (folder / "curve.json").write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    picture = draw([f"step {s}" for s in curve.steps], curve.rewards, f"mean {name}, held-back tasks (n={curve.n})")
    style = "<style>text{font:11px sans-serif}.fit{stroke:#c2410c}.mark{fill:#1f5fbf}.grid{stroke:#ddd}</style>"
    picture = picture.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1).replace(">", f">{style}", 1)
    (folder / "curve.svg").write_text(picture, encoding="utf-8")
