"""The results page of the shipped profiles, written by `elench calibrate --shipped … --docs PAGE`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from elench.grid import Grid, limits, number
from elench.show.tables import render

HEAD = """# The shipped profiles: how far they agree with people

Written by `elench calibrate --shipped DATA -o src/elench/profiles --keep SCORES --docs docs/results/profiles.md`; do
not edit. Pearson's r; 95 % bootstrap intervals over groups.
"""
CARE = """## Read these figures with care

They are development figures, not a test on untouched data:

* The metrics of each profile, the files that each dimension is learned from and the learner's constants were chosen
  after looking at figures like these, on these files.
* The best single metric of a file is the best of all on that very file, a bar chosen with hindsight.
* `equivalent` was trained on four fifths of the questions of EVOUNA, SemEval-2013 and SAS; only the others are used
  here. They are still answers of the same systems and courses. Likewise `support` on three sources in four of SummEdits
  and of XSum's annotations.
* That a missing question mark predicts QGEval's fluency rests on 8 of 1,500 questions; its interval is wide.
* Files are sampled: whole groups, at random. n says how many records were used.

Certify a profile on ratings of your own before relying on it:
`elench certify profile:questions#fluency RATED.jsonl -o cert.json`.
"""


def profiles_page(contents: Mapping[str, Mapping[str, Any]]) -> str:
    """The page, as Markdown."""
    parts = [HEAD]
    for name, content in contents.items():
        grids = [_learned(content), _left_out(content), _few(content), _alone(content)]
        parts.append(
            f"## {name}: {content['data']['file']}\n\n{render(grids, content['notes'], 'markdown').rstrip()}\n"
        )
    if all(name in contents for name in ("questions", "answers", "summaries")):
        parts.append(f"## Goals\n\n{render([_goals(contents)], [], 'markdown').rstrip()}\n")
    return "\n".join([*parts, CARE])


def _goals(contents: Mapping[str, Mapping[str, Any]]) -> Grid:
    """What was aimed at, and what was reached."""
    questions, summaries = (contents[name]["first_file"] for name in ("questions", "summaries"))
    rows = [
        _goal("QGEval-SQuAD, mean of seven dimensions, all ratings", _mean(questions["r"]), 0.33),
        _goal(f"QGEval-SQuAD, {questions['few']} ratings", _mean(questions["r_few"]), 0.25),
        _goal("SummEval, mean of four dimensions, all ratings", _mean(summaries["r"]), 0.40),
    ]
    for name, first in (("QGEval-SQuAD", questions), ("SummEval", summaries)):
        if "coverage" in first:
            share, n = first["coverage"]["share"], first["coverage"]["n"]
            verdict = "reached" if 0.92 <= share <= 0.98 else "missed"
            what = f"{name}: system means within their 95 % interval, n = {n}"
            rows.append((what, number(share), ".92 to .98", verdict))
    for file in ("kpqa_marco", "kpqa_semeval"):
        rows.append(_goal(f"{file} left out", contents["answers"]["elsewhere"][file][0]["r"], 0.76))
    for one in questions["alone"]["lmqg"]:
        best = max(found[1] for found in (one["best_single"], one["best_peer"]) if found)
        rows.append(
            _goal(f"lmqg {one['dimension']}, learned from QGEval-SQuAD alone: above metrics and peers", one["r"], best)
        )
    return Grid("", ("goal", "reached", "goal ", ""), tuple(rows), "lrrl")


def _goal(what: str, reached: float, goal: float) -> tuple[str, ...]:
    return what, number(reached), number(goal), "reached" if reached >= goal else "missed"


def _mean(values: Mapping[str, float | None]) -> float:
    """Over the dimensions that people rated; `overall` is not one of them."""
    return float(np.mean([value or 0.0 for name, value in values.items() if name != "overall"]))


def _learned(content: Mapping[str, Any]) -> Grid:
    rows = []
    for dimension, found in content["dimensions"].items():
        full, weights = found["full"], list(found["full"]["weights"])[:3]
        interval = limits(*full["ci95"])
        cost = "–" if full["ms"] is None else f"{full['ms']:.0f}"
        rows.append(
            (
                dimension,
                str(full["n"]),
                number(full["r"]),
                interval,
                number(found["single"]["r"]),
                cost,
                ", ".join(weights),
            )
        )
    head = ("dimension", "n", "r", "95 %", "best single", "CPU ms", "carried by")
    return Grid("Groups not trained on (5 folds; several files: mean of their r)", head, tuple(rows), "lrrlrrl")


def _left_out(content: Mapping[str, Any]) -> Grid:
    rows = [
        (file, one["dimension"], str(one["n"]), number(one["r"]), limits(*one["ci95"]), *_beside(one))
        for file, tries in content["elsewhere"].items()
        for one in tries
    ]
    head = ("file left out", "dimension", "n", "r", "95 %", "best single metric there", "best peer in the file")
    return Grid("Learned from the other files", head, tuple(rows), "llrrlll")


def _beside(one: Mapping[str, Any]) -> Iterator[str]:
    for kind in ("best_single", "best_peer"):
        found = one[kind]
        yield f"{number(found[1])} {found[0]}" if found else "–"


def _few(content: Mapping[str, Any]) -> Grid:
    first = content["first_file"]
    rows: list[tuple[str, ...]] = [(name, number(r), number(first["r_few"][name])) for name, r in first["r"].items()]
    named = [name for name in first["r"] if name != "overall"]
    rows.append((f"mean of {len(named)}", *(number(_mean(first[kind])) for kind in ("r", "r_few"))))
    title = f"{first['file']} calibrated as yours would be, leaning on the other files (groups not trained on)"
    return Grid(title, ("dimension", "r, all ratings", f"r, {first['few']} ratings"), tuple(rows), "lrr")


def _alone(content: Mapping[str, Any]) -> Grid:
    first = content["first_file"]
    rows = [
        (file, one["dimension"], str(one["n"]), number(one["r"]), *_beside(one))
        for file, tries in first["alone"].items()
        for one in tries
    ]
    title = f"Learned from {first['file']} alone, at the strongest penalty"
    return Grid(
        title,
        ("file", "dimension", "n", "r", "best single metric there", "best peer in the file"),
        tuple(rows),
        "llrrll",
    )
