"""The examples printed in the QRelScore paper: which orders the embedded models keep, and which they do not.

`python -m tests.metrics.test_paper_examples` prints every comparison.
"""

import pytest

import elench

JACK = "Jack drove his car to the bazaar to purchase milk and honey for his large family."
SENSE = (
    "In 1987, when some students believed that the observer began to show a conservative bias, a liberal newspaper, "
    "Common Sense was published."
)
LOCKE = (
    "During the age of enlightenment, philosophers such as John Locke advocated the principle in their writings, "
    "separating the legislature, the executive, and the judiciary."
)
FIGHT = (
    "The fight scene finale between Sharon and the character played by Ali Larter, from the movie Obsessed, won the 2010 "
    "MTV Movie Award for Best Fight."
)
EXAMPLES = {
    # name: (context, answer, better question, worse question)
    "Figure 2, entity swap": (JACK, "the bazaar", "Where did Jack buy his milk and honey?", "Where did Jack buy his car?"),
    "Figure 2, pronoun swap": (JACK, "the bazaar", "Where did Jack buy his milk and honey?", "Where did Jack buy your milk and honey?"),
    "Figure 2, negation": (JACK, "the bazaar", "Where did Jack buy his milk and honey?", "Where didn't Jack buy his milk and honey?"),
    "Table 1, Q1 over unanswerable Q2": (SENSE, "1987", "when was Common Sense first published?", "who was Common Sense published for the first time?"),
    "Table 1, Q3 over unanswerable Q2": (SENSE, "1987", "in what year did Common Sense begin publication?", "who was Common Sense published for the first time?"),
    "Figure 4.1 over irrelevant": (LOCKE, "John Locke", "Who advocated the principle in the age of enlightenment?", "Where did Jack buy his milk and honey?"),
    "Figure 4.2 over irrelevant": (FIGHT, "MTV Movie Award for Best Fight", "Which award did the fight scene between Sharon and the role of Ali Larter win?", "when was Common Sense first published?"),
}  # fmt: skip
SPECS = ["qrelscore", "qrel-lrm", "qrel-grg", "qa-overlap", "qascore[form=causal]"]
FAILS = {
    ("Figure 2, pronoun swap", "qa-overlap"),
    ("Figure 2, negation", "qa-overlap"),
    ("Figure 2, entity swap", "qascore[form=causal]"),
    ("Figure 2, pronoun swap", "qascore[form=causal]"),
}
"""What does not hold, for the metrics that look at the answer: a changed pronoun or a "not" leaves it as findable."""


def differences():
    """(example, metric) → score of the better question minus that of the worse."""
    records = [
        {"id": f"{name} {side}", "context": context, "answer": answer, "question": questions[side], "judge": "question"}
        for name, (context, answer, *questions) in EXAMPLES.items()
        for side in (0, 1)
    ]
    result = elench.score(records, SPECS)
    return {(name, spec): result[spec, f"{name} 0"] - result[spec, f"{name} 1"] for name in EXAMPLES for spec in SPECS}


@pytest.mark.embedded
def test_the_papers_orders_hold_but_for_the_listed_ones():
    """QRelScore and its parts keep all seven; the reader and SmolLM2 are blind to some small changes."""
    failed = {key for key, difference in differences().items() if difference <= 0}
    assert failed <= FAILS


if __name__ == "__main__":
    found = differences()
    for name in EXAMPLES:
        print(
            f"{name:36}",
            "  ".join(
                f"{spec} {'holds' if found[name, spec] > 0 else 'FAILS'} ({found[name, spec]:+.4f})" for spec in SPECS
            ),
        )
