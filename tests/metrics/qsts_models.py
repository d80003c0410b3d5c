"""What the tests of QSTS share: the real parser and vectors, classes by the question word alone."""

from __future__ import annotations

import pytest

from elench.engine.drive import Driver
from elench.errors import MissingModel
from elench.metrics import metric
from elench.models.base import ModelSet
from elench.records.record import Record
from elench.requests import Failure, QuestionClass
from tests.scripted import Script

FORMS = ("paper", "code", "ours")
CLASSES = {"who": "HUM:ind", "where": "LOC:other", "when": "NUM:date", "how": "DESC:manner", "which": "LOC:city"}


def by_first_word(request):
    """The class by the question word: enough where the class is not what is tested."""
    label = CLASSES.get(request.question.split()[0].lower(), "ENTY:other")
    return QuestionClass({label.split(":")[0]: 1.0}, {label: 1.0})


def load_models():
    """Parser and vectors are those of this machine; without them the test is skipped."""
    found = ModelSet()
    try:
        found["parser"], found["vectors"]
    except MissingModel as missing:
        pytest.skip(str(missing))
    found.loaded["classes"] = Script("classes", by_first_word)
    return found


def run(models, spec, records):
    """A Score or the error of each record."""
    chosen = metric(spec)
    results = Driver(models).run([chosen.score(r) for r in records])
    return [r.error if isinstance(r, Failure) else r for r in results]


def pair(question, reference, **more):
    return Record(id="x", question=question, references=(reference,), judge="question", **more)


def one(models, spec, question, reference, **more):
    return run(models, spec, [pair(question, reference, **more)])[0]
