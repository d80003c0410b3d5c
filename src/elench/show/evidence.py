"""Turns evidence into something a person reads, by the kind of each entry: the only place that does.

The kinds are listed in `elench.metrics.evidence`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from elench.grid import Cell, Grid, number
from elench.records.record import Record
from elench.show.blocks import Block, Folded, Heat, HeatWord, Line, MarkedText, block_html, block_rich
from elench.show.pieces import matched_words, summed_words

if TYPE_CHECKING:
    from rich.console import RenderableType

LABELS = {
    "lrm": "word-level relevance (LRM)", "grg": "sentence-level relevance (GRG)", "P": "precision", "R": "recall",
    "F": "F1", "gains": "how much the question helps to predict the context", "chunks": "parts the text was read in",
    "parts": "parts the text was read in", "cut": "tokens cut off", "answer_words": "answer",
    "reference_words": "reference", "p_answer": "probability of the intended answer",
    "unanswerable": "probability that it cannot be answered",
}  # fmt: skip
"""Names of entries in words; any other name is shown as it is."""
LONG = 240
"""Texts of the evidence are cut at this many characters."""
ROWS = 60
"""Rows shown of a table of matches."""
WORST = 10
"""Questions shown at once, the worst first."""
TONES = {"supported": "good", "contradicted": "bad", "missing": "warn", "not found": "warn"}
ORDER = {"contradicted": 0, "missing": 1, "not found": 1, "supported": 2}
LEGEND = (
    "Blue words count for the score, orange words against it; the stronger the colour, the more. "
    "Touch or point at a word for its number."
)


def evidence_html(evidence: Mapping[str, Any] | None, record: Record | None = None) -> str:
    """Evidence as HTML."""
    return "".join(map(block_html, blocks(evidence, record)))


def evidence_rich(evidence: Mapping[str, object] | None) -> RenderableType:
    """Evidence for the terminal."""
    from rich.console import Group

    return Group(*map(block_rich, blocks(evidence, None)))


def evidence_text(evidence: Mapping[str, object] | None, width: int = 100) -> str:
    """Evidence as plain text."""
    import io

    from rich.console import Console

    stream = io.StringIO()
    Console(file=stream, width=width, no_color=True, highlight=False).print(evidence_rich(evidence))
    return "\n".join(line.rstrip() for line in stream.getvalue().splitlines())


def blocks(evidence: Mapping[str, Any] | None, record: Record | None) -> list[Block]:
    """The evidence as blocks: numbers first in a line, then each entry by its kind."""
    if not evidence:
        return []
    kinds = evidence.get("kinds", {})
    numbers = [
        f"{_label(name)} {_brief(value)}"
        for name, value in evidence.items()
        if name not in kinds and isinstance(value, (int, float)) and not isinstance(value, bool)
    ]
    found: list[Block] = [Line("numbers", ", ".join(numbers))] if numbers else []
    shown = {record.context, *record.references[:1]} if record and len(record.references) < 2 else set()
    for name, value in evidence.items():
        if name == "kinds" or value in (None, [], {}, "") or (isinstance(value, str) and value in shown):
            continue  # the record's own texts are above the evidence
        kind, *arguments = [kinds[name]] if isinstance(kinds.get(name), str) else kinds.get(name) or [""]
        if kind in PRESENTERS:
            found += PRESENTERS[kind](name, value, arguments, evidence, record)
        elif isinstance(value, bool) or not isinstance(value, (int, float)):
            found.append(Line(_label(name), _brief(value)))
    return found


def _label(name: str) -> str:
    return LABELS.get(name, name.replace("_", " "))


def _brief(value: Any) -> str:
    """A value without a kind, in a line."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, Mapping):
        return ", ".join(f"{k}: {_brief(v)}" for k, v in value.items()) or "–"
    if isinstance(value, (list, tuple)):
        return "; ".join(" ".join(map(_brief, v)) if isinstance(v, (list, tuple)) else _brief(v) for v in value) or "–"
    text = str(value)
    return text if len(text) <= LONG else f"{text[:LONG]}…"


# --- one function per kind ----------------------------------------------------------------------------------------


def _weights(name: str, rows: Any, *_: Any) -> list[Block]:
    words = tuple(
        HeatWord(str(word), float(weight), number(weight, 2), f"weight {weight:.3f}") for word, weight in rows
    )
    return [Heat(_label(name), words, "The stronger the colour, the more the word counts.")]


def _logprobs(name: str, rows: Any, *_: Any) -> list[Block]:
    words = tuple(
        HeatWord(word, max(-1.0, value / 10), number(value, 1), f"log-probability {value:.2f}")
        for word, value in summed_words(rows)
    )
    return [Heat(_label(name), words, "Orange: words the model did not expect; they lower the score.")]


def _gains(name: str, rows: Any, *_: Any) -> list[Block]:
    if not all(len(row) == 2 for row in rows):  # a summary instead of tokens
        return [Line(_label(name), _brief(rows))]
    words = summed_words(rows)
    most = max((abs(value) for _, value in words), default=0.0) or 1.0
    shown = tuple(HeatWord(word, value / most, f"{value:+.1f}", f"{value:+.2f}") for word, value in words)
    return [Heat(_label(name), shown, "Blue: easier to predict once the question is known; orange: harder.")]


def _matches(name: str, rows: Any, columns: Sequence[str], *_: Any) -> list[Block]:
    found = matched_words(rows)
    heat = tuple(
        HeatWord(own, float(likeness), number(likeness, 2), f"best match: {other} ({likeness:.2f})")
        for own, other, likeness, *_ in found
    )
    header = ("word", "best match", "similarity", *columns)
    body = tuple((own, other, number(likeness, 2), *map(_brief, more)) for own, other, likeness, *more in found[:ROWS])
    left = f", {len(found) - ROWS} more" if len(found) > ROWS else ""
    grid = Grid("", header, body, "ll")
    legend = "The stronger the colour, the better the word is matched in the other text."
    return [Heat(_label(name), heat, legend), Folded(f"each word and its best match{left}", (grid,))]


def _alignment(name: str, rows: Any, sides: Sequence[str], evidence: Mapping[str, Any], *_: Any) -> list[Block]:
    own, other = (evidence[side] for side in sides)
    pairs = [(own[i][0], other[j][0], likeness) for i, j, likeness in rows if likeness >= 0.5]
    text = ", ".join(a if a == b else f"{a} = {b} ({number(likeness, 2)})" for a, b, likeness in pairs)
    return [Line("words matched", text or "none")]


def _edges(name: str, rows: Any, *_: Any) -> list[Block]:
    body = tuple(
        (r["wanted"], Cell("none", tone="bad") if r["found"] is None else r["found"], number(r["similarity"], 2))
        for r in rows
    )
    return [Grid("", ("relation between two words", "its best match", "similarity"), body, "ll")]


def _contributions(name: str, rows: Any, *_: Any) -> list[Block]:
    body = tuple((r["metric"], number(r["score"]), f"{r['z']:+.2f}", f"{r['adds']:+.3f}") for r in rows)
    return [Grid("", ("metric", "score", "z", "adds"), body)]


def _sentences(name: str, rows: Any, *_: Any) -> list[Block]:
    body = []
    for row in sorted(rows, key=lambda r: ORDER.get(r["verdict"], 3)):
        chances = ", ".join(f"{k} {number(v, 2)}" for k, v in row.get("probabilities", {}).items())
        if unknown := row.get("unknown_words"):
            chances += f"; not in the context: {', '.join(unknown)}"
        passage = row.get("passage") or "–"
        body.append((row["sentence"], Cell(row["verdict"], tone=TONES.get(row["verdict"], "")), passage, chances))
    return [Grid("", ("sentence", "verdict", "passage read", "probabilities"), tuple(body), "llll")]


def _notes(name: str, rows: Any, *_: Any) -> list[Block]:
    lines = [
        f"{row.get('what', 'difference')} only in the {row['side']}: {row['text']}"
        if row.get("side")
        else str(row["text"])
        for row in rows
    ]
    return [Line("note", line, "warn") for line in lines]


def _nested(name: str, value: Any, arguments: Any, evidence: Any, record: Record | None) -> list[Block]:
    return [Folded(_label(name), tuple(blocks(value, record)))]


def _questions(name: str, rows: Any, arguments: Any, evidence: Mapping[str, Any], record: Record | None) -> list[Block]:
    """Questions with both answers and verdicts, the worst first, beside both texts with the answers marked."""
    compared_with = evidence.get("against", "source")
    source = _compared(compared_with, record)
    body = []
    marks: dict[bool, list[tuple[Any, bool]]] = {True: [], False: []}
    for q in sorted(rows, key=lambda q: (ORDER.get(q["verdict"], 3), -q["weight"])):
        of_summary = q["direction"] == "precision"
        verdict = Cell(q["verdict"], tone=TONES.get(q["verdict"], ""))
        asked = "summary" if of_summary else str(compared_with)
        body.append((asked, q["question"], q["answer"], q["other"] or "—", f"{q['weight']:.2f}", verdict))
        bad = q["verdict"] != "supported"
        marks[of_summary].append((q.get("span"), bad))
        marks[not of_summary].append((q.get("other_span"), bad and bool(q["other"])))
    header = ("asked of", "question", "its answer", "the other text says", "weight", "verdict")
    grids: list[Block] = [Grid("", header, tuple(body[:WORST]), "llllrl")]
    if len(body) > WORST:
        grids.append(Folded(f"{len(body) - WORST} more questions", (Grid("", header, tuple(body[WORST:]), "llllrl"),)))
    if record is None or not record.summary or source is None:
        return grids
    sides = (
        MarkedText(str(compared_with), source, tuple(marks[False])),
        MarkedText("summary", record.summary, tuple(marks[True])),
    )
    return [sides, *grids]


def _compared(compared_with: Any, record: Record | None) -> str | None:
    """The text a summary was compared with: "source" or "reference K", the K-th of the record's references."""
    if record is None:
        return None
    if compared_with == "source":
        return record.context or None
    found = re.fullmatch(r"reference ([1-9]\d*)", str(compared_with))
    return record.references[int(found[1]) - 1] if found and int(found[1]) <= len(record.references) else None


PRESENTERS: dict[str, Callable[[str, Any, Sequence[str], Mapping[str, Any], Record | None], list[Block]]] = {
    "weights": _weights, "logprobs": _logprobs, "gains": _gains, "matches": _matches, "alignment": _alignment,
    "questions": _questions, "sentences": _sentences, "edges": _edges, "notes": _notes, "evidence": _nested,
    "contributions": _contributions,
}  # fmt: skip
