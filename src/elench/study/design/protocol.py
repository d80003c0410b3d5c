"""A protocol: what raters are asked, how tasks are composed, which raters are kept. One TOML file, checked strictly."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from elench.study.design.criterion import Criterion

SHOWABLE = ("context", "question", "answer", "summary", "reference")
LANGUAGES = ("en", "de", "zh", "ar")

Compose = Literal["passage", "pool"]
FilterKind = Literal["permutation", "wilcoxon", "z", "none"]


@dataclass(frozen=True)
class TaskRule:
    """How a task is composed."""

    compose: Compose
    """passage: every system once, about one passage; pool: `items` items from all over the file."""
    items: int
    raters: int
    """How many raters that pass the quality control each task needs."""
    bad_references: float
    """Share of the non-human systems that get a bad reference in a task; the human system always does."""
    repeats: float
    """Share of the non-human systems that are shown twice; the human system always is."""
    outputs: int
    """Outputs shown side by side on one screen; 1 unless the criteria compare."""
    minutes: float
    """An unfinished task returns to the pool after this long without a rating."""
    takes: float
    """Minutes that the researcher expects a task to take; 0: not stated."""
    max_per_rater: int


@dataclass(frozen=True)
class FilterRule:
    """Which raters or ratings are kept."""

    kind: FilterKind
    """permutation: raters whose ratings fit the items better than exchanged ones; wilcoxon: raters whose ordinary
    ratings exceed those of bad references (QAScore); z: KPQA's outlier rule; none."""
    alpha: float
    pairs: str
    """What the wilcoxon filter pairs: single ratings, as in the paper, or items (mean over the criteria)."""
    patience: int
    """wilcoxon: after how many submitted tasks a rater who fails gets no further one."""
    later: float = 0.002
    """permutation: takes the place of `alpha` from twice `controls` bad references on: by then readers are far below
    it, and whoever clicks has had a second chance to pass by luck."""
    doubt: float = 0.1
    """permutation: a rater who is not kept but has p below this is undecided and gets another task."""
    controls: int = 6
    """permutation: bad references a rater must have rated to be rejected, three times as many if they are undecided."""
    z: float = 1.0
    most: int = 5

    @property
    def judges_raters(self) -> bool:
        """Whether raters are kept or rejected as a whole."""
        return self.kind in ("permutation", "wilcoxon")


PAPER_FILTER = FilterRule("wilcoxon", alpha=0.05, pairs="ratings", patience=1)
"""Quality control exactly as published (QAScore, section 4.2)."""


@dataclass(frozen=True)
class FlagRule:
    """When a rater is flagged for the researcher to look at; a flag alone excludes nobody."""

    seconds: float
    """Median time per item below this."""
    straight: float
    """Share of ratings equal to the rater's most frequent one above this."""
    repeat_r: float
    """Correlation of repeated ratings below this."""


@dataclass(frozen=True)
class KnownItem:
    """An item with known answers: of the qualification test, or of the training with an explanation."""

    shown: dict[str, str]
    expected: dict[str, tuple[float, float]]
    """Criterion → the values that are right, from and to."""
    explanation: str = ""


@dataclass(frozen=True)
class Question:
    """A question about the rater or the study: comprehension check, demographics, exit survey."""

    name: str
    text: str
    choices: tuple[str, ...]
    """Empty: free text."""
    right: str = ""
    """The right choice, in a comprehension check."""


@dataclass(frozen=True)
class Consent:
    """What a rater agrees to before anything else."""

    text: tuple[str, ...]
    contact: str
    withdrawal: str


@dataclass(frozen=True)
class Pay:
    """What raters are paid."""

    per_task: float
    currency: str
    failed: bool
    """Whether work that fails the quality control is paid."""
    bonus: float
    """Added for each task of a rater who passes."""


@dataclass(frozen=True)
class ProlificCodes:
    """Completion codes that a researcher sets up on Prolific; empty: not set."""

    completed: str
    screened_out: str
    failed_check: str


@dataclass(frozen=True)
class Protocol:
    """A whole protocol as read from its file."""

    name: str
    title: str
    source: str
    language: str
    judge: str
    show: tuple[str, ...]
    highlight: bool
    instructions: tuple[str, ...]
    asked: tuple[Criterion, ...]
    """Everything raters are asked about an item, in order."""
    task: TaskRule
    filter: FilterRule
    flags: FlagRule
    standardise: bool
    """Report scores as z within each rater (eq. 13 of QAScore) instead of raw means."""
    reward: Pay
    consent: Consent | None
    training: tuple[KnownItem, ...]
    check: tuple[Question, ...]
    attempts: int
    """How often the comprehension check may be tried."""
    pass_mark: float
    qualification: tuple[KnownItem, ...]
    before: tuple[Question, ...]
    """Asked once, before the first task: demographics."""
    after: tuple[Question, ...]
    """Asked once, after the first task: exit survey."""
    one_person: bool
    """Refuse a second rater from the same browser."""
    prolific: ProlificCodes
    text: str
    """The file itself, kept word for word in the study folder."""

    @property
    def criteria(self) -> tuple[Criterion, ...]:
        """What is measured: everything asked but free text."""
        return tuple(c for c in self.asked if c.measures)

    @property
    def one_scale(self) -> bool:
        """Whether all criteria are rated from the same lowest to the same highest value."""
        return len({(c.low, c.high) for c in self.criteria}) == 1

    @property
    def pay(self) -> float:
        return self.reward.per_task

    @property
    def currency(self) -> str:
        return self.reward.currency

    @property
    def comparative(self) -> bool:
        return any(c.comparative for c in self.asked)

    def criterion(self, name: str) -> Criterion:
        return next(c for c in self.asked if c.name == name)
