"""Who asks: questions about a text whose answer is a given part of it."""

from __future__ import annotations

from typing import Any


def passage_ids(tokenizer: Any, passage: str) -> list[int]:
    """A passage as the asker reads it: the part that all its answers share."""
    ids: list[int] = tokenizer(" ".join(passage.split()), add_special_tokens=False)["input_ids"]
    return ids


def wish_ids(tokenizer: Any, answer: str) -> list[int]:
    """The answer that is wished for, after the passage."""
    ids: list[int] = tokenizer(f"\nAnswer: {' '.join(answer.split())}\nQuestion:", add_special_tokens=False)["input_ids"]
    return ids


def target_ids(tokenizer: Any, question: str) -> list[int]:
    """A question as the asker writes it, with the token that ends it."""
    ids: list[int] = tokenizer(f" {' '.join(question.split())}", add_special_tokens=False)["input_ids"]
    return [*ids, tokenizer.eos_token_id]
