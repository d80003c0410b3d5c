"""What the study commands print: the plan of a new study and the state of a running one."""

from __future__ import annotations

from collections import Counter

from elench.study.collect.progress import Place, Progress
from elench.study.design.checks import control_pairs_per_task, smallest_p, smallest_permutation_p
from elench.study.folder import Study


def plan_text(study: Study, records: int) -> str:
    """What was planned, in a few lines, with the next command."""
    protocol, tasks = study.protocol, study.tasks
    kinds = Counter(item.kind for task in tasks for item in task.items)
    sizes = sorted({len(task.screens) for task in tasks})
    per_task = f"{sizes[0]}" if len(sizes) == 1 else f"{sizes[0]}–{sizes[-1]}"
    used = len(study.records)
    lines = [
        f"{study.folder}: {protocol.title} ({protocol.name})",
        f"systems:  {len(study.systems)}" + (f", human system: {study.human}" if study.human else ""),
        f"tasks:    {len(tasks)} of {per_task} screens, {protocol.task.raters} rater(s) who pass each",
        f"items:    {kinds['ordinary']} ordinary, {kinds['bad']} bad references, {kinds['repeat']} repeats",
        f"records:  {used} of {records} used"
        + ("" if used == records else " (complete passages, equally many per system)"),
    ]
    if protocol.filter.kind == "permutation":
        items, bad = min((len(t.items), sum(item.kind == "bad" for item in t.items)) for t in tasks)
        judged = protocol.filter
        lines.append(
            f"filter:   p < {judged.alpha:g} by permutation; a careful rater can reach "
            f"p = {smallest_permutation_p(items, bad, 1):.2g} after one task ({bad} bad references in {items} items); "
            f"undecided raters (p < {judged.doubt:g}) get another task"
        )
    if protocol.filter.kind == "wilcoxon":
        bad = min(sum(item.kind == "bad" for item in task.items) for task in tasks)
        pairs = control_pairs_per_task(bad, protocol) * protocol.filter.patience
        after = "one task" if protocol.filter.patience == 1 else f"{protocol.filter.patience} tasks"
        lines.append(
            f"filter:   p < {protocol.filter.alpha:g}; a careful rater can reach p = {smallest_p(pairs):.2g} "
            f"after {after} ({pairs} control pairs)"
        )
    if protocol.pay:
        sittings = sum(task.raters for task in tasks)
        rule = "every submitted task is paid" if protocol.reward.failed else "work that fails is not paid"
        total = f"{sittings} × {protocol.pay:.2f} = {sittings * protocol.pay:.2f} {protocol.currency}"
        lines.append(f"pay:      {total} if all pass; {rule}")
    lines.append(f"next:     elench study serve {study.folder}")
    return "\n".join(lines)


def progress_text(now: Progress) -> str:
    """`elench study status`."""
    minutes = "–" if now.minutes is None else f"{now.minutes:.1f}"
    look = now.heavy.outlook
    lines = [
        f"{'paused' if now.paused else 'running'}: {now.counted} of {now.planned} tasks passed; "
        f"{now.submitted} submitted, {now.open} in progress, {now.expired} expired; {now.ratings} ratings; "
        f"{minutes} minutes per task (median, n = {now.submitted})",
    ]
    if look.to_completion is not None:
        lines.append(
            f"cost:    {look.spent:.2f} {look.currency} spent, about {look.to_completion:.2f} more to completion "
            f"({look.counted} of {look.target} tasks passed)"
        )
    if look.decided is not None:
        share = "" if look.share is None else f"; {100 * look.share:.0f} % of all pairs expected"
        lines.append(
            f"outlook: {100 * look.decided:.0f} % chance that {look.comparison} is decided at completion{share} "
            f"(n = {look.units} passages)"
        )
    else:
        lines.append("outlook: too few passed ratings to tell whether the comparison will be decided")
    if now.filtered:
        lines.append(f"raters:  {now.passed} of {now.judged} pass the filter so far")
    lines.append("systems: " + ", ".join(f"{s.name} {s.rated}/{s.planned}" for s in now.systems))
    lines += _ranking_lines("ranking", now.heavy.ranking)
    undecided = [p for p in now.heavy.pairs if not p.decided()]
    if now.heavy.pairs:
        lines.append(
            f"pairs:   {len(now.heavy.pairs) - len(undecided)} of {len(now.heavy.pairs)} decided (any-time test)"
        )
    for found in now.heavy.agreement:
        if found.reason:
            lines.append(f"alpha:   {found.criterion}: undefined, {found.reason}")
        else:
            levels = ", ".join(f"{level} {value:.2f}" for level, value in found.alpha.items() if value is not None)
            lines.append(f"alpha:   {found.criterion}: {levels} (n = {found.units} items)")
    for rater in now.raters:
        verdict = rater.verdict
        p = "" if verdict is None or verdict.p is None else f", p = {verdict.p:.4f} on {verdict.pairs} pairs"
        standing = f", {rater.standing}" if rater.standing else ""
        flags = f" [{'; '.join(rater.flags)}]" if rater.flags else ""
        lines.append(
            f"rater    {rater.id} ({rater.source}): {rater.counted} of {rater.submitted} passed, "
            f"{rater.open} in progress{p}{standing}{flags}"
        )
    return "\n".join(lines)


def _ranking_lines(name: str, places: tuple[Place, ...]) -> list[str]:
    if not places:
        return []
    return [f"{name}: " + ", ".join(f"{p.system} {p.score:.3f} ({p.letters})" for p in places)]
