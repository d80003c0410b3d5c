"""What the study commands print: the plan of a new study and the state of a running one."""

from __future__ import annotations

from collections import Counter

from quaestor.study.folder import Study
from quaestor.study.progress import Progress


def plan_text(study: Study, records: int) -> str:
    """What was planned, in a few lines, with the next command."""
    protocol, tasks = study.protocol, study.tasks
    kinds = Counter(item.kind for task in tasks for item in task.items)
    sizes = sorted({len(task.items) for task in tasks})
    per_task = f"{sizes[0]}" if len(sizes) == 1 else f"{sizes[0]}–{sizes[-1]}"
    used = len(study.records)
    lines = [
        f"{study.folder}: {protocol.title} ({protocol.name})",
        f"systems:  {len(study.systems)}" + (f", {study.human} stands for people" if study.human else ""),
        f"tasks:    {len(tasks)} of {per_task} items, {protocol.task.raters} rater(s) each",
        f"items:    {kinds['ordinary']} ordinary, {kinds['bad']} bad references, {kinds['repeat']} repeats",
        f"records:  {used} of {records} used"
        + ("" if used == records else " (complete passages, equally many per system)"),
    ]
    if protocol.pay:
        sittings = sum(task.raters for task in tasks)
        lines.append(f"pay:      {sittings} × {protocol.pay:.2f} = {sittings * protocol.pay:.2f} {protocol.currency}")
    lines.append(f"next:     quaestor study serve {study.folder}")
    return "\n".join(lines)


def progress_text(now: Progress) -> str:
    """`quaestor study status`."""
    minutes = "–" if now.minutes is None else f"{now.minutes:.1f}"
    lines = [
        f"{'paused' if now.paused else 'running'}: {now.submitted} of {now.planned} tasks submitted, "
        f"{now.open} in work, {now.expired} expired; {now.ratings} ratings; "
        f"{minutes} minutes per task (median, n = {now.submitted})",
    ]
    if now.filtered:
        lines.append(f"raters:  {now.passed} of {now.judged} pass the filter so far")
    lines.append("systems: " + ", ".join(f"{s.name} {s.rated}/{s.planned}" for s in now.systems))
    for found in now.agreement:
        if found.reason:
            lines.append(f"alpha:   {found.criterion}: undefined, {found.reason}")
        else:
            levels = ", ".join(f"{level} {value:.2f}" for level, value in found.alpha.items() if value is not None)
            lines.append(f"alpha:   {found.criterion}: {levels} (n = {found.units} items)")
    for rater in now.raters:
        verdict = rater.verdict
        p = "" if verdict is None or verdict.p is None else f", p = {verdict.p:.4f} on {verdict.pairs} pairs"
        lines.append(f"rater    {rater.id} ({rater.source}): {rater.submitted} submitted, {rater.open} in work{p}")
    return "\n".join(lines)
