"""A study's analysis and simulation as text for the terminal, as JSON, and as one HTML file."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from importlib.resources import files
from statistics import mean

from elench.grid import Grid
from elench.show import tables
from elench.study.analyse.ranking import Report
from elench.study.analyse.simulate import Simulation

LEVELS = ("nominal", "ordinal", "interval")


def number(value: float | None, digits: int = 3) -> str:
    """A figure, or a dash where there is none."""
    return "–" if value is None else f"{value:.{digits}f}"


def span(pair: tuple[float, float] | None, digits: int = 3) -> str:
    return "" if pair is None else f"[{pair[0]:.{digits}f}, {pair[1]:.{digits}f}]"


def share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.2f} %" if whole else "–"


def as_json(report: Report) -> str:
    return json.dumps(asdict(report), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def as_html(report: Report) -> str:
    """One file that needs nothing else: the style sheet is inside."""
    from markupsafe import Markup

    from elench.study.collect.pages import environment

    style = files("elench.study.collect").joinpath("static", "study.css").read_text("utf-8")
    tools = {"number": number, "span": span, "share": share, "levels": LEVELS}
    best = {
        name: max((s.criteria[name] for s in report.scores if s.system != report.human), default=None)
        for name in report.criteria
    }
    limits = [edge for s in report.scores for edge in s.interval]
    template = environment().get_template("report.html")
    return template.render(r=report, style=Markup(style), best=best, low=min(limits), high=max(limits), **tools)


def as_text(r: Report) -> str:
    """What `elench study analyse` prints."""
    parts: list[Grid | str] = [f"{r.title} ({r.protocol})", f"filter: {r.filter}", *_raters(r), _scores(r)]
    if r.pairs:
        significant = sum(pair.corrected < 0.05 for pair in r.pairs)
        tests = ", ".join(sorted({pair.test for pair in r.pairs}))
        parts.append(f"{significant} of {len(r.pairs)} pairs differ for these raters (p < .05 after Holm; {tests})")
    parts += [*_mixed(r), "", *_consistency(r), "", *_planning(r)]
    return tables.as_text([*parts, *(f"note: {note}" for note in r.notes)])


def _scores(r: Report) -> Grid:
    unit = "z within rater" if r.standardised else "raw"
    title = f"System scores, {unit}; 95 % t intervals over passages; a shared letter: no difference"
    rows = tuple(
        (
            s.system,
            s.cluster,
            str(s.n),
            number(s.overall),
            span(s.interval),
            *(number(s.criteria[c]) for c in r.criteria),
        )
        for s in r.scores
    )
    return Grid(title, ("system", "", "N", "overall", "95 %", *r.criteria), rows, "ll")


def _mixed(r: Report) -> list[Grid | str]:
    """System means, letters and raters by the mixed model."""
    fit = r.mixed
    if fit is None:
        return []
    whole = sum(fit.variances.values())
    shares = ", ".join(f"{name} {value / whole:.0%}" for name, value in fit.variances.items())
    title = f"Mixed model, rating ~ system + passage + rater + rater:system (n = {fit.n}; variance: {shares})"
    fitted = zip(fit.systems, fit.letters, fit.means, fit.errors, strict=True)
    rows = tuple((system, letters, number(mean), number(error)) for system, letters, mean, error in fitted)
    found = sum(p.corrected < 0.05 for p in fit.pairs)
    parts: list[Grid | str] = [
        Grid(title, ("system", "", "mean", "standard error"), rows, "ll"),
        f"{found} of {len(fit.pairs)} pairs differ for other raters too (p < .05 after Holm; t, Satterthwaite)",
    ]
    if len(fit.raters) > 4:
        shown = ", ".join(f"{x.rater} {x.severity:+.2f}" for x in (*fit.raters[:2], *fit.raters[-2:]))
        parts.append(f"most and least severe raters: {shown}")
    return parts


def _raters(r: Report) -> list[Grid | str]:
    parts: list[Grid | str] = (
        [_groups(r)]
        if r.filtered
        else [
            f"{r.total.raters} raters, {r.total.tasks} tasks, {number(r.total.minutes, 2)} minutes per task, "
            f"{number(r.total.tasks_per_rater, 2)} tasks per rater"
        ]
    )
    if r.tests_taken:
        parts.append(f"qualification test: {r.tests_passed} of {r.tests_taken} passed")
    if r.paid_all:
        each = r.paid / len(r.scores)
        parts.append(
            f"cost: {r.paid:.2f} {r.currency} for passed tasks ({each:.2f} per system), "
            f"{r.paid_all:.2f} {r.currency} if every task is paid"
        )
    return parts


def _groups(r: Report) -> Grid:
    """Raters and tasks that passed the filter, that failed it, and all."""
    rows = []
    for name, group in (("passed", r.passed), ("failed", r.failed), ("total", r.total)):
        passed = name == "passed"
        raters, tasks = share(group.raters, r.total.raters), share(group.tasks, r.total.tasks)
        times = number(group.minutes, 2), number(group.tasks_per_rater, 2)
        rows.append((name, str(group.raters), raters * passed, str(group.tasks), tasks * passed, *times))
    header = ("", "raters", "pass rate", "tasks", "pass rate", "minutes/task", "tasks/rater")
    return Grid("", header, tuple(rows))


def _consistency(r: Report) -> list[Grid | str]:
    parts: list[Grid | str] = []
    if r.repeat_pairs:
        parts.append(
            f"repeats: {number(r.repeat_gap, 1)} points apart on average (n = {r.repeat_pairs} pairs of ratings)"
        )
    for a in r.agreement:
        if a.reason:
            parts.append(f"alpha {a.criterion}: undefined, {a.reason}")
        else:
            shown = ", ".join(f"{level} {number(a.alpha[level])} {span(a.interval[level])}" for level in LEVELS)
            parts.append(f"alpha {a.criterion}: {shown} (n = {a.units} items, {a.ratings} ratings)")
    rows = tuple(
        (x.measure, number(x.pearson), number(x.spearman), number(x.kendall), str(x.systems)) for x in r.replication
    )
    parts.append(Grid(f"self-replication ({r.replication_how})", ("", "r", "rho", "tau", "systems"), rows))
    return [*parts, *(f"  {x.measure}: {x.reason}" for x in r.replication if x.reason)]


def _planning(r: Report) -> list[Grid | str]:
    parts: list[Grid | str] = []
    if r.needed is not None:
        parts.append(
            f"planning: {r.needed} judgements per system find a difference of {r.difference:g} with power {r.power:g} "
            f"after Holm (standard deviation {number(r.deviation)})"
        )
    if r.powered:
        saved = "" if r.needed_with_metric is None else f"; {r.needed_with_metric} would do together with it"
        title = f"prediction-powered with {r.metric} (correlation {number(r.correlation)}{saved})"
        header = ("system", "rated", "scored", "estimate", "95 %", "ratings alone", "95 %")
        rows = tuple(
            (p.system, str(p.rated), str(p.scored), number(p.value), span(p.interval), number(p.alone),
             span(p.alone_interval))
            for p in r.powered
        )  # fmt: skip
        parts += [Grid(title, header, rows), *(f"  {p.system}: {p.reason}" for p in r.powered if p.reason)]
    return parts


def simulation_text(design: Simulation, published: Simulation | None = None) -> str:
    """What `elench study simulate` prints; `published` is the paper's quality control on crowds drawn alike."""
    s = design
    title = f"{s.runs} runs × {s.raters} raters × {s.tasks_per_rater} tasks, filter at p < {s.alpha:g}"
    rows = tuple(
        (k.kind, "pass" if k.should_pass else "fail", str(k.raters), str(k.accepted), number(k.share), span(k.interval))
        for k in s.kinds
    )
    parts: list[Grid | str] = [
        Grid(title, ("kind", "should", "raters", "kept", "share kept", "95 %"), rows, "ll"),
        f"false accept: {number(s.false_accept)} (n = {s.false_accept_n})",
        f"false reject: {number(s.false_reject)} (n = {s.false_reject_n})",
        f"Spearman with the true ranking: {number(s.spearman_filtered)} with the filter, "
        f"{number(s.spearman_unfiltered)} without (mean of {s.ranked_runs} runs; "
        f"{s.kept_tasks:.0f} of {s.submitted_tasks:.0f} submitted tasks kept)",
    ]
    if s.replication:
        reached = sum(r >= 0.95 for r in s.replication)
        parts.append(
            f"two runs of the same study: r = {mean(s.replication):.3f} on average, "
            f">= .95 in {reached} of {len(s.replication)} pairs"
        )
    if published:
        parts.append(_quality_controls({"this protocol": design, 'qc = "paper"': published}))
    return tables.as_text(parts)


def _quality_controls(controls: Mapping[str, Simulation]) -> Grid:
    rows = tuple(
        (
            name,
            f"{number(s.false_accept)} (n = {s.false_accept_n})",
            f"{number(s.false_reject)} (n = {s.false_reject_n})",
            number(s.careless_work),
            "–" if not s.kept_tasks else f"{s.submitted_tasks / s.kept_tasks:.2f}",
        )
        for name, s in controls.items()
    )
    header = ("quality control", "false accept", "false reject", "careless work kept", "paid / kept")
    return Grid("", header, rows)
