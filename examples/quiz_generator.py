"""Keep the generated quiz questions that can be used, and say why the others were dropped.

    python examples/quiz_generator.py [QUESTIONS.jsonl] [KEPT.jsonl]

A record needs context, question and answer. Thresholds are a start: set them after looking at what is dropped.
`--cheap` as first argument uses only the metrics that need no model.
"""

import sys

import elench

CHECKS = {
    "answer-leak": (1.0, "gives its answer away"),
    "near-answer": (0.2, "is not about the text around its answer"),
    "answerable": (0.5, "cannot be answered from the text"),
    "wellformed": (0.4, "is not well formed"),
    "roundtrip": (0.05, "leads to another answer"),
}
CHEAP = ("answer-leak", "near-answer")


def main(arguments: list[str]) -> None:
    cheap = arguments[:1] == ["--cheap"]
    files = arguments[1:] if cheap else arguments
    source = files[0] if files else "sample/questions.jsonl"
    checks = {name: check for name, check in CHECKS.items() if not cheap or name in CHEAP}
    result = elench.score(source, list(checks))
    kept = []
    for outcome in result.outcomes:
        reasons = [
            text
            for name, (least, text) in checks.items()
            if name in outcome.scores and outcome.scores[name].value < least
        ]
        question = outcome.record.question if outcome.record else outcome.id
        print("drop" if reasons else "keep", question, *[f"- it {text}" for text in reasons])
        if not reasons and outcome.record:
            kept.append(outcome.record)
    print(f"{len(kept)} of {len(result.outcomes)} questions kept")
    if len(files) > 1:
        elench.write_records(kept, files[1])


if __name__ == "__main__":
    main(sys.argv[1:])
