"""The analysis as text for the terminal, as JSON, and as one HTML file."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from importlib.resources import files

from elench.study.analyse.ranking import Group, Report

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


def columns(rows: Sequence[Sequence[str]], left: int = 1) -> list[str]:
    """Rows as aligned lines; the first `left` columns to the left, figures to the right."""
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = enumerate(zip(row, widths, strict=True))
        lines.append(
            "  ".join(cell.ljust(width) if k < left else cell.rjust(width) for k, (cell, width) in cells).rstrip()
        )
    return lines


def as_text(r: Report) -> str:
    """What `elench study analyse` prints."""
    unit = "z within rater" if r.standardised else "raw"
    lines = [f"{r.title} ({r.protocol})", f"filter: {r.filter}", ""]
    lines += _raters(r)
    lines += ["", f"System scores, {unit}; 95 % t intervals over passages; a shared letter: no difference"]
    head = ["system", "", "N", "overall", "95 %", *r.criteria]
    rows = [
        [
            s.system,
            s.cluster,
            str(s.n),
            number(s.overall),
            span(s.interval),
            *(number(s.criteria[name]) for name in r.criteria),
        ]
        for s in r.scores
    ]
    lines += columns([head, *rows], left=2)
    if r.pairs:
        significant = sum(pair.corrected < 0.05 for pair in r.pairs)
        tests = ", ".join(sorted({pair.test for pair in r.pairs}))
        lines.append(f"{significant} of {len(r.pairs)} pairs differ for these raters (p < .05 after Holm; {tests})")
    lines += [*_mixed(r), "", *_consistency(r), "", *_planning(r)]
    lines += [f"note: {note}" for note in r.notes]
    return "\n".join(lines)


def _mixed(r: Report) -> list[str]:
    """System means, letters and raters by the mixed model."""
    fit = r.mixed
    if fit is None:
        return []
    share_of = sum(fit.variances.values())
    parts = ", ".join(f"{name} {value / share_of:.0%}" for name, value in fit.variances.items())
    lines = ["", f"Mixed model, rating ~ system + passage + rater + rater:system (n = {fit.n}; variance: {parts})"]
    columns_ = zip(fit.systems, fit.letters, fit.means, fit.errors, strict=True)
    rows = [["system", "", "mean", "standard error"], *([s, x, number(m), number(e)] for s, x, m, e in columns_)]
    lines += columns(rows, left=2)
    found = sum(p.corrected < 0.05 for p in fit.pairs)
    lines.append(
        f"{found} of {len(fit.pairs)} pairs differ for other raters too (p < .05 after Holm; t, Satterthwaite)"
    )
    shown = (
        ", ".join(f"{x.rater} {x.severity:+.2f}" for x in (*fit.raters[:2], *fit.raters[-2:]))
        if len(fit.raters) > 4
        else ""
    )
    return [*lines, *([f"most and least severe raters: {shown}"] if shown else [])]


def _raters(r: Report) -> list[str]:
    if not r.filtered:
        lines = [
            f"{r.total.raters} raters, {r.total.tasks} tasks, {number(r.total.minutes, 2)} minutes per task, "
            f"{number(r.total.tasks_per_rater, 2)} tasks per rater"
        ]
    else:
        groups: list[tuple[str, Group]] = [("passed", r.passed), ("failed", r.failed), ("total", r.total)]
        rows = [["", "raters", "pass rate", "tasks", "pass rate", "minutes/task", "tasks/rater"]]
        for name, group in groups:
            rates = ("", "")
            if name == "passed":
                rates = share(group.raters, r.total.raters), share(group.tasks, r.total.tasks)
            rows.append(
                [
                    name,
                    str(group.raters),
                    rates[0],
                    str(group.tasks),
                    rates[1],
                    number(group.minutes, 2),
                    number(group.tasks_per_rater, 2),
                ]
            )
        lines = columns(rows)
    if r.tests_taken:
        lines.append(f"qualification test: {r.tests_passed} of {r.tests_taken} passed")
    if r.paid_all:
        each = r.paid / len(r.scores)
        lines.append(
            f"cost: {r.paid:.2f} {r.currency} for passed tasks ({each:.2f} per system), "
            f"{r.paid_all:.2f} {r.currency} if every task is paid"
        )
    return lines


def _consistency(r: Report) -> list[str]:
    lines = []
    if r.repeat_pairs:
        lines.append(
            f"repeats: {number(r.repeat_gap, 1)} points apart on average (n = {r.repeat_pairs} pairs of ratings)"
        )
    for a in r.agreement:
        if a.reason:
            lines.append(f"alpha {a.criterion}: undefined, {a.reason}")
        else:
            shown = ", ".join(f"{level} {number(a.alpha[level])} {span(a.interval[level])}" for level in LEVELS)
            lines.append(f"alpha {a.criterion}: {shown} (n = {a.units} items, {a.ratings} ratings)")
    lines.append(f"self-replication ({r.replication_how}):")
    rows = [["", "r", "rho", "tau", "systems"]]
    for x in r.replication:
        rows.append([x.measure, number(x.pearson), number(x.spearman), number(x.kendall), str(x.systems)])
    lines += columns(rows)
    lines += [f"  {x.measure}: {x.reason}" for x in r.replication if x.reason]
    return lines


def _planning(r: Report) -> list[str]:
    lines = []
    if r.needed is not None:
        lines.append(
            f"planning: {r.needed} judgements per system find a difference of {r.difference:g} with power {r.power:g} "
            f"after Holm (standard deviation {number(r.deviation)})"
        )
    if r.powered:
        saved = "" if r.needed_with_metric is None else f"; {r.needed_with_metric} would do together with it"
        lines.append(f"prediction-powered with {r.metric} (correlation {number(r.correlation)}{saved})")
        rows = [["system", "rated", "scored", "estimate", "95 %", "ratings alone", "95 %"]]
        for p in r.powered:
            figures = (number(p.value), span(p.interval), number(p.alone), span(p.alone_interval))
            rows.append([p.system, str(p.rated), str(p.scored), *figures])
        lines += columns(rows)
        lines += [f"  {p.system}: {p.reason}" for p in r.powered if p.reason]
    return lines
