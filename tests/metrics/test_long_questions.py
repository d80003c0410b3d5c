"""A long question does not push the answers out of sight."""

from __future__ import annotations

import elench

STORY = (
    "Grace set up an experiment in the kitchen of her school. She put four eggs into a bowl of vinegar, and four "
    "others into a bowl of tap water, and wrote the time on a piece of paper. Every day she took one egg out of each "
    "bowl, dried it with a towel, put it on the scale, and wrote down what it weighed. On the fifth day her teacher "
    "came and asked her to draw a chart of the eight numbers and to hang it beside the window, where all the others "
    "could see it. Some of them had measured eggs of their own at home, with other bowls, and had found other numbers. "
    "In the evening the whole class went to the harbour to look at the ships."
)
QUESTION = "Where was Julius Caesar killed?"


def test_a_long_question_does_not_hide_the_answers() -> None:
    records = [
        {"question": question, "answer": answer, "references": ["in Rome"]}
        for question in (QUESTION, f"{STORY} {QUESTION}")
        for answer in ("Rome", "in Vienna")
    ]
    found = elench.score(records, "equivalent", judge="answer").values("equivalent")
    right, wrong, late_right, late_wrong = found
    assert right > 0.5 > wrong
    assert late_right > 0.5 > late_wrong


def test_support_judges_the_answer_to_a_long_question() -> None:
    source = "Julius Caesar was a Roman general. He was killed in Rome in 44 BC by a group of senators."
    record = {"question": f"{STORY} {QUESTION}", "context": source}
    answers = [{**record, "answer": "Rome"}, {**record, "answer": "He was never killed."}]
    right, wrong = elench.score(answers, "support", judge="answer").values("support")
    assert right > 0.5 > wrong
