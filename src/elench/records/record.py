"""What is judged: one record per line, strictly checked, with unknown fields kept."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from elench.errors import UsageError
from elench.records.fields import CHECKS, JUDGES, check_fields
from elench.text.languages import language_of

if TYPE_CHECKING:
    from elench.records.source import Source

__all__ = ["JUDGES", "Record", "Reject", "read", "read_records", "write_records"]


@dataclass(frozen=True, slots=True)
class Record:
    """One item to judge. Which of question, answer and summary is judged is said by `judge`, or follows from the
    whole file (`assumed`)."""

    id: str
    context: str | None = None
    question: str | None = None
    answer: str | None = None
    summary: str | None = None
    references: tuple[str, ...] = ()
    """References of what is judged."""
    judge: str | None = None
    system: str | None = None
    group: str | None = None
    """Records about the same context share a group."""
    human: Mapping[str, float] = field(default_factory=dict)
    """Human rating per dimension."""
    ratings: Mapping[str, tuple[float | None, ...]] = field(default_factory=dict)
    """Single ratings per dimension, one per rater (None where a rater gave none)."""
    peers: Mapping[str, float] = field(default_factory=dict)
    """Other tools' scores."""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Unknown fields, passed through."""
    passages: tuple[str, ...] = ()
    """The passages of a context that was given as a list; the context is their text, joined."""
    references_given: bool = True
    """False when the input had no `references` field at all."""
    assumed: str | None = None
    """What the file as a whole judges; counts where the record has no `judge` of its own."""
    any_language: bool = False
    """Also score it with metrics that are made for another language."""
    line: int = 0
    """Line (or row) of the input file; 0 when the record came from elsewhere."""

    @property
    def has_references(self) -> bool:
        return self.references_given or bool(self.references)

    @property
    def judged(self) -> str:
        """Which of its texts is judged: what the record says (`judge`), else a guess."""
        return self.judge or self.guess_judge()

    @property
    def judged_text(self) -> str:
        """The text that is judged; empty where the record has none."""
        return getattr(self, self.judged) or ""

    def guess_judge(self) -> str:
        """What a record without `judge` is about: what its file is about (`assumed`), else what its references fit,
        else its summary, its question where a context is given (question generation), its answer."""
        from elench.records.judging import judge_of_one

        return self.assumed or judge_of_one(self)

    def language(self) -> str:
        """The language of its texts, as far as their beginnings tell (see `elench.text.languages`)."""
        texts = (self.question, self.answer, self.summary, *self.references[:1], self.context)
        return language_of(" ".join(text[:400] for text in texts if text))

    def to_object(self) -> dict[str, Any]:
        """The record as a JSON object, absent fields left out."""
        own = {name: getattr(self, name) for name in _WRITTEN}
        own["references"] = list(self.references) if self.has_references else None
        own["ratings"] = {k: list(v) for k, v in self.ratings.items()}
        if self.passages and self.context == joined(self.passages):
            own["context"] = list(self.passages)
        return {**{k: v for k, v in own.items() if v is not None and v != {}}, **self.extra}

    @classmethod
    def from_object(
        cls, given: Mapping[str, Any], line: int = 0, default_id: str | None = None, assumed: str | None = None
    ) -> Record:
        """Check a JSON object and make it a record; UsageError names the field and says what to do."""
        values = check_fields(given)
        if values.get("id") is None:
            if default_id is None:
                raise UsageError("field 'id' is missing: give every record an id")
            values["id"] = default_id
        references = values.pop("references", None)
        if isinstance(values.get("context"), tuple):
            values["passages"] = values["context"]
            values["context"] = joined(values["passages"])
        extra = {str(name): value for name, value in given.items() if name not in CHECKS}
        return cls(
            **values, references=references or (), references_given=references is not None, extra=extra, line=line,
            assumed=assumed,
        )  # fmt: skip


_WRITTEN = tuple(
    f.name
    for f in fields(Record)
    if f.name not in ("extra", "passages", "references_given", "assumed", "any_language", "line")
)


def joined(passages: Iterable[str]) -> str:
    """The text of a context given as passages: an empty line between two."""
    return "\n\n".join(passage for passage in passages if passage.strip())


@dataclass(frozen=True, slots=True)
class Reject:
    """A line that is not a record: its place, the reason, and its content."""

    line: int
    reason: str
    raw: Any


def read(source: str | Path | Source) -> Iterator[Record | Reject]:
    """Every record of a file, and every line that is not one, in file order.

    Streams: memory does not grow with the file (JSON documents and spreadsheets are the exception).
    """
    from elench.records.source import as_source

    return as_source(source).read()


def read_records(source: str | Path | Source) -> Iterator[Record]:
    """Every record of a file; the first bad line raises UsageError with file, line and field."""
    from elench.records.source import as_source

    opened = as_source(source)
    for item in opened.read():
        if isinstance(item, Reject):
            raise UsageError(f"{opened.name}:{item.line}: {item.reason}")
        yield item


def write_records(records: Iterable[Record], path: str | Path) -> None:
    """Write records as JSONL, CSV or Parquet, by the file's ending."""
    from elench.records import formats

    path = Path(path)
    write = formats.WRITERS.get(path.suffix.lower())
    if write is None:
        raise UsageError(f"{path}: cannot write this kind of file; use one of {', '.join(formats.WRITERS)}")
    write((record.to_object() for record in records), path)
