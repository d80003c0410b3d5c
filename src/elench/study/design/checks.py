"""Checks before a study starts: can a careful rater pass, are these the right records, is the right answer marked?"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from elench.errors import UsageError
from elench.records.record import Record
from elench.study.design.protocol import FilterRule, Protocol
from elench.text.unspaced import is_unspaced


def smallest_p(pairs: int) -> float:
    """The smallest p that a one-sided signed-rank test of this many pairs can reach: all differences positive."""
    return 0.5**pairs


def pairs_needed(rule: FilterRule) -> int:
    """Control pairs per task with which a rater passes even when the smallest difference goes the wrong way."""
    return math.ceil(pairs_needed_in_all(rule) / rule.patience)


def smallest_permutation_p(items: int, bad: int, tasks: int) -> float:
    """The p of a rater who gives all intact items one rating and all bad references a lower one."""
    return max(1 / 2000, 1 / float(math.comb(items, bad) ** tasks))


def check_reachable(items: int, bad: int, passages: int, protocol: Protocol) -> None:
    """Refuse a design whose raters cannot rate enough controls to pass the permutation test."""
    rule = protocol.filter
    if rule.kind != "permutation":
        return
    tasks = min(passages, protocol.task.max_per_rater, math.ceil(2 * rule.controls / bad))
    reached = smallest_permutation_p(items, bad, tasks)
    if 2 * reached >= rule.alpha:
        raise UsageError(
            f"nobody can reliably pass the filter: {bad} of {items} items of a task are bad references and a rater can "
            f"take {tasks} task(s), so the smallest reachable p is {reached:.4f} and the filter requires "
            f"p < {rule.alpha:g}; add passages or systems, or raise task.max_per_rater"
        )


def control_pairs_per_task(bad: int, protocol: Protocol) -> int:
    """Pairs that the filter gets from one task with this many bad references."""
    return bad * (len(protocol.criteria) if protocol.filter.pairs == "ratings" else 1)


def enough_controls(bad: int, systems: int, human: bool, protocol: Protocol) -> int:
    """Bad references of the non-human systems: the protocol's share, raised where nobody could pass; else refused."""
    rule = protocol.filter
    if not rule.judges_raters:
        return bad
    extra = 1 if human else 0
    most = systems - extra
    if rule.kind == "permutation":
        return min(most, max(bad, 2 - extra))
    needed = pairs_needed(rule)
    while bad < most and control_pairs_per_task(bad + extra, protocol) < needed:
        bad += 1
    pairs = control_pairs_per_task(bad + extra, protocol)
    if pairs < needed:
        reached = smallest_p(pairs * rule.patience)
        raise UsageError(
            f"nobody can reliably pass the filter: {systems} systems give {pairs} control pairs per task, so "
            f"the smallest reachable p is {reached:.4f} and the filter requires p < {rule.alpha:g}, one slip allowed; "
            f'add systems or criteria, set filter.pairs = "ratings", or set filter.patience = '
            f"{math.ceil(pairs_needed_in_all(rule) / max(pairs, 1))} so that raters are judged after that many tasks"
        )
    return bad


def pairs_needed_in_all(rule: FilterRule) -> int:
    """Control pairs over all tasks after which a rater is judged."""
    return math.floor(math.log2(2 / rule.alpha)) + 1 if 0 < rule.alpha < 1 else 10**9


def check_kinds(records: Sequence[Record], protocol: Protocol, judge: str | None = None) -> None:
    """Refuse records of another kind than the protocol judges; `judge` is the researcher's word for unmarked ones."""
    if judge is not None and judge != protocol.judge:
        raise UsageError(f"--judge {judge}: protocol {protocol.name} judges the {protocol.judge}")
    for record in records:
        kind = record.judge or judge or record.guess_judge()
        if kind != protocol.judge:
            what = f"has judge = {record.judge!r}" if record.judge else f"looks like one whose {kind} is judged"
            raise UsageError(
                f"line {record.line}: record {record.id!r} {what}, and protocol {protocol.name} judges the "
                f"{protocol.judge}: choose another protocol"
                + ("" if record.judge else f", or confirm with --judge {protocol.judge}")
            )


def answer_places(context: str, answer: str) -> list[tuple[int, int]]:
    """Where an answer occurs in a passage as whole words: with its case, else without.

    Where a language writes no spaces between words, any occurrence counts.
    """
    if not answer.strip():
        return []
    pattern = re.escape(answer.strip())
    if not is_unspaced(answer):
        pattern = rf"(?<!\w){pattern}(?!\w)"
    for flags in (0, re.IGNORECASE):
        if found := [match.span() for match in re.finditer(pattern, context, flags)]:
            return found
    return []


def marked_answer(record: Record) -> tuple[int, int] | None:
    """The characters to highlight: where `answer_start` says, else the first occurrence."""
    context, answer = record.context or "", record.answer or ""
    start = record.extra.get("answer_start")
    if isinstance(start, int) and answer and context[start : start + len(answer)] == answer:
        return start, start + len(answer)
    places = answer_places(context, answer)
    return places[0] if places else None


def warnings(records: Sequence[Record], protocol: Protocol) -> list[str]:
    """What a researcher should look at before the first rater comes."""
    found = []
    if protocol.highlight and "context" in protocol.show and protocol.judge != "answer":
        lost = [r for r in records if (r.answer or "").strip() and marked_answer(r) is None]
        vague = [r for r in records if len(answer_places(r.context or "", r.answer or "")) > 1]
        vague = [r for r in vague if not isinstance(r.extra.get("answer_start"), int)]
        none = [r for r in records if not (r.answer or "").strip()]
        for rows, text in (
            (lost, "the answer does not occur in the context, so nothing is highlighted"),
            (vague, "the answer occurs several times and the first is highlighted: give answer_start"),
            (none, "no answer is given, so nothing is highlighted"),
        ):
            if rows:
                found.append(f"{len(rows)} of {len(records)} records (first: {rows[0].id}): {text}")
    if "reference" in protocol.show and (bare := [r for r in records if not r.references]):
        found.append(f"{len(bare)} of {len(records)} records (first: {bare[0].id}) have no reference to show")
    return found
