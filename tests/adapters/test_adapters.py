"""The integrations give the same numbers as elench.score."""

import numpy as np
import pytest

import elench
from elench.adapters import add_scores, map_scores
from elench.adapters.rewards import completion_text, reward, usable_question
from elench.errors import UsageError
from elench.models.base import ModelSet
from tests.tiny import tiny

SAID = ["the red fox sang", "a dog", "seven old boats lay near the lamp"]
WANTED = [["the red fox sang all night"], ["a dog barked", "the dog"], ["seven boats lay near a lamp"]]
ROWS = [
    {"id": str(i), "judge": "answer", "answer": a, "references": r}
    for i, (a, r) in enumerate(zip(SAID, WANTED, strict=True))
]
SPECS = ["f1", "rouge-l", "bleu", "cider", "em"]


@pytest.fixture(scope="module")
def expected():
    result = elench.score(ROWS, SPECS)
    return {spec: (result.summary()[spec]["corpus"], result.values(spec)) for spec in SPECS}


@pytest.mark.parametrize("spec", SPECS)
def test_torchmetrics_updates_merge_to_the_corpus_score(spec, expected):
    from elench.adapters.torchmetrics import ElenchMetric

    module = ElenchMetric(f"{spec}[judge=answer]")
    module.update(SAID[:1], references=WANTED[:1])
    module.update(SAID[1:], references=WANTED[1:])
    assert float(module.compute()) == pytest.approx(expected[spec][0])
    other = ElenchMetric(f"{spec}[judge=answer]")
    other.update(SAID[1:], references=WANTED[1:])
    first = ElenchMetric(f"{spec}[judge=answer]")
    first.update(SAID[:1], references=WANTED[:1])
    first.merge_state(other)
    assert float(first.compute()) == pytest.approx(expected[spec][0])
    module.reset()
    with pytest.raises(ValueError, match="nothing"):
        module.compute()


@pytest.mark.parametrize("spec", SPECS)
def test_evaluate_module(spec, expected):
    from elench.adapters.evaluate import load

    found = load(f"{spec}[judge=answer]").compute(predictions=SAID, references=WANTED)
    assert found[spec] == pytest.approx(expected[spec][0]) and found["scores"] == pytest.approx(expected[spec][1])
    one = load("f1[judge=answer]").compute(predictions=["a dog"], references=["a dog"])
    assert one["f1"] == 1.0


def test_datasets_map_and_pandas(expected):
    import datasets
    import pandas

    mapped = datasets.Dataset.from_list(ROWS).map(map_scores("f1,em"), batched=True, batch_size=2)
    assert mapped["f1"][:] == pytest.approx(expected["f1"][1])
    frame = add_scores(pandas.DataFrame(ROWS), "rouge-l")
    assert np.allclose(frame["rouge-l"], expected["rouge-l"][1])


def test_a_metric_as_a_reward():
    function = reward("f1", judge="answer")
    values = function(prompts=["p"] * 3, completions=SAID, references=WANTED)
    assert values == pytest.approx(elench.score(ROWS, "f1").values("f1"))
    chat = [[{"role": "assistant", "content": "a dog "}], [{"role": "assistant", "content": ""}]]
    assert function(completions=chat, references=["a dog", "x"]) == [1.0, 0.0]
    assert reward("f1", judge="answer", missing=None)(completions=[" "], references=["x"]) == [None]
    perplexing = reward("likelihood", judge="question", models=ModelSet({"causal": str(tiny("llama"))}))
    said = ["who wrote it ?", "", [{"content": [{"type": "text", "text": "who"}]}]]
    good, empty, parts = perplexing(completions=said, context=["jane wrote the book ."] * 3)
    assert empty == min(good, parts) - 1.0  # empty output never earns a reward
    with pytest.raises(UsageError, match="1 rows for 2"):
        function(completions=["a", "b"], references=["a"])
    assert function.__name__ == "elench_f1" and function(completions=[]) == []
    with pytest.raises(UsageError, match="judge="):
        reward("f1")
    with pytest.raises(UsageError, match="f1 reads references: the data set has no such column"):
        function(completions=["a"])  # not a reward of 0 for everything
    assert completion_text("  hi ") == "hi"


@pytest.mark.parametrize(
    ("question", "answer", "kept"),
    [
        ("Who wrote the great old book in the city?", "Jane", True),
        ("Who wrote it?", "Jane", False),
        ("word " * 31, "Jane", False),
        ("Which book did Jane Austen write in the city?", "jane austen", False),
        ("Which book did Janet write in the old city?", "Jane", True),
    ],
)
def test_the_papers_filter_of_generated_questions(question, answer, kept):
    assert (usable_question(question, answer) is None) == kept
