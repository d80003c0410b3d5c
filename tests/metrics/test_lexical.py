"""What a user relies on in the word-matching metrics: reasons for what cannot be scored, readable evidence, dialects."""

import json

import pytest

from elench.engine.scoring import score
from elench.errors import UsageError
from elench.metrics import metric
from elench.records.record import Record

LEXICAL = ["bleu", "gleu", "rouge-1", "rouge-2", "rouge-l", "rouge-lsum", "meteor", "cider", "cider-d", "f1", "em"]
QUESTION = {
    "context": "Ada Marsh built the lighthouse on Gull Rock in 1874, and the ferry still calls there twice a week.",
    "question": "Who built the lighthouse on Gull Rock?",
    "answer": "Ada Marsh",
    "judge": "question",
}


def one(spec: str, **fields):
    """Score and reason of a single record."""
    outcome = score([Record("1", **fields)], spec).outcomes[0]
    return outcome.scores.get(spec), outcome.unscored.get(spec)


@pytest.mark.parametrize("spec", LEXICAL)
@pytest.mark.parametrize(
    ("answer", "references", "reason"),
    [
        ("", ("a mill",), "empty answer"),
        (" \n ", ("a mill",), "empty answer"),
        ("mill", (), "no reference"),
        ("mill", ("", " "), "no reference"),
    ],
)
def test_what_cannot_be_scored_says_why(spec, answer, references, reason):
    assert one(spec, answer=answer, references=references, judge="answer") == (None, reason)


@pytest.mark.parametrize(
    ("spec", "answer", "reason"),
    [
        ("rouge-l", "🍣!", "no scorable word in the answer"),
        ("f1", "the", "no scorable word in the answer"),
        ("cider", "?!", "no scorable word in the answer"),
        ("rouge-l", "a mill", None),
    ],
)
def test_a_text_without_a_scorable_word_is_unscored(spec, answer, reason):
    assert one(spec, answer=answer, references=("a mill",), judge="answer")[1] == reason


@pytest.mark.parametrize("spec", [*LEXICAL, "bleu[dialect=coco]", "rouge-l[dialect=coco]"])
def test_equal_texts_score_full_and_disjoint_ones_nothing(spec):
    full = {"meteor": 1 - 0.5 / 9**3, "cider": 10, "cider-d": 10}.get(spec, 1)
    text = "the miller sold nine sacks of rye yesterday evening"
    assert one(spec, answer=text, references=(text,), judge="answer")[0].value == pytest.approx(full, abs=1e-6)
    other = "she paints huge green doors"
    assert one(spec, answer=text, references=(other,), judge="answer")[0].value == pytest.approx(0, abs=2e-4)


@pytest.mark.parametrize("spec", [*LEXICAL, "answerability", "q-bleu", "q-meteor", "q-rouge"])
def test_evidence_is_plain_json_and_names_the_matches(spec):
    fields = {"question": "Who sold the old mill?", "references": ("Who bought the old mill?", "Which mill was sold?")}
    found, _ = one(spec, **fields, judge="question")
    told = json.loads(json.dumps(dict(found.evidence)))
    assert "mill" in json.dumps(told)
    if spec not in ("bleu", "cider", "cider-d"):  # these pool or average their references
        assert told["reference"] in fields["references"]


def test_meteor_finds_synonyms_and_stems():
    found, _ = one(
        "meteor", question="Who purchased old mills?", references=("Who bought old mill?",), judge="question"
    )
    assert found.evidence["stem"] == [["mills", "mill"]]
    fields = {"answer": "a big car", "references": ("a large auto",), "judge": "answer"}
    assert one("meteor", **fields)[0].evidence["synonym"] == [["car", "auto"]]  # nltk looks for the stem "larg"
    assert one("meteor[synonyms=words]", **fields)[0].evidence["synonym"] == [["big", "large"], ["car", "auto"]]


def test_the_best_reference_wins_and_mean_is_offered():
    fields = {"answer": "the village hall", "references": ("a church", "the village hall"), "judge": "answer"}
    assert one("f1", **fields)[0].value == 1
    assert one("f1", **fields)[0].evidence["reference"] == "the village hall"
    assert one("f1[references=mean]", **fields)[0].value == pytest.approx(0.5)


def test_corpus_bleu_comes_from_summed_counts():
    metric_, records = metric("bleu"), [("a b c d e", "a b c d e"), ("a b x", "a b c")]
    counts = [one("bleu", answer=a, references=(r,), judge="answer")[0].counts for a, r in records]
    assert counts == [(5, 5, 5, 4, 3, 2, 5, 4, 3, 2), (3, 3, 2, 1, 0, 0, 3, 2, 1, 0)]
    precisions = 7 / 8 * 5 / 6 * 3 / 4 * 2 / 2
    assert metric_.corpus_score([sum(c) for c in zip(*counts, strict=True)]) == pytest.approx(precisions**0.25)


def test_the_free_variants_read_the_context():
    for spec in ("answerability[against=context]", "q-bleu[against=context]"):
        assert metric(spec).reads == ("context",)
        assert 0 < one(spec, **QUESTION)[0].value < 1


@pytest.mark.parametrize(
    "spec", ["bleu[dialect=coco,smooth=floor]", "rouge-l[dialect=coco,stem=on]", "cider-d[sigma=0]"]
)
def test_parameters_that_do_not_go_together_are_refused(spec):
    with pytest.raises(UsageError):
        metric(spec)


def test_sanity_baselines_by_hand():
    assert one("length", **QUESTION)[0].value == 7
    assert one("answer-leak", **QUESTION)[0].value == 1
    assert one("answer-leak", **{**QUESTION, "question": "Did Ada Marsh build it?"})[0].value == 0
    assert one("near-answer", **QUESTION)[0].value == pytest.approx(4 / 5)  # all but "who"
    assert one("near-answer", **{**QUESTION, "answer": "Bob"})[1] == "the answer does not occur in the context"
    chinese = {"context": "His calendar, the Shoushi Li (授時暦), was official in 1281.", "answer": "授時暦"}
    assert one("near-answer", question="Which calendar was official in 1281?", **chinese)[0].value > 0.5
    assert one("answer-leak", question="What is the official calendar 授時暦 of China?", **chinese)[0].value == 0.0
    summary = {"context": "the mill burned down last night", "summary": "the mill burned quickly"}
    assert one("source-overlap", **summary)[0].value == pytest.approx(2 / 3)
    assert one("source-overlap[n=1]", **summary)[0].value == pytest.approx(3 / 4)
    assert one("lead-overlap", **summary)[0].value == pytest.approx(2 / 4)  # mill and burned of mill burned last night
    answer = {"question": "Who sold the mill?", "answer": "Ada sold the mill", "references": ("Ada Marsh",)}
    assert one("novel-f1", **answer, judge="answer")[0].value == pytest.approx(2 * 1 / (1 + 3 * 0.05 + 2))


def test_meteor_explains_a_text_that_matches_nothing():
    import elench

    case = elench.judge(answer="x", references="y", metrics="meteor")
    assert case.scores == {"meteor": 0.0} and case.evidence["meteor"]
