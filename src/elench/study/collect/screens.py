"""What a rater sees of an item: neither its kind, nor its system, nor its record leaves the server."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from elench.perturb.bad_reference import words_of
from elench.study.folder import KNOWN, Study

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def cut(context: str, mark: tuple[int, int] | None) -> tuple[str, str, str]:
    """The passage before, in and after the highlighted answer."""
    if mark is None:
        return context, "", ""
    return context[: mark[0]], context[mark[0] : mark[1]], context[mark[1] :]


def screen_view(study: Study, task: str, places: Sequence[int], say: Mapping[str, str]) -> dict[str, Any]:
    """What the item template needs for one screen: the passage, texts beside it, and the outputs to judge."""
    found = [study.shown(study.by_id[task], place) for place in places]
    judge = study.protocol.judge
    shared = dict(found[0]["texts"])
    context = shared.pop("context", "")
    shared.pop(judge, None)
    names = dict(say)
    if judge != "answer":
        names["reference"] = say[f"reference_{judge}"]
    elif "reference" in study.protocol.show:  # two answers on one page must be told apart
        names |= {"answer": say["predicted_answer"], "reference": say["correct_answer"]}
    outputs = [
        {
            "name": names[judge] if len(places) == 1 else say["output"].format(name=names[judge], letter=LETTERS[n]),
            "letter": LETTERS[n],
            "text": each["texts"][judge],
            "words": words_of(each["texts"][judge]),
        }
        for n, each in enumerate(found)
    ]
    return {
        "passage": cut(context, found[0]["mark"]) if context.strip() else None,
        "beside": [(names[name], text) for name, text in shared.items() if text.strip()],
        "outputs": outputs,
        "criteria": study.protocol.asked,
    }


def lessons(study: Study, task: str, place: int, answers: Mapping[str, str], say: Mapping[str, str]) -> dict[str, str]:
    """Feedback on a training item, by criterion; `explanation` under the empty name."""
    if task not in KNOWN:
        return {}
    item = study.known(task)[place]
    found = {"": item.explanation} if item.explanation else {}
    for name, (low, high) in item.expected.items():
        criterion = study.protocol.criterion(name)
        value = criterion.value(answers[name]) if name in answers else None
        if value is not None and low <= value <= high:
            found[name] = say["well_done"]
            continue
        if criterion.slider:
            expected = say["expected_low" if low == 0 else "expected_high"]
        else:
            expected = say["quoted"].format(text=criterion.labels[criterion.values.index(low)])
        found[name] = say["not_quite"].format(expected=expected)
    return found
