"""Question-answer examples from the files people have: SQuAD JSON, or one JSON record per line."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from elench.errors import UsageError


@dataclass(frozen=True)
class Example:
    """A question on a text; without answers it is unanswerable there."""

    id: str
    context: str
    question: str
    answers: tuple[str, ...] = ()
    start: int = -1
    """Where the first answer begins in the context, in characters; -1 if nowhere."""
    group: str = ""
    """The article or story the text is from."""

    @property
    def end(self) -> int:
        return self.start + len(self.answers[0]) if self.start >= 0 else -1


def read_squad(path: Path) -> list[Example]:
    """Examples of a SQuAD v1.1 or v2 file."""
    try:
        articles = json.loads(path.read_text(encoding="utf-8"))["data"]
    except OSError as problem:
        raise UsageError(f"{path}: cannot be read ({problem.strerror})") from None
    except (ValueError, KeyError, TypeError) as problem:
        raise UsageError(f"{path}: not a SQuAD file ({problem})") from None
    found: list[Example] = []
    for number, article in enumerate(articles):
        for paragraph in article["paragraphs"]:
            for qa in paragraph["qas"]:
                answers = qa.get("answers") or []
                found.append(
                    Example(
                        id=str(qa.get("id", len(found))),
                        context=paragraph["context"],
                        question=qa["question"].strip(),
                        answers=tuple(a["text"] for a in answers),
                        start=int(answers[0]["answer_start"]) if answers else -1,
                        group=str(article.get("title", number)),
                    )
                )
    return found


def read_paragraphs(path: Path) -> list[Example]:
    """Examples of a file with one paragraph per line (title, context, qas), plain or gzipped."""
    found: list[Example] = []
    with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as lines:
        for number, line in enumerate(lines, 1):
            try:
                paragraph = json.loads(line)
                context, title = paragraph["context"], str(paragraph.get("title", number))
                for qa in paragraph["qas"]:
                    answers = qa.get("answers") or []
                    start = int(answers[0]["answer_start"]) if answers else -1
                    texts = tuple(a["text"] for a in answers)
                    found.append(Example(str(qa["id"]), context, qa["question"].strip(), texts, start, title))
            except (ValueError, KeyError, TypeError) as problem:
                raise UsageError(f"{path}:{number}: not a paragraph with questions ({problem})") from None
    return found


def read_examples(path: Path) -> list[Example]:
    """Examples of a file somebody gives: SQuAD (.json), else one record per line."""
    return read_squad(path) if path.suffix == ".json" else read_jsonl(path)


def read_jsonl(path: Path, *, kind: str = "") -> list[Example]:
    """Examples of a record file (context, question, answer); `kind` keeps only records of that kind."""
    return list(_lines(path, kind))


def _lines(path: Path, kind: str) -> Iterator[Example]:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except OSError as problem:
        raise UsageError(f"{path}: cannot be read ({problem.strerror})") from None
    for number, line in enumerate(lines, 1):
        try:
            record = json.loads(line)
            context, question, answer = record["context"], record["question"], record["answer"]
        except (ValueError, KeyError, TypeError) as problem:
            raise UsageError(f"{path}:{number}: needs context, question and answer ({problem})") from None
        if kind and record.get("kind") != kind:
            continue
        start, answer = locate(answer, context)
        group = re.sub(r"-\d+$", "", str(record.get("group") or record.get("id", "")))
        yield Example(str(record.get("id", number)), context, question.strip(), (answer,), start, group)


def locate(answer: str, context: str) -> tuple[int, str]:
    """First place of an answer in a text, whatever its case and final stop: (start or -1, the text's own words)."""
    wanted = answer.strip().rstrip(".").strip()
    if wanted:
        found = re.search(rf"(?<!\w){re.escape(wanted)}(?!\w)", context, re.IGNORECASE)
        if found:
            return found.start(), found.group()
    return -1, answer
