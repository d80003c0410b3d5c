"""Do the tests notice a changed formula? `python -m tests.faithful.mutations` tries at least five changes per metric.

Each change is made to the source of a module in memory; then the tests of that metric run until one fails. Prints
caught or MISSED per change.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable
from types import ModuleType

import pytest

from tests.faithful import test_equations_answers as equations
from tests.faithful import test_golden as golden
from tests.faithful.items import ANSWERS, QUESTIONS, SUMMARIES
from tests.metrics import test_kpqa, test_qascore, test_qrelscore, test_qsts, test_questeval

MUTATIONS = {
    "qrelscore": [
        ("elench.metrics.qrelscore", "prompted.total - base.total", "base.total - prompted.total"),
        ("elench.metrics.qrelscore", "difference / abs(base.total)", "difference / abs(prompted.total)"),
        ("elench.metrics.qrelscore", "math.exp(logprob)", "logprob"),
        ("elench.metrics.qrelscore", "(after - before) / before", "(after - before) / after"),
        ("elench.metrics.qrelscore", "** (1 / p)", "** p"),
    ],
    "qascore": [
        ("elench.metrics.qascore", 'total if self.form != "code" and', 'total if self.form == "code" and'),
        ("elench.metrics.qascore", "total / len(words)", "total / (len(words) + 1)"),
        ("elench.metrics.qascore", "question, answer, self.form)", 'question, answer, "paper")'),
        ("elench.metrics.qascore", "Question: {question}", "{question}"),
        ("elench.metrics.qascore", "totals[at] += logprob", "totals[at] = logprob"),
    ],
    "kpqa": [
        ("elench.metrics.kpqa", "len(said.keys) / len(wanted.keys)", "len(wanted.keys) / len(said.keys)"),
        ("elench.metrics.kpqa", "math.exp(1 - 1 / ratio) if ratio < 1 else 1.0", "1.0"),
        ("elench.metrics.kpqa", "best[j] + float(weight) if key == other", "best[j] + 1.0 if key == other"),
        ("elench.metrics.kpqa", 'longest=self.form != "ours"', 'longest=self.form == "ours"'),
        ("elench.metrics.kpqa", 'if self.form == "code":\n            return pieces\n', "if False:\n            return pieces\n"),
    ],
    "qsts": [
        ("elench.metrics.qsts_edges", "(self(h, h2) + self(t, t2)) / 2", "self(h, h2) * self(t, t2)"),
        ("elench.metrics.qsts", '"paper": 0.0, "code": 0.0', '"paper": 0.5, "code": 0.5'),
        ("elench.metrics.qsts", "** (1 / len(factors))", "** (1 / 2)"),
        ("elench.metrics.qsts_edges", "(is_name, str.lower)", "(is_name, name_key)"),
        ("elench.metrics.qsts_edges", "e.relation not in IGNORED and ", ""),
        ("elench.metrics.qsts_edges", 'return "nmod" if', 'return "obl" if'),
    ],
    "questeval": [
        ("elench.metrics.questeval", "        return harmonic_mean(precision, recall)", "        return (precision + recall) / 2"),
        ("elench.metrics.questeval", "c.weight * (1 - c.reading.unanswerable)", "(1 - c.reading.unanswerable)"),
        ("elench.metrics.questeval", "c.reading.answer or UNANSWERABLE, c.question", "c.reading.answer, c.question"),
        ("elench.metrics.questeval_base", "else CAPS[name] if self.form", "else CAPS[name] if not self.form"),
        ("elench.metrics.questeval_questions", "[*starts, len(parsed.words)]", "[*starts[:1], len(parsed.words)]"),
    ],
}  # fmt: skip
AFTER = {
    "elench.metrics.qsts_edges": ["elench.metrics.qsts"],
    "elench.metrics.questeval_questions": ["elench.metrics.questeval_base", "elench.metrics.questeval"],
    "elench.metrics.questeval_base": ["elench.metrics.questeval"],
}
"""Modules that take names from the changed one."""


def qsts_models() -> object:
    return inspect.unwrap(test_qsts.models)()


def checks(metric: str) -> list[Callable[[], object]]:
    """The tests of a metric, quick ones first."""
    if metric == "qrelscore":
        second, models = inspect.unwrap(test_qrelscore.second)(), inspect.unwrap(test_qrelscore.models)()
        options = ({}, {"p": 3.0})
        return [
            *(lambda n=n: golden.test_qrelscore_and_qascore(n) for n in QUESTIONS),
            *(lambda o=o: test_qrelscore.test_the_fast_one_equals_the_readable_one(o, second, models) for o in options),
        ]
    if metric == "qascore":
        models, second = inspect.unwrap(test_qascore.models)(), inspect.unwrap(test_qascore.second)()
        return [
            *(lambda n=n: golden.test_qrelscore_and_qascore(n) for n in QUESTIONS),
            test_qascore.test_pieces_go_to_their_words,
            lambda: test_qascore.test_paper_form_masks_whole_words("bert-mlm", "sum"),
            lambda: test_qascore.test_the_other_forms("causal", models, second),
        ]
    if metric == "kpqa":
        return [
            *(lambda n=n: golden.test_kpqa(n, "on") for n in ANSWERS),
            lambda: test_kpqa.test_paper_and_our_form_end_to_end(True, "paper", str.lower, True),
            lambda: test_kpqa.test_bertscore_end_to_end("[layer=2]"),
            test_kpqa.test_only_our_form_tells_numbers_apart_and_knows_their_words,
            lambda: test_kpqa.test_the_form_decides_which_common_subsequence_counts("rouge-l-kpqa", 0.2 / 1.2),
        ]
    if metric == "qsts":
        parsed = qsts_models()
        return [
            golden.test_qsts,
            lambda: equations.test_qsts_a_phrase_after_a_noun_is_nmod_and_after_a_verb_obl("ships/VERB/ROOT/0", 0.0),
            lambda: test_qsts.agree(parsed, test_qsts.varied_pairs(40)),
            lambda: test_qsts.test_name_factor_counts_the_references_name_words_as_written(
                parsed, "Who was Adams?", "Who was Adam?", 0.0
            ),
        ]
    return [
        test_questeval.test_paper_form_equations_1_and_2,
        test_questeval.test_code_form_is_the_plain_mean_of_three_and_of_both_directions,
        test_questeval.test_code_form_scores_a_missing_answer_as_the_word_unanswerable,
        test_questeval.test_the_paper_form_asks_about_every_answer_and_reads_the_whole_text,
        *(lambda n=n: golden.test_questeval(n) for n in SUMMARIES),
    ]


def changed(module: ModuleType, old: str, new: str) -> None:
    """Run the module's source with one piece of it replaced, in place."""
    source = inspect.getsource(module)
    assert source.count(old) >= 1, f"{module.__name__} has no {old!r}"
    exec(compile(source.replace(old, new), str(module.__file__), "exec"), module.__dict__)
    for name in AFTER.get(module.__name__, ()):
        importlib.reload(importlib.import_module(name))


def noticed(tests: list[Callable[[], object]]) -> bool:
    for test in tests:
        try:
            test()
        except (Exception, pytest.fail.Exception):
            return True
    return False


def main() -> None:
    missed = 0
    for metric, mutations in MUTATIONS.items():
        if sys.argv[1:] and metric not in sys.argv[1:]:
            continue
        tests = checks(metric)
        print(f"{metric}: unchanged {'FAILS' if noticed(tests) else 'passes'}", flush=True)
        for name, old, new in mutations:
            module = importlib.import_module(name)
            changed(module, old, new)
            caught = noticed(tests)
            missed += not caught
            print(f"  {'caught' if caught else 'MISSED'}  {old!r} -> {new!r}", flush=True)
            importlib.reload(module)
            for after in AFTER.get(name, ()):
                importlib.reload(importlib.import_module(after))
    print(f"{missed} missed")


if __name__ == "__main__":
    main()
