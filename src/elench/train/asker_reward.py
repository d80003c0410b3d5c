"""The asker further trained with a metric as its reward (`elench train asker --reward SPEC`, QRelScore §3.3)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from elench.adapters.rewards import reward as reward_function
from elench.adapters.rewards import usable_question
from elench.models.asker import passage_ids, target_ids, wish_ids
from elench.models.tokens import Tokens
from elench.text.passages import passage_of, passages
from elench.train.examples import Example
from elench.train.selfcritical import Curve, Reward, RewardSchedule, WritingTask, learn, save_curve

if TYPE_CHECKING:
    from torch.nn import Module
    from transformers import PreTrainedTokenizerBase as Tokenizer

JUDGED = 100
"""Held-back questions whose mean reward is the curve."""


def tasks(examples: Sequence[Example], tokenizer: Tokenizer) -> list[WritingTask]:
    """Passage and wanted answer as the prompt, the human question as the target."""
    made = []
    tokens = Tokens.from_transformers(tokenizer)
    for e in examples:
        passage = passage_of(e.context, e.start, passages(e.context))
        prompt = (*passage_ids(tokens, passage), *wish_ids(tokens, e.answers[0]))
        fields = {"context": passage, "answer": e.answers[0]}
        made.append(WritingTask(prompt, tuple(target_ids(tokens, e.question)), fields))
    return made


def filtered_reward(spec: str) -> Reward:
    """The metric's score; a question that the paper's filters would drop (6–30 words, answer not in it) counts as
    nothing written, which gets the worst score."""
    score = reward_function(spec, judge="question")

    def function(asked: Sequence[WritingTask], texts: Sequence[str]) -> list[float]:
        columns = {name: [task.fields[name] for task in asked] for name in ("context", "answer")}
        pairs = zip(texts, asked, strict=True)
        kept = ["" if usable_question(text, task.fields["answer"]) else text for text, task in pairs]
        return [float(value or 0.0) for value in score(completions=kept, **columns)]

    return function


def learn_from_reward(
    model: Module,
    tokenizer: Tokenizer,
    train: Sequence[Example],
    held_back: Sequence[Example],
    spec: str,
    schedule: RewardSchedule,
    out: Path,
) -> Curve:
    """Train the asker's corrections on the reward; the curve of the held-back passages goes to `out`."""
    rng = np.random.default_rng(schedule.seed)
    judged = [held_back[int(i)] for i in rng.choice(len(held_back), min(JUDGED, len(held_back)), replace=False)]
    curve = learn(
        model, tokenizer, tasks(train, tokenizer), tasks(judged, tokenizer), filtered_reward(spec), schedule,
        log=lambda line: print(line, flush=True),
    )  # fmt: skip
    save_curve(curve, out, spec)
    return curve
