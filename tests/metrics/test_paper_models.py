"""`--models paper` says in one line, before it starts, which roles are not the paper's."""

import pytest
from click.testing import CliRunner

from elench.cli._options import models_for
from elench.cli.replicate import command as replicate
from elench.cli.score import command
from elench.cli.serve import command as serve
from elench.metrics import metric
from elench.metrics.paper_models import paper_checkpoints, unlike_paper

BERT_SQUAD = "google-bert/bert-large-uncased-whole-word-masking-finetuned-squad"


def test_roles_that_are_not_the_papers_are_named_unless_the_user_named_them():
    told = unlike_paper([metric("bertscore-kpqa"), metric("qrelscore")], [])
    assert told and told.count("\n") == 0 and "bert-large-uncased" in told and "qrelscore" not in told
    assert unlike_paper([metric("bertscore-kpqa")], ["encoder", "keyphrases"]) is None
    assert unlike_paper([metric("questeval")], []) is None  # no encoder in the paper's form
    assert unlike_paper([metric("qsts-class")], []) == (
        "not the paper's models: qsts-class classes: the paper has T5-large trained on TREC (--model classes=NAME)"
    )


@pytest.mark.parametrize(
    ("specs", "checkpoints"),
    [
        # QuestEval 0.2.4, utils.py: model_type="bert-base-multilingual-cased"; KPQA, appendix C.4
        (["questeval[form=code]"], {"encoder": "google-bert/bert-base-multilingual-cased"}),
        (["bertscore-kpqa", "bleu1-kpqa"], {"encoder": BERT_SQUAD}),
        (["questeval", "qrelscore"], {}),
        (["bertscore-kpqa", "qrelscore"], {}),  # two papers, one role: the catalog's, and the line says so
    ],
)
def test_a_metric_gets_its_own_papers_checkpoint(specs, checkpoints):
    metrics = [metric(spec) for spec in specs]
    assert paper_checkpoints(metrics, []) == checkpoints
    assert paper_checkpoints(metrics, ["encoder"]) == {}
    told = unlike_paper(metrics, checkpoints) or ""
    assert ("bert-large" in told) == (specs == ["bertscore-kpqa", "qrelscore"])


def test_the_command_says_it_first(tmp_path):
    records = tmp_path / "r.jsonl"
    records.write_text('{"id": "1", "question": "Who?", "references": ["Who was it?"], "judge": "question"}\n')
    done = CliRunner().invoke(command, [str(records), "-m", "qsts", "--models", "paper"])
    assert "not the paper's models: qsts parser: the paper has Stanza" in done.output
    told = CliRunner().invoke(replicate, ["qsts", "--models", "paper", "--only", "Table 1"]).output
    assert "not the paper's models: qsts parser: the paper has Stanza" in told.splitlines()[0]


def test_the_service_says_it_when_it_starts(monkeypatch):
    pytest.importorskip("fastapi")
    monkeypatch.setattr("uvicorn.run", lambda *_, **__: None)
    told = CliRunner().invoke(serve, ["--models", "paper", "--port", "0"]).output
    assert told.startswith("elench: not the paper's models: ") and "qsts-names parser: the paper has Stanza" in told
    assert told.count("the authors' keyphrase model is on no hub") == 1  # of three metrics
    assert "not the paper's" not in CliRunner().invoke(serve, ["--port", "0"]).output


def test_a_model_that_no_metric_asks_is_named(tmp_path, capsys):
    records = tmp_path / "r.jsonl"
    records.write_text('{"id": "1", "answer": "a fox", "references": ["a fox"], "judge": "answer"}\n')
    done = CliRunner().invoke(command, [str(records), "-m", "f1", "--model", "judge=http://127.0.0.1:1/v1#m"])
    assert done.exit_code == 0
    assert "--model judge=http://127.0.0.1:1/v1#m: not used by the chosen metrics; they need no model" in done.output
    models_for([metric("qsts-class")], "embedded", ("classes=x", "reader=y"), "float32", None, False)
    assert (
        capsys.readouterr().err == "elench: --model reader=y: not used by the chosen metrics; roles they ask: classes\n"
    )
    models_for([metric("qsts-class")], "embedded", ("asker=x",), "float32", None, False, ("asker",))
    assert capsys.readouterr().err == ""
