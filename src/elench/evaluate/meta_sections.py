"""What `elench meta` can add to its table: two metrics head to head, rater agreement, redundancy, estimated means."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from elench.errors import UsageError
from elench.evaluate.judgements import Judgements
from elench.grid import HEADS, Grid, limits, number
from elench.stats.agreement import LEVELS, alpha_interval, rating_matrix
from elench.stats.estimation import system_means
from elench.stats.redundancy import forward_selection, likeness
from elench.stats.significance import (
    CORRECTIONS,
    Design,
    Difference,
    bootstrap_difference,
    permutation_difference,
    williams_difference,
)

_TESTS = {"bootstrap": "bootstrap", "permutation": "permutation", "perm_both": "PERM-BOTH", "williams": "Williams"}
HEADS_OF_CORRECTIONS = {"holm": "Holm", "bh": "BH", "none": "uncorrected"}
_ALONE = ("perm_both", "williams")
"""Tests that take single records as independent"""


@dataclass(frozen=True)
class MetaSection:
    """Tables with their notes, and the same as plain JSON values under a name."""

    name: str
    grids: tuple[Grid, ...]
    notes: tuple[str, ...]
    content: Any


def duel(table: Judgements, first: str, second: str, options: Mapping[str, Any]) -> MetaSection:
    """Two metrics head to head on every dimension, at the level and with the resampling of the table."""
    two = table.choose([first, second])
    design = Design(options["level"], two.items, [s or "" for s in two.systems], options["over"])
    found = {dimension: _tests(two, d, design, options) for d, dimension in enumerate(two.dimensions)}
    content = [
        {"dimension": dimension, "values": tests["bootstrap"].values, **{n: t._asdict() for n, t in tests.items()}}
        for dimension, tests in found.items()
    ]
    title = f"{first} against {second}, {design.level} level, p-values of each test"
    return MetaSection("compare", (_duel_grid(title, found, options),), _duel_notes(found, design, options), content)


def _tests(two: Judgements, d: int, design: Design, options: Mapping[str, Any]) -> dict[str, Difference]:
    """Every test of two metrics on one dimension; Williams' is for Pearson's r of single records."""
    columns = two.human[:, d], two.scores[:, 0], two.scores[:, 1]
    coefficient = options["coefficient"]
    chance = {"design": design, "draws": options["draws"], "seed": options["seed"]}
    tests = {
        "bootstrap": bootstrap_difference(*columns, coefficient, **chance),
        "permutation": permutation_difference(*columns, coefficient, **chance),
        "perm_both": permutation_difference(*columns, coefficient, by="records", **chance),
    }
    if coefficient == "pearson" and design.level == "segment":
        tests["williams"] = williams_difference(*columns)
    return tests


def _duel_grid(title: str, found: Mapping[str, Mapping[str, Difference]], options: Mapping[str, Any]) -> Grid:
    boots = {dimension: tests["bootstrap"] for dimension, tests in found.items()}
    known = {dimension: boot.p for dimension, boot in boots.items() if boot.p is not None}
    corrected = dict(zip(known, CORRECTIONS[options["correction"]](list(known.values())).tolist(), strict=True))
    rows = []
    for dimension, boot in boots.items():
        values = (number(boot.values[0]), number(boot.values[1]), number(boot.value))
        ps = [*(test.p for test in found[dimension].values()), corrected.get(dimension)]
        rows.append((dimension, *values, limits(boot.low, boot.high) or "–", *map(_p, ps), str(boot.n)))
    head, names = HEADS[options["coefficient"]], next(iter(found.values()))
    tested = (f"{_TESTS[name]} p{'†' if name in _ALONE else ''}" for name in names)
    last = (HEADS_OF_CORRECTIONS[options["correction"]], "records")
    header = ("dimension", f"{head} first", f"{head} second", "Δ", "95 % interval", *tested, *last)
    return Grid(title, header, tuple(rows))


def _duel_notes(
    found: Mapping[str, Mapping[str, Difference]], design: Design, options: Mapping[str, Any]
) -> tuple[str, ...]:
    """How the tests were made, and why one has no p-value."""
    swapped = "systems" if "systems" in design.drawn else "groups"
    note = f"Paired bootstrap over {' and '.join(design.drawn)}; permutation: both metrics swapped by {swapped}; "
    note += f"{options['draws']} draws, seed {options['seed']}. † takes single records as independent: p is too "
    note += "small where records of a group or system are alike. All figures on the records that both metrics score; "
    note += f"column {HEADS_OF_CORRECTIONS[options['correction']]}: the bootstrap p, corrected over the dimensions."
    reasons: dict[str, list[str]] = {}
    for dimension, tests in found.items():
        for name, test in tests.items():
            if test.reason and test.p is None:
                reasons.setdefault(f"No {_TESTS[name]} p: {test.reason}", []).append(dimension)
    return (note, *(f"{reason} ({', '.join(dimensions)})." for reason, dimensions in reasons.items()))


def agreement(table: Judgements, draws: int, seed: int) -> MetaSection:
    """Krippendorff's alpha of the single ratings, on each scale."""
    dimensions = [d for d in table.dimensions if any(d in record.ratings for record in table.records)]
    if not dimensions:
        raise UsageError(f"{table.source}: no record has single `ratings`, so raters' agreement cannot be computed")
    rows, content = [], []
    for dimension in dimensions:
        matrix = rating_matrix(table.records, dimension)
        found = {level: alpha_interval(matrix, level, groups=table.items, draws=draws, seed=seed) for level in LEVELS}
        content.append({"dimension": dimension, **{level: a._asdict() for level, a in found.items()}})
        shown = [f"{number(a.value)} {limits(a.low, a.high)}".strip() for a in found.values()]
        last = found["interval"]
        rows.append((dimension, *shown, str(last.items), str(last.ratings), last.reason or ""))
    header = ("dimension", *(f"α {level}" for level in LEVELS), "items", "ratings", "note")
    note = "Krippendorff's alpha over items with two ratings or more; 95 % t intervals, "
    note += f"bootstrap over the groups of these items, {draws} draws, seed {seed}."
    return MetaSection("agreement", (Grid("Agreement of the raters", header, tuple(rows)),), (note,), content)


def redundancy(table: Judgements, steps: int, seed: int) -> MetaSection:
    """Forward selection per dimension, and clusters of metrics that say the same."""
    grids, content = [], []
    notes = [
        "Forward selection: linear regression, 5 folds by group, 10 repeats; metrics are chosen by cross-validation in "
        "the training folds, R² and MSE are of folds that took no part in the choice."
    ]
    left: set[str] = set()
    for dimension in table.dimensions:
        try:
            found = forward_selection(table, dimension, steps=steps, seed=seed)
        except UsageError as error:
            notes.append(f"{dimension}: no forward selection, {error}")
            continue
        left |= set(found.left_out)
        rows = [
            (
                f"{k}. {s.metric}",
                f"{s.share:.0%}",
                number(s.r2),
                f"± {number(s.r2_deviation)}",
                number(s.mse),
                str(found.n),
            )
            for k, s in enumerate(found.steps, 1)
        ]
        header = ("added", "repeats", "R²", "deviation", "MSE", "n")
        grids.append(Grid(f"Forward selection · {dimension}", header, tuple(rows)))
        content.append({**asdict(found), "steps": [s._asdict() for s in found.steps]})
    if not content:
        raise UsageError("; ".join(notes[1:]))
    alike = likeness(table)
    groups = tuple((", ".join(group), str(len(group))) for group in alike.clusters)
    grids.append(Grid(f"Metrics alike (mean |r| of {alike.threshold:g} or more)", ("metrics", "size"), groups))
    if left:
        notes.append(
            f"Left out of the selection (unscored on half the records, or constant): {', '.join(sorted(left))}"
        )
    matrix = [[None if v != v else v for v in row] for row in alike.matrix.tolist()]
    whole = {"selection": content, "metrics": alike.metrics, "correlations": matrix, "clusters": alike.clusters}
    return MetaSection("redundancy", tuple(grids), tuple(notes), whole)


def estimates(table: Judgements, metric: str) -> MetaSection:
    """System means from the ratings there are and the scores of everything."""
    grids, content = [], []
    for dimension in table.dimensions:
        rows = []
        found = system_means(table, metric, dimension)
        for system, e in found.items():
            cells = [number(e.value), limits(e.low, e.high), number(e.alone), limits(e.alone_low, e.alone_high)]
            worth = "–" if e.worth is None else f"{e.worth:.2f}"
            rows.append((system, *cells, worth, str(e.rated), str(e.scored), e.reason or ""))
        header = (
            "system",
            "mean",
            "95 % interval",
            "ratings alone",
            "95 % interval",
            "worth",
            "rated",
            "scored",
            "note",
        )
        grids.append(Grid(f"Mean {dimension} with the help of {metric}", header, tuple(rows)))
        content.append({"dimension": dimension, "systems": {s: e._asdict() for s, e in found.items()}})
    note = "Prediction-powered means: unbiased if the rated outputs (or whole groups) were drawn at random; "
    note += "95 % intervals: jackknife over the rated groups of a system, t; "
    note += "'worth': how many ratings without the metric one rating with it replaces."
    return MetaSection("estimates", tuple(grids), (note,), content)


def calibration(table: Judgements, options: Mapping[str, Any]) -> MetaSection:
    """How the tests and intervals of the table behave on simulated files with its own design."""
    from elench.evaluate.design_check import check_meta, grid

    chosen = {name: options[name] for name in ("level", "over", "coefficient", "alpha", "seed")}
    checked = check_meta(table, **chosen)
    note = (
        "Simulated: the two metrics farthest apart, exchanged at random (false alarms) or as they are (coverage of the "
    )
    note += "first's interval, power), on groups drawn from this file; without correction for many pairs."
    return MetaSection("calibration", (grid(checked, options["alpha"]),), (note,), [asdict(one) for one in checked])


def _p(p: float | None) -> str:
    return "–" if p is None else ("<.001" if p < 0.0005 else number(p))
