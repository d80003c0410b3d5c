"""The report's records: a list to sort, filter and search, with texts and evidence, packed into the page."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterator, Sequence
from html import escape

import numpy as np

from elench.grid import Cell, Grid
from elench.metrics import higher_is_better
from elench.records.record import Record
from elench.show.evidence import LEGEND, evidence_html
from elench.show.page import Section, folded, note
from elench.show.report import ReportRecord, View
from elench.show.tables import as_html

LARGEST = 1_000_000
"""Bytes of the whole file: small enough to send by mail."""
MOST_ROWS = 5_000
"""Records listed; of a larger run the lowest scores and a random sample."""
LOWEST, HIGHEST = 2, 1
"""Records per metric that are shown without the script, and so on paper."""
SHORT = 110


def packed(view: View, static: int) -> tuple[str, str]:
    """The records for the page's script, deflated, and what was left out to keep the file small.

    `static` is the size of the rest of the page. Texts and evidence are kept for as many records as fit, those with
    the lowest scores first."""
    order = _by_interest(view)
    listed = sorted(order[:MOST_ROWS])
    room = LARGEST - static - 30_000  # the script and the list's own markup
    keep = len(listed)
    while True:
        detailed = set(order[:keep])
        data = base64.b64encode(zlib.compress(json.dumps(_payload(view, listed, detailed)).encode(), 9)).decode()
        if len(data) <= room or not keep:
            break
        keep = int(keep * min(0.9, room / len(data))) if keep > 10 else 0
    remark = ""
    if len(listed) < len(view.rows):
        remark = f"A sample of {len(listed):,} of {len(view.rows):,} records: the lowest scores and a random rest. "
    if keep < len(listed):
        remark += f"Texts and evidence of {keep:,} records, to keep the file below 1 MB."
    return data, remark


def _by_interest(view: View) -> list[int]:
    """All rows: the lowest score of each metric, the second lowest …, up to 50 each; the rest at random."""
    worst = []
    for spec in view.specs:
        sign = 1 if higher_is_better(spec) else -1
        scored = [(sign * v, k) for k, row in enumerate(view.rows) if (v := row.outcome.value(spec)) is not None]
        worst.append([k for _, k in sorted(scored)[:50]])
    first = [column[depth] for depth in range(50) for column in worst if depth < len(column)]
    rest = np.random.default_rng(0).permutation(len(view.rows)).tolist()
    return list(dict.fromkeys([*first, *rest]))


def _payload(view: View, listed: Sequence[int], detailed: set[int]) -> dict[str, object]:
    applies: dict[str, set[str]] = {judge: set() for judge in view.judges}  # metrics that score such records at all
    for row in view.rows:
        applies[row.judge] |= row.outcome.scores.keys()
    rows = []
    for k in listed:
        row = view.rows[k]
        values = [None if (v := row.outcome.value(s)) is None else float(f"{v:.5g}") for s in view.specs]
        detail = _detail(row, view, applies) if k in detailed else ""
        rows.append([row.run, row.outcome.id, row.system or "", row.judge, _title(row), values, detail])
    return {"specs": view.specs, "lower": [not higher_is_better(s) for s in view.specs], "rows": rows}


def _title(row: ReportRecord) -> str:
    """The text that is judged, short."""
    text = getattr(row.record, row.judge) if row.judge else None
    text = " ".join((text or "").split())
    return text if len(text) <= SHORT else f"{text[:SHORT]}…"


def _detail(row: ReportRecord, view: View, applies: dict[str, set[str]]) -> str:
    """Texts, scores and evidence of a record."""
    parts = [texts(row.record)]
    for spec in view.specs:
        if spec in row.outcome.scores:
            score = row.outcome.scores[spec]
            shown = evidence_html(score.evidence, row.record)
            head = f"<h3>{escape(spec)} {score.value:.4f}</h3>"
            parts.append(head + shown if shown else "")
        elif spec in row.outcome.unscored and spec in applies[row.judge]:
            parts.append(note(f"{spec}: unscored, {row.outcome.unscored[spec]}"))
    return "".join(parts)


def texts(record: Record) -> str:
    """The texts of a record, whole."""
    rows: list[tuple[str | Cell, ...]] = [
        (name, str(value)) for name in ("context", "question", "answer", "summary") if (value := getattr(record, name))
    ]
    several = len(record.references) > 1
    rows += [(f"reference {k}" if several else "reference", r) for k, r in enumerate(record.references[:3], 1)]
    return as_html(Grid("", ("", ""), tuple(rows), "ll"), "wrap text")


def examples(view: View) -> Iterator[Section]:
    """Lowest and highest scores of every metric with the evidence: what remains without the script, and on paper."""
    parts = []
    for spec in view.specs:
        scored = [row for row in view.rows if spec in row.outcome.scores and row.outcome.scores[spec].evidence]
        sign = 1 if higher_is_better(spec) else -1
        scored.sort(key=lambda row: sign * row.outcome.scores[spec].value)
        chosen = scored if len(scored) <= LOWEST + HIGHEST else scored[:LOWEST] + scored[-HIGHEST:]
        items = []
        for row in chosen:
            score = row.outcome.scores[spec]
            body = texts(row.record) + evidence_html(score.evidence, row.record)
            items.append(folded(f"{score.value:.4f}  {row.outcome.id}  {row.system or ''}".strip(), body))
        if items:
            parts.append(f"<h3>{escape(spec)}</h3>" + "".join(items))
    if parts:
        remark = note(f"The {LOWEST} lowest scores of each metric and the highest. {LEGEND}")
        yield Section("What made the score", remark + "".join(parts))


def explorer(view: View, remark: str) -> Section:
    """The list of records and the plot of two metrics; the page's script fills them."""
    choices = "".join(f'<option value="{k}">{escape(spec)}</option>' for k, spec in enumerate(view.specs))
    second = choices.replace('value="1"', 'value="1" selected', 1)
    systems = list(dict.fromkeys(row.system for row in view.rows if row.system))
    filters = _filter("system", systems) + _filter("judge", [j for j in view.judges if j])
    scatter = (
        "<h3>Two metrics against each other</h3>"
        f'<div class="bar"><label>across<select id="x">{choices}</select></label>'
        f'<label>up<select id="y">{second}</select></label></div><div id="scatter"></div><div id="differ"></div>'
    )
    html = (
        "<noscript><p class=note>The list needs JavaScript; everything else on this page does not.</p></noscript>"
        f'<div class="bar"><label>search<input id="find" type="search" placeholder="id or text"></label>{filters}'
        f'<label>worst first by<select id="sort"><option value="">file order</option>{choices}</select></label></div>'
        f'{note(remark) if remark else ""}<p class="note" id="count"></p>'
        '<div class="scroll"><table id="list"></table></div>'
        f'<p><button id="more" hidden>Show more</button></p>{note(LEGEND)}{scatter if len(view.specs) > 1 else ""}'
    )
    return Section("Every record", html)


def _filter(name: str, values: Sequence[str]) -> str:
    if len(values) < 2:
        return ""
    options = "".join(f"<option>{escape(value)}</option>" for value in values)
    return f'<label>{name}<select id="{name}"><option value="">all</option>{options}</select></label>'
