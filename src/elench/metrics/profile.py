"""A calibrated mix of metrics as a metric: `profile:FILE#dimension`, where FILE is written by `elench calibrate`."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

from elench.errors import Unscored, UsageError
from elench.metrics.base import CorpusMetric, Metric, Score, param
from elench.metrics.evidence import with_kinds
from elench.records.record import Record
from elench.requests import attempt, together

SHIPPED = Path(__file__).parents[1] / "profiles"
FORMAT = 1
Z_LIMIT = 6.0
"""z scores beyond this are moved to it, in training and in use."""
MOST_MISSING = 0.5
"""A record is unscored when metrics with more than this share of the weight have no value for it."""


@dataclass(frozen=True)
class Part:
    """One metric of a mix."""

    metric: Metric
    mean: float
    sd: float
    weight: float

    def z(self, value: float) -> float:
        return max(-Z_LIMIT, min(Z_LIMIT, (value - self.mean) / self.sd))


@dataclass(frozen=True)
class Mix:
    """How one human dimension is predicted: base + Σ weight · z."""

    base: float
    parts: tuple[Part, ...]
    low: float
    high: float
    """The rating scale; intervals are kept within it."""
    error95: float
    """Half width that held 95 % of the ratings of unseen groups."""


@dataclass(frozen=True)
class ProfileFile:
    """What a profile file says."""

    judge: str
    sha256: str
    mixes: Mapping[tuple[str, str], Mix]
    """(dimension, variant) → mix"""
    content: Mapping[str, Any]
    """The whole file: data, agreement, learning curve, cost."""

    @property
    def dimensions(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(dimension for dimension, _ in self.mixes))

    @property
    def learned_from(self) -> tuple[str, ...]:
        """Names of the rated files, without their endings."""
        return tuple(Path(name).stem for name in str(self.content["data"].get("file", "")).split(" + "))


def content_hash(content: Mapping[str, Any]) -> str:
    """sha256 over a profile or certificate without its own hash: an edited file no longer matches."""
    body = {name: value for name, value in content.items() if name != "sha256"}
    return hashlib.sha256(json.dumps(body, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def find_profile(name: str) -> Path:
    """The file of a profile: a path, or the name of one that comes with elench."""
    for path in (Path(name), SHIPPED / f"{name}.json"):
        if path.is_file():
            return path
    shipped = ", ".join(sorted(path.stem for path in SHIPPED.glob("*.json"))) or "none"
    raise UsageError(f"{name}: no such profile file; make one with `elench calibrate`; shipped with elench: {shipped}")


def read_profile(name: str) -> ProfileFile:
    """Read and check a profile file."""
    path = find_profile(name)
    status = path.stat()
    return _read(path, status.st_mtime_ns, status.st_size)


def read_shipped(judge: str) -> ProfileFile | None:
    """The profile for what is judged that comes with elench."""
    found = (read_profile(str(path)) for path in sorted(SHIPPED.glob("*.json")))
    return next((profile for profile in found if profile.judge == judge), None)


@lru_cache(maxsize=32)
def _read(path: Path, changed: int, size: int) -> ProfileFile:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as problem:
        raise UsageError(f"{path}: cannot be read as a profile ({problem})") from None
    if not isinstance(content, dict) or content.get("format") != f"elench profile {FORMAT}":
        raise UsageError(f"{path}: not a profile of `elench calibrate` (format: elench profile {FORMAT})")
    if content.get("sha256") != content_hash(content):
        raise UsageError(f"{path}: its content does not match its sha256; run `elench calibrate` again")
    return parsed(content)


def parsed(content: Mapping[str, Any]) -> ProfileFile:
    """The content of a profile, ready to use."""
    mixes: dict[tuple[str, str], Mix] = {}
    for dimension, found in content["dimensions"].items():
        for variant in ("full", "cheap"):
            mixes[dimension, variant] = _mix(content["metrics"], found, found[variant])
    return ProfileFile(content["judge"], content["sha256"], mixes, content)


def _mix(metrics: Mapping[str, Any], dimension: Mapping[str, Any], variant: Mapping[str, Any]) -> Mix:
    from elench.metrics import metric

    parts = [
        Part(metric(spec), metrics[spec]["mean"], metrics[spec]["sd"], weight)
        for spec, weight in variant["weights"].items()
    ]
    low, high = dimension["scale"]
    return Mix(dimension["base"], tuple(parts), low, high, variant["error95"])


def parse_profile(spec: str) -> Profile:
    """`profile:FILE#dimension`, `profile:FILE#dimension[variant=cheap]`, optionally pinned: `…#dimension@HASH`."""
    parsed = re.fullmatch(
        r"profile:(?P<file>[^#\[\]]+)#(?P<dimension>[^\[\]@]+)(?:@(?P<hash>[0-9a-f]{12}))?(?:\[variant=(?P<variant>\w+)\])?",
        spec.strip(),
    )
    if not parsed:
        raise UsageError(f"not a profile spec: {spec!r}; write profile:FILE#dimension")
    variant = parsed["variant"] or "full"
    if variant not in ("full", "cheap"):
        raise UsageError(f"{spec}: variant is full or cheap")
    metric = Profile(parsed["file"], parsed["dimension"], variant)
    metric.check()
    found = metric.profile.sha256[:12]
    if parsed["hash"] not in (None, found):
        raise UsageError(f"{spec}: the profile file now has the hash {found}; it was calibrated again or replaced")
    return metric


def expand(spec: str) -> list[str]:
    """`profile:FILE` without a dimension means all its dimensions."""
    if not spec.startswith("profile:") or "#" in spec:
        return [spec]
    name, bracket, inside = spec.removeprefix("profile:").partition("[")
    return [f"profile:{name}#{dimension}{bracket}{inside}" for dimension in read_profile(name).dimensions]


@dataclass(frozen=True)
class Profile(Metric):
    """The rating that people would give, predicted by a mix of metrics calibrated on human ratings.

    rating = base + Σ weightₖ · zₖ, with zₖ the z score of metric k on the calibration records, kept within ±6. Where
    most ratings are the best possible, a prediction may exceed the scale: cutting it off would make good texts equal.
    A metric without a value for a record counts as average (z = 0).
    """

    name: ClassVar[str] = "profile"
    judges: ClassVar[tuple[str, ...]] = ("question", "answer", "summary")
    range: ClassVar[tuple[float, float]] = (-math.inf, math.inf)
    citation: ClassVar[str] = "elench calibrate: ridge regression shrunk to the best single metric"
    limits: ClassVar[str] = (
        "Valid for texts like those it was calibrated on; the file names them. Certify it on ratings of your own."
    )
    example: ClassVar[Mapping[str, Any]] = {
        "context": "The Rhine rises in the Swiss Alps and flows into the North Sea.",
        "question": "Where does the Rhine rise?",
        "answer": "the Swiss Alps",
        "references": ["Where is the source of the Rhine?"],
        "judge": "question",
    }
    file: str = param("", "profile file, or the name of a shipped profile")
    dimension: str = param("", "human dimension that is predicted")
    variant: str = param("full", "all metrics, or the cheap ones that come within 95 %", ("full", "cheap"))

    @property
    def profile(self) -> ProfileFile:
        return read_profile(self.file)

    @property
    def mix(self) -> Mix:
        return self.profile.mixes[self.dimension, self.variant]

    @property
    def judge(self) -> str:
        """What it was calibrated to judge."""
        return self.profile.judge

    def check(self) -> None:
        known = self.profile.dimensions
        if self.dimension not in known:
            raise UsageError(f"{self.file}: no dimension {self.dimension!r}; there are: {', '.join(known)}")

    def spec(self, full: bool = False) -> str:
        pinned = f"@{self.profile.sha256[:12]}" if full else ""
        variant = f"[variant={self.variant}]" if full or self.variant != "full" else ""
        return f"profile:{self.file}#{self.dimension}{pinned}{variant}"

    @property
    def roles(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(role for part in self.mix.parts for role in part.metric.roles))

    @property
    def reads(self) -> tuple[str, ...]:
        """Fields without which most of the mix has no value."""
        parts = self.mix.parts
        total = sum(abs(part.weight) for part in parts)
        fields = dict.fromkeys(name for part in parts for name in part.metric.reads)
        return tuple(
            name
            for name in fields
            if sum(abs(p.weight) for p in parts if name in p.metric.reads) > MOST_MISSING * total
        )

    async def score(self, record: Record) -> Score:
        self.candidate(record)
        mix = self.mix
        results = await together(*[attempt(part.metric.score(record)) for part in mix.parts])
        value, lost = mix.base, 0.0
        adds: list[dict[str, Any]] = []
        missing: dict[str, str] = {}
        for part, result in zip(mix.parts, results, strict=True):
            if isinstance(result, Unscored) or not math.isfinite(result.value):
                missing[str(part.metric)] = str(result) if isinstance(result, Unscored) else "not a finite number"
                lost += abs(part.weight)
                continue
            z = part.z(result.value)
            value += part.weight * z
            adds.append({"metric": str(part.metric), "score": result.value, "z": z, "adds": part.weight * z})
        total = sum(abs(part.weight) for part in mix.parts)
        if missing and lost > MOST_MISSING * total:
            reasons = "; ".join(f"{spec}: {reason}" for spec, reason in list(missing.items())[:3])
            raise Unscored(f"metrics with {lost / total:.0%} of the profile's weight have no value ({reasons})")
        interval = [min(max(bound, mix.low), mix.high) for bound in (value - mix.error95, value + mix.error95)]
        adds.sort(key=lambda one: -abs(one["adds"]))
        evidence = {"base": mix.base, "contributions": adds, "interval95": interval, "missing": missing}
        return Score(value, with_kinds(evidence, contributions="contributions"))


def usable(metric: Metric) -> bool:
    """Can this metric be part of a profile? Those that need the whole file, or are profiles, cannot."""
    return not isinstance(metric, (CorpusMetric, Profile))
