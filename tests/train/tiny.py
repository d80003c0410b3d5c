"""A BERT small enough to train in a second, with a tokenizer of its own, as a folder like any base encoder."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

STORY = (
    "Anna lives in Oslo with 3 cats. Her brother Carl moved to Rome in 1999. He cooks fish every day. "
    "The old house on the hill belongs to Dora. She sold it to a baker for 50 coins. The baker painted the door green."
)
OTHER = "Iron melts at a high heat. Smiths in Toledo made swords of it. Kings bought them in 1500 for gold."


def tiny_bert(folder: Path) -> Path:
    """Save the untrained model; every word of the texts above is one token."""
    import torch
    from transformers import BertConfig, BertModel, BertTokenizerFast

    words = sorted(
        set(
            re.findall(
                r"\w+|[^\w\s]", f"{STORY} {OTHER} who where what when did does ? which live dead recorded not".lower()
            )
        )
    )
    vocabulary = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *words]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "vocab.txt").write_text("\n".join(vocabulary) + "\n")
    BertTokenizerFast(str(folder / "vocab.txt"), do_lower_case=True).save_pretrained(folder)
    torch.manual_seed(3)
    config = BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=256,
    )
    BertModel(config, add_pooling_layer=False).save_pretrained(folder)
    return folder


def tiny_corpora(folder: Path) -> Path:
    """The training files, in small: six articles are kept back, two are learnt from."""
    questions = [
        ("Where does Anna live?", "Oslo"),
        ("When did Carl moved to Rome?", "1999"),
        ("Who sold the house?", "Dora"),
    ]
    paragraph = {"context": STORY, "qas": [_qa(f"s{i}", STORY, q, a) for i, (q, a) in enumerate(questions)]}
    metal = {"context": OTHER, "qas": [_qa("m", OTHER, "Where did smiths made swords?", "Toledo")]}
    articles = [{"title": t, **p} for t, p in zip("ABCDEFGH", [*[metal] * 6, paragraph, metal], strict=True)]
    folder.mkdir(parents=True, exist_ok=True)
    write_paragraphs(folder / "squad11_train.jsonl.gz", articles)
    for name in ("new_wiki", "reddit", "amazon"):
        write_paragraphs(folder / f"squadshifts_{name}.jsonl.gz", [])
    tale = {
        "id": "t-1",
        "context": STORY,
        "question": "What did the baker painted?",
        "answer": "The door",
        "kind": "explicit",
    }
    (folder / "fairytaleqa_train.jsonl").write_text(
        json.dumps(tale) + "\n" + json.dumps({**tale, "kind": "implicit"}) + "\n"
    )
    hop = {"id": "h-1", "context": OTHER, "question": "What did kings bought?", "answer": "not there"}
    (folder / "hotpot_qg.jsonl").write_text(json.dumps(hop) + "\n")
    return folder


def write_paragraphs(path: Path, paragraphs: Sequence[Mapping[str, object]]) -> None:
    """Paragraphs with their questions, one a line, gzipped."""
    with gzip.open(path, "wt", encoding="utf-8") as lines:
        lines.writelines(json.dumps(p) + "\n" for p in paragraphs)


def _qa(name: str, context: str, question: str, answer: str) -> dict[str, object]:
    return {"id": name, "question": question, "answers": [{"text": answer, "answer_start": context.index(answer)}]}
