"""Which summariser is better? Paired tests per metric, then the worst outputs.

    python examples/compare_summarisers.py [SUMMARIES.jsonl] [METRICS]

Every record names its `system`; the same `id` appears once per system. METRICS is a list such as support,source-overlap
(the default needs no model).
"""

import sys

import elench


def main(arguments: list[str]) -> None:
    source = arguments[0] if arguments else "sample/summaries.jsonl"
    metrics = arguments[1] if len(arguments) > 1 else "source-overlap,lead-overlap"
    print(elench.compare(source, metrics))
    first = metrics.split(",")[0]
    print(f"\nWorst by {first}:")
    for row in elench.score(source, metrics).worst(3, first):
        print(row)


if __name__ == "__main__":
    main(sys.argv[1:])
