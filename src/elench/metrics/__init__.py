"""The metrics, and how a spec such as `bleu[n=4,judge=answer]` becomes one."""

from __future__ import annotations

import difflib
import re
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from pkgutil import iter_modules
from typing import TypeVar

from elench.errors import UsageError
from elench.metrics.base import CorpusMetric, Metric, ReferenceMetric, Score, param

__all__ = [
    "CorpusMetric",
    "Metric",
    "ReferenceMetric",
    "Score",
    "all_metrics",
    "metric",
    "param",
    "register",
    "split_specs",
]

M = TypeVar("M", bound=type[Metric])
_registered: dict[str, type[Metric]] = {}


def register(cls: M) -> M:
    """Class decorator: make a metric known under its name. A name can be taken once."""
    taken = _registered.get(cls.name)
    if taken is not None and (taken.__module__, taken.__qualname__) != (cls.__module__, cls.__qualname__):
        raise UsageError(f"two metrics are called {cls.name!r}: {taken.__module__} and {cls.__module__}")
    _registered[cls.name] = cls
    return cls


@cache
def _load() -> None:
    for module in iter_modules(__path__):
        import_module(f"{__name__}.{module.name}")
    for plugin in entry_points(group="elench.metrics"):
        plugin.load()


def all_metrics() -> dict[str, type[Metric]]:
    """Every registered metric class by name, plugins included."""
    _load()
    return dict(sorted(_registered.items()))


def metric(spec: str | Metric) -> Metric:
    """The metric that a spec names: `metric("bleu[n=2]")`."""
    if isinstance(spec, Metric):
        return spec
    if spec.strip().startswith("profile:"):
        from elench.metrics.profile import parse_profile

        return parse_profile(spec)
    parsed = re.fullmatch(r"\s*([\w.-]+)\s*(?:\[(.*)\])?\s*", spec)
    if not parsed:
        raise UsageError(f"not a metric spec: {spec!r}; write name or name[parameter=value,…]")
    name, inside = parsed.group(1).lower(), parsed.group(2) or ""
    known = all_metrics()
    if name not in known:
        near = difflib.get_close_matches(name, known, n=3, cutoff=0.5)
        hint = f"did you mean {' or '.join(near)}?" if near else "see: elench metrics"
        raise UsageError(f"no metric is called {name!r}; {hint}")
    given: dict[str, str] = {}
    for part in filter(None, (p.strip() for p in inside.split(","))):
        key, equals, value = (s.strip() for s in part.partition("="))
        if not equals or not value:
            raise UsageError(f"{spec}: {part!r} is not parameter=value")
        if key in given:
            raise UsageError(f"{spec}: parameter {key!r} is given twice")
        given[key] = value
    return known[name].with_parameters(given)


def higher_is_better(spec: str) -> bool:
    """Does a higher score of this column mean better? Columns of other tools are taken so."""
    try:
        return metric(spec).higher_is_better
    except UsageError:
        return True


def split_specs(text: str) -> list[str]:
    """`bleu[n=2,judge=answer],f1` → two specs (commas in brackets do not split); `profile:FILE`: all dimensions."""
    from elench.metrics.profile import expand

    parts = (part.strip() for part in re.split(r",(?![^\[]*\])", text))
    return [spec for part in parts if part for spec in expand(part)]
