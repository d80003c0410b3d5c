"""form=paper end to end on the tiny checkpoints: the equations written out on what transformers itself returns."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import torch
import transformers

from elench.models.base import ModelSet
from elench.requests import Weigh
from tests.faithful.checkpoints import checkpoint
from tests.faithful.items import ANSWERS, QUESTIONS
from tests.faithful.test_golden import models, scores


@cache
def loaded(kind: str, how: str, **more: Any) -> tuple[Any, Any]:
    folder = checkpoint(kind)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    return getattr(transformers, how).from_pretrained(folder, **more).eval(), tokenizer


def ids(tokenizer: Any, text: str) -> list[int]:
    found: list[int] = tokenizer(text, add_special_tokens=False)["input_ids"]
    return found


def lrm(question: str, context: str, p: float) -> float:
    """Equations 2–4; attention rows divided by their peak over the context."""
    model, tokenizer = loaded("bert", "AutoModel", attn_implementation="eager")
    with torch.no_grad():
        out = model(
            **tokenizer(question, context, return_tensors="pt"), output_attentions=True, output_hidden_states=True
        )
    q, c = len(ids(tokenizer, question)), len(ids(tokenizer, context))
    rows, columns = slice(1, 1 + q), slice(2 + q, 2 + q + c)
    layers = []
    for attention, states in zip(out.attentions, out.hidden_states[1:], strict=True):
        a = attention[0].max(0).values[rows, columns]
        cosine = torch.nn.functional.cosine_similarity(states[0, rows, None], states[0, None, columns], dim=-1)
        layers.append(float((a / a.max(1, keepdim=True).values * cosine).max(1).values.mean()))
    return float(np.mean(np.power(layers, p)) ** (1 / p))


def grg(question: str, context: str) -> float:
    """Equations 6–9, a new line between question and context."""
    model, tokenizer = loaded("gpt2", "AutoModelForCausalLM")

    def confidence(before: str) -> float:
        head, tail = [tokenizer.bos_token_id, *ids(tokenizer, before)], ids(tokenizer, context)
        with torch.no_grad():
            logs = model(torch.tensor([head + tail])).logits[0].log_softmax(-1)
        return sum(float(logs[len(head) + k - 1, token]) for k, token in enumerate(tail))

    base, prompted = confidence(""), confidence(f"{question}\n")
    return max((prompted - base) / abs(base), 0.0)


def qascore(context: str, question: str, answer: str) -> list[float]:
    """Equations 9–11: each word of the answer masked whole, Σ over its pieces of the log-probability."""
    model, tokenizer = loaded("roberta-mlm", "AutoModelForMaskedLM")
    sep = tokenizer.sep_token_id
    head = [tokenizer.bos_token_id, *ids(tokenizer, f" {context}"), sep, *ids(tokenizer, f" {question}"), sep]
    words = [ids(tokenizer, f" {word}") for word in answer.split()]
    whole = [*head, *(piece for own in words for piece in own), sep]
    values, at = [], len(head)
    for word in words:
        # a piece that is only the blank before a word is not part of it
        places = [at + i for i, piece in enumerate(word) if tokenizer.decode([piece]).strip()]
        row = [tokenizer.mask_token_id if k in places else piece for k, piece in enumerate(whole)]
        with torch.no_grad():
            logs = model(torch.tensor([row])).logits[0].log_softmax(-1)
        values.append(sum(float(logs[k, whole[k]]) for k in places))
        at += len(word)
    return values


@pytest.mark.parametrize("name", [name for name in QUESTIONS if name != "above 512 pieces"])
def test_qrelscore_and_qascore(name: str) -> None:
    context, question, answer = QUESTIONS[name]
    record = {"id": "1", "context": context, "question": question, "answer": answer, "judge": "question"}
    local, gain, words = lrm(question, context, 1), grg(question, context), qascore(context, question, answer)
    wanted = {
        "qrel-lrm": local,
        "qrel-lrm[p=3]": lrm(question, context, 3),
        "qrel-grg": gain,
        "qrelscore": 2 * local * gain / (local + gain) if gain else 0.0,
        "qascore": sum(words),
        "qascore[reduce=mean]": sum(words) / len(words),
    }
    result = scores([record], *wanted)
    assert {spec: result[spec, "1"] for spec in wanted} == pytest.approx(wanted, abs=1e-5)


@pytest.mark.parametrize("name", ANSWERS)
def test_keyphrase_weights(name: str) -> None:
    """§3.1: the softmax of {question [SEP] answer}, second text of token type 1; a word's weight is its pieces' mean."""
    question, answer, _ = ANSWERS[name]
    model, tokenizer = loaded("bert-classifier", "AutoModelForTokenClassification")
    coded = tokenizer(question, answer, return_tensors="pt", return_offsets_mapping=True)
    offsets = coded.pop("offset_mapping")[0].tolist()
    begin = len(ids(tokenizer, question)) + 2
    coded["token_type_ids"] = (torch.arange(len(offsets)) >= begin).long()[None]
    with torch.no_grad():
        key = model(**coded).logits[0].softmax(-1)[:, 0].tolist()  # the authors' first class is "key"
    wanted = []
    for word in re.finditer(r"\w+", answer):
        own = [k for k in range(begin, len(key) - 1) if offsets[k][0] < word.end() and offsets[k][1] > word.start()]
        wanted.append((word.group(), np.mean([key[k] for k in own])))
    chosen: ModelSet = models()
    found = chosen["keyphrases"].answer([Weigh(question, answer)])[0]
    assert list(found.words) == [word for word, _ in wanted]
    assert found.weights == pytest.approx([weight for _, weight in wanted], abs=1e-5)
