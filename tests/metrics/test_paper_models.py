"""`--models paper` says in one line, before it starts, which roles are not the paper's."""

from click.testing import CliRunner

from elench.cli.score import command
from elench.metrics import metric
from elench.metrics.paper_models import unlike_paper


def test_roles_that_are_not_the_papers_are_named_unless_the_user_named_them():
    told = unlike_paper([metric("bertscore-kpqa"), metric("qrelscore")], [])
    assert told and told.count("\n") == 0 and "bert-large-uncased" in told and "qrelscore" not in told
    assert unlike_paper([metric("bertscore-kpqa")], ["encoder", "keyphrases"]) is None
    assert unlike_paper([metric("questeval")], []) is None  # no encoder in the paper's form
    assert unlike_paper([metric("qsts-class")], []) == (
        "not the paper's models: qsts-class classes: the paper has T5-large trained on TREC (--model classes=NAME)"
    )
    assert "multilingual" in (unlike_paper([metric("questeval[form=code]")], []) or "")


def test_the_command_says_it_first(tmp_path):
    records = tmp_path / "r.jsonl"
    records.write_text('{"id": "1", "question": "Who?", "references": ["Who was it?"], "judge": "question"}\n')
    done = CliRunner().invoke(command, [str(records), "-m", "qsts", "--models", "paper"])
    assert "not the paper's models: qsts parser: the paper has Stanza" in done.output
