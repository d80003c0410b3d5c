"""Each kind of perturbation does what it says, tells what it did, and is never a no-op."""

import json
import subprocess
import sys
from dataclasses import replace

import pytest

from elench.errors import UsageError
from elench.perturb import KINDS, Skipped, perturb
from elench.perturb.paraphrase import POSITIVES, paired
from elench.records.record import Record, read_records

CONTEXT = (
    "Agnes Thorne built the lighthouse at Skerry Point in 1871. Tom Arden kept it with his sister for 12 years, and "
    "Maria Lund wrote about both of them in London."
)
OTHER = "Honeybees keep their brood nest warm in winter by shivering together, and they cool it with water in summer."
RECORDS = [
    Record("1", context=CONTEXT, question="Who built the lighthouse at Skerry Point in 1871?", judge="question"),
    Record("2", context=CONTEXT, question="Where did Maria Lund write about his good sister?", judge="question"),
    Record("3", context=OTHER, question="How many honeybees are not warm in winter?", judge="question"),
    Record(
        "4",
        context=CONTEXT,
        summary="Tom Arden kept the lighthouse for 12 years and she wrote about it.",
        judge="summary",
    ),
]
WITHOUT_TRANSLATOR = [kind for kind in KINDS if kind != "back-translation"]


def made(kinds=None, records=RECORDS, seed=0, **options):
    return list(perturb(records, kinds or WITHOUT_TRANSLATOR, seed, **options))


@pytest.mark.embedded
def test_every_output_says_what_was_done_where_and_is_no_no_op():
    originals = {r.id: r for r in RECORDS}
    changed = [r for r in made(paraphrases={"1": "By whom was it built?"}) if not isinstance(r, Skipped)]
    assert {r.extra["perturbed"]["kind"] for r in changed} == set(WITHOUT_TRANSLATOR)
    for record in changed:
        told = record.extra["perturbed"]
        before = getattr(originals[told["of"]], told["field"])
        after = getattr(record, told["field"])
        start, end = told["at"]
        assert before != after
        assert before[start:end] == told["from"]
        assert before[:start] + told["to"] + before[end:] == after
        assert record.id == f"{told['of']}#{told['kind']}" and record.references
        assert told["label"] == ("positive" if told["kind"] in POSITIVES else "negative")


@pytest.mark.embedded
def test_what_the_kinds_do():
    by = {(r.extra["perturbed"]["of"], r.extra["perturbed"]["kind"]): r for r in made() if not isinstance(r, Skipped)}
    assert any(name in by["2", "entity-swap"].question for name in ("Agnes Thorne", "Tom Arden", "Skerry Point"))
    assert by["2", "pronoun-swap"].question == "Where did Maria Lund write about your good sister?"
    assert by["2", "negation"].question == "Where didn't Maria Lund write about his good sister?"
    assert by["3", "negation"].question == "How many honeybees are warm in winter?"
    assert by["3", "question-word"].question == "Which honeybees are not warm in winter?"
    assert by["1", "question-word"].question == "What built the lighthouse at Skerry Point in 1871?"
    assert "1871" not in by["1", "number"].question and by["1", "number"].question.startswith("Who built")
    assert by["2", "antonym"].question.split() != RECORDS[1].question.split()
    assert len(by["1", "drop"].question.split()) == len(RECORDS[0].question.split()) - 1
    assert sorted(by["1", "shuffle"].question.lower().rstrip("?").split()) == sorted(
        RECORDS[0].question.lower().rstrip("?").split()
    )


@pytest.mark.embedded
def test_the_seed_decides_and_other_records_do_not():
    assert made(seed=5) == made(seed=5)
    alone = [r for r in made(["drop", "number"], RECORDS[:1], seed=5) if not isinstance(r, Skipped)]
    among = [r for r in made(["drop", "number"], seed=5) if not isinstance(r, Skipped) and r.id.startswith("1#")]
    assert alone == among
    texts = {tuple(getattr(r, "question", None) or "" for r in made(["drop"], seed=s)) for s in range(6)}
    assert len(texts) > 1


@pytest.mark.embedded
def test_what_cannot_be_changed_is_told():
    (skipped,) = made(["number"], [Record("x", question="Why is it so?", context="Because.")])
    assert isinstance(skipped, Skipped) and "nothing for number to change" in skipped.reason
    (empty,) = made(["drop"], [Record("x", question=" ", context="c")])
    assert "empty question" in empty.reason
    with pytest.raises(UsageError, match="no kind is called 'spin'"):
        made(["spin"])


@pytest.mark.embedded
def test_command_line_and_auc(tmp_path):
    from elench.records.record import write_records

    write_records(RECORDS[:3], tmp_path / "in.jsonl")

    def run(*arguments):
        return subprocess.run([sys.executable, "-m", "elench", *map(str, arguments)], capture_output=True, text=True)

    done = run(
        "perturb", tmp_path / "in.jsonl", "-k", "drop,shuffle,number", "-o", tmp_path / "bad.jsonl", "--originals"
    )
    assert done.returncode == 0, done.stderr
    assert "shuffle: 3 changed, 0 left alone, of 3" in done.stdout and "number: 1 changed, 2 left alone" in done.stdout
    assert sum(r.extra["perturbed"]["label"] == "positive" for r in read_records(tmp_path / "bad.jsonl")) == 3
    run("score", tmp_path / "bad.jsonl", "-m", "bleu,f1", "-o", tmp_path / "s.jsonl")
    done = run("auc", tmp_path / "bad.jsonl", "--scores", tmp_path / "s.jsonl", "--format", "json")
    assert done.returncode == 0, done.stderr
    found = {(a["metric"], a["kind"]): a for a in json.loads(done.stdout)}
    assert found["bleu", "shuffle"]["auc"] == 1.0 and found["f1", "shuffle"]["auc"] == 0.5
    assert found["bleu", "all"]["positives"] == 3 and found["bleu", "all"]["negatives"] == 7


def test_a_paraphrase_with_another_records_id_goes_to_the_record_it_is_about():
    """Two published SQuAD files number the same questions one apart."""
    records = [
        Record(id="1", context="The mill burnt down.", question="What burnt?", answer="The mill", judge="question"),
        Record(id="2", context="Ada built a boat.", question="Who built it?", answer="Ada", judge="question"),
    ]
    others = [
        replace(records[0], id="0", question="What went up in flames?"),
        replace(records[1], id="1", question="By whom was it built?"),
    ]
    assert paired(records, others) == ({"1": "What went up in flames?", "2": "By whom was it built?"}, 2)
    assert paired(records, [replace(records[0], question="Which thing burnt?")]) == ({"1": "Which thing burnt?"}, 0)
    assert paired(records, [Record(id="2", question="By whom?", judge="question")]) == ({"2": "By whom?"}, 0)


SAID = [
    ("negation", "Why can't fish survive on land?", "Why can fish survive on land?"),
    ("negation", "What won't the company sell?", "What will the company sell?"),
    ("negation", "Don't do that.", "Do that."),
    ("negation", "There is no water on the Moon.", "There is some water on the Moon."),
    ("negation", "There was 1 goal in the match.", "There wasn't 1 goal in the match."),
    ("negation", "Is it an easy task?", None),
    ("negation", "Never has he seen such a storm.", None),
    ("antonym", "Is it an easy task?", "Is it a difficult task?"),
    ("pronoun-swap", "I was born in Paris.", "You were born in Paris."),
    ("pronoun-swap", "A friend of his wrote the song.", "A friend of yours wrote the song."),
    ("pronoun-swap", "She hurt herself.", None),
    ("question-word", "What causes rain in the tropics?", "Who causes rain in the tropics?"),
    ("question-word", "The man who built it was rich.", None),
    ("question-word", "Which of the rivers is longest?", None),
    ("question-word", "How many people live in the city?", "Which people live in the city?"),
    ("number", "Agent 007 met her in London.", None),
    ("number", "There was 1 goal in the match.", None),
    ("paraphrase-rules", "Why didn't the army attack?", None),
]


@pytest.mark.embedded
@pytest.mark.parametrize(("kind", "text", "wanted"), SAID)
def test_what_is_made_is_english(kind, text, wanted):
    (found,) = made([kind], [Record("1", context=CONTEXT, question=text, judge="question")])
    assert (None if isinstance(found, Skipped) else found.question) == wanted


@pytest.mark.embedded
def test_the_same_kind_twice_and_taken_ids_give_distinct_records(tmp_path):
    path, out = tmp_path / "in.jsonl", tmp_path / "out.jsonl"
    rows = [{"id": name, "question": "Who built the old lighthouse?", "judge": "question"} for name in ("a", "a#drop")]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    command = [sys.executable, "-m", "elench", "perturb", path, "-k", "drop,drop", "--originals", "-o", out]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    ids = [record.id for record in read_records(out)]
    assert len(ids) == len(set(ids)) == 4
