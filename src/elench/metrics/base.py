"""What a metric is: a value that prints and parses itself, reads a record, and gives a score with its evidence."""

from __future__ import annotations

import dataclasses
import unicodedata
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, get_args, get_type_hints

from elench.errors import Unscored, UsageError
from elench.records.record import Record
from elench.requests import Baseline, whichever
from elench.text.languages import NAMES, UNKNOWN

Corpus = Counter[Hashable]
"""What a first pass over the file gathers: counts, so that the states of two halves merge by addition."""

OTHER_KIND = "this record judges"
"""In the reason of a record that judges another kind of text than the metric: expected in a file of several kinds."""


@dataclass(frozen=True, slots=True)
class Score:
    """What a metric says of one record."""

    value: float
    evidence: Mapping[str, Any] = field(default_factory=dict)
    """What a person can check: words, edges, questions that made the number. Plain JSON values; `with_kinds` says how
    they are shown."""
    counts: tuple[float, ...] = ()
    """Sufficient statistics whose sums over the records give the corpus score (see `Metric.corpus_score`)."""


def param(default: Any, doc: str, choices: Sequence[Any] = ()) -> Any:
    """A parameter of a metric: its default, one sentence, and the values it may take ('' for any)."""
    return field(default=default, metadata={"doc": doc, "choices": tuple(choices)})


@dataclass(frozen=True)
class Metric(ABC):
    """A metric with its parameters. Subclasses are frozen dataclasses; their docstring's first line describes them.

    A subclass states its five duties as plain class attributes, and writes `score`:

        name = "my-metric"
        judges = ("answer",)
        reads = ("references",)
        roles = ("encoder",)

    `reads` and `roles` may depend on the parameters: then they are properties.
    """

    name: ClassVar[str]
    judges: ClassVar[tuple[str, ...]]
    """Which of question, answer, summary it can judge."""
    range: ClassVar[tuple[float, float]] = (0.0, 1.0)
    higher_is_better: ClassVar[bool] = True
    citation: ClassVar[str] = ""
    limits: ClassVar[str] = ""
    """Known limits: what it measures badly."""
    reads_judged: ClassVar[bool] = True
    """Whether it reads the judged text; the context metrics do not."""
    noted: ClassVar[bool] = True
    """Whether its evidence names what occurs on one side only (see `metrics.notes`)."""
    example: ClassVar[Mapping[str, Any]] = {}
    """A small record (as a JSON object) that it scores; shown in the card, used by `elench verify` and the tests."""

    @property
    def reads(self) -> tuple[str, ...]:
        """Record fields it needs besides the text it judges."""
        return ()

    @property
    def roles(self) -> tuple[str, ...]:
        """Models it asks; none for a lexical metric."""
        return ()

    @property
    def baselines(self) -> tuple[Baseline, ...]:
        """Stored figures it is rescaled with; they are part of the signature."""
        return ()

    @property
    def languages(self) -> tuple[str, ...]:
        """Languages it is made for, none for any; the models at hand know English."""
        return ("en",) if self.roles else ()

    def __call__(self, text: str, references: str | Sequence[str] = (), **fields: Any) -> float:
        """The number for one text: `metric("f1")("a red fox", "the red fox")`; Unscored says why there is none.

        Further fields of a record are keyword arguments: `metric("qascore")(question, context=…, answer=…)`.
        """
        from elench.engine.scoring import score_text

        return score_text(self, text, references, fields)

    @abstractmethod
    async def score(self, record: Record) -> Score:
        """Score one record, awaiting requests for whatever a model must say; raise Unscored with a reason."""

    def corpus_score(self, totals: Sequence[float]) -> float | None:
        """The corpus score from the summed `counts`; None means: the mean of the item scores."""
        return None

    # --- reading a record -------------------------------------------------------------------------------------------

    def judged(self, record: Record) -> str:
        """Which text of the record is judged: the `judge` parameter, the record's own field, or what it has."""
        wanted = getattr(self, "judge", "") or record.judge
        if record.judge and wanted != record.judge:  # the references are of what the record judges
            raise Unscored(f"judge={wanted}, but {OTHER_KIND} {record.judge}")
        if not wanted:
            wanted = self._choice(record)
            if record.assumed and wanted != record.assumed and "references" in self.reads:
                raise Unscored(f"{self.name} judges {wanted}, but the references are of the {record.assumed}")
        if wanted not in self.judges:
            raise Unscored(f"{self.name} judges {' or '.join(self.judges)}, {OTHER_KIND} {wanted}")
        self._check_language(record)
        return wanted

    def _choice(self, record: Record) -> str:
        """What is judged where nobody says: the only text it can judge, else what the file or the record is about."""
        present = [name for name in self.judges if getattr(record, name) is not None]
        if len(self.judges) == 1 or (len(present) == 1 and not record.assumed and "references" not in self.reads):
            return (present or self.judges)[0]
        return record.guess_judge()

    def _check_language(self, record: Record) -> None:
        if record.any_language or not self.languages:
            return
        language = record.language()
        if language not in (*self.languages, UNKNOWN):
            made_for = " or ".join(NAMES.get(code, code) for code in self.languages)
            raise Unscored(f"made for {made_for}; this text looks {NAMES[language]} (--any-language scores it anyway)")

    def candidate(self, record: Record) -> str:
        """The text that is judged."""
        return self.text(record, self.judged(record))

    def text(self, record: Record, name: str) -> str:
        """A text field of the record; Unscored when it is absent or blank."""
        value: str | None = getattr(record, name)
        if value is None:
            raise Unscored(f"no {name}")
        if not _visible(value):
            raise Unscored(f"empty {name}")
        return value

    def given_references(self, record: Record) -> tuple[str, ...]:
        """The references that have text; Unscored when there are none."""
        references = tuple(r for r in record.references if _visible(r))
        if not references:
            raise Unscored("no reference")
        return references

    def needed(self, record: Record) -> tuple[str, ...]:
        """The fields of this record that it reads; Unscored when it cannot judge such a record."""
        judged = self.judged(record)
        return (judged, *self.reads) if self.reads_judged else self.reads

    def missing(self, record: Record) -> str | None:
        """The field this metric needs and the record does not have at all, if any."""
        try:
            needed = self.needed(record)
        except Unscored:
            return None
        for name in needed:
            if (not record.has_references) if name == "references" else getattr(record, name) is None:
                return name
        return None

    # --- printing and parsing ---------------------------------------------------------------------------------------

    @classmethod
    def parameters(cls) -> tuple[dataclasses.Field[object], ...]:
        return dataclasses.fields(cls)

    def spec(self, full: bool = False) -> str:
        """`name[param=value,…]`, parameters at their default left out unless `full`."""
        shown = [
            f"{shown_name(p)}={_print(getattr(self, p.name))}"
            for p in self.parameters()
            if full or getattr(self, p.name) != p.default
        ]
        return f"{self.name}[{','.join(shown)}]" if shown else self.name

    def __str__(self) -> str:
        return self.spec()

    @classmethod
    def description(cls) -> str:
        """The first line of the docstring."""
        return (cls.__doc__ or "").strip().splitlines()[0] if cls.__doc__ else ""

    @classmethod
    def with_parameters(cls, given: Mapping[str, str]) -> Metric:
        """Build the metric from printed parameters, refusing unknown names and values."""
        known = {shown_name(p): p for p in cls.parameters()}
        types = get_type_hints(cls)
        values: dict[str, Any] = {}
        for name, printed in given.items():
            if name not in known:
                raise UsageError(f"{cls.name} has no parameter {name!r}; it has: {', '.join(known) or 'none'}")
            value = _parse(printed, types[known[name].name], f"{cls.name}[{name}={printed}]")
            choices = known[name].metadata.get("choices", ())
            if choices and value not in choices:
                raise UsageError(f"{cls.name}[{name}={printed}]: not one of {', '.join(_print(c) for c in choices)}")
            values[known[name].name] = value
        metric = cls(**values)
        metric.check()
        return metric

    def check(self) -> None:  # noqa: B027 (most metrics have nothing to check)
        """Raise UsageError when the parameters do not go together."""


def _visible(text: str) -> bool:
    """Is there anything to read: not only blanks, control characters and characters without width?"""
    return any(not c.isspace() and unicodedata.category(c) not in ("Cc", "Cf") for c in text)


def shown_name(parameter: dataclasses.Field[object]) -> str:
    """A parameter's name in specs and cards: `class_`, which Python cannot call `class`, is shown without the line."""
    return parameter.name.rstrip("_")


def _print(value: object) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, float):  # as short as it can be and still parse back to the same number
        return f"{value:g}" if float(f"{value:g}") == value else repr(value)
    return str(value)


def _parse(printed: str, kind: object, where: str) -> object:
    kinds = get_args(kind) or (kind,)
    if bool in kinds:
        if printed.lower() in ("on", "true", "yes", "1"):
            return True
        if printed.lower() in ("off", "false", "no", "0"):
            return False
        raise UsageError(f"{where}: use on or off")
    for number in (int, float):
        if number in kinds:
            try:
                return number(printed)
            except ValueError:
                if number is float or float not in kinds:
                    if str in kinds:
                        break
                    raise UsageError(f"{where}: not a{'n integer' if number is int else ' number'}") from None
    return printed


@dataclass(frozen=True)
class ReferenceMetric(Metric):
    """A metric that compares the judged text with one reference at a time and takes the best (or the mean)."""

    judges: ClassVar[tuple[str, ...]] = ("question", "answer", "summary")
    judge: str = param(
        "", "which text is judged; default: the record's own field", ("", "question", "answer", "summary")
    )
    references: str = param("max", "several references: the best one, or the mean", ("max", "mean"))

    @property
    def reads(self) -> tuple[str, ...]:
        return ("references",)

    @abstractmethod
    async def compare(self, candidate: str, reference: str, record: Record) -> Score:
        """Score the judged text against one reference."""

    async def score(self, record: Record) -> Score:
        candidate, references = self.candidate(record), self.given_references(record)
        places, scores = await whichever(*[self.compare(candidate, reference, record) for reference in references])
        return self.joined([references[i] for i in places], scores)

    def joined(self, references: Sequence[str], scores: Sequence[Score]) -> Score:
        """The best of the scores against each reference, or their mean, and which reference won."""
        best = max(range(len(scores)), key=lambda i: (scores[i].value, -i))
        evidence = {**scores[best].evidence, "reference": references[best]}
        if self.references == "mean":
            return Score(sum(s.value for s in scores) / len(scores), evidence, scores[best].counts)
        return Score(scores[best].value, evidence, scores[best].counts)


@dataclass(frozen=True)
class CorpusMetric(Metric):
    """A metric that needs a first pass over the file, such as for document frequencies."""

    @property
    def first_pass(self) -> bool:
        """Whether these parameters need the first pass; without it `score` is called."""
        return True

    @abstractmethod
    async def gather(self, record: Record) -> Corpus:
        """What this record adds to the corpus counts."""

    def prepare(self, corpus: Corpus) -> object:
        """What scoring needs of the counts of the whole file; made once, pickled to worker processes."""
        return corpus

    @abstractmethod
    async def score_given(self, record: Record, state: Any) -> Score:
        """Score one record, given what `prepare` made."""

    async def score(self, record: Record) -> Score:
        """A record on its own is its own corpus."""
        return await self.score_given(record, self.prepare(await self.gather(record)))
