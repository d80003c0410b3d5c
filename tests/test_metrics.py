"""Promises that every registered metric keeps, and how specs parse."""

import pytest

from elench.errors import UsageError
from elench.metrics import all_metrics, metric, split_specs
from elench.models.base import ModelSet
from elench.models.catalog import family_entry
from elench.models.packages import PACKAGES  # of other projects: tests/metrics/test_packages.py
from elench.testing import check_metric
from tests.tiny import tiny

MODELS = ModelSet()
"""Shared, so that each model is loaded once."""
TINY = ModelSet({"masked": str(tiny("roberta-mlm"))})
"""For qascore, as long as no embedded model plays the role `masked`."""


@pytest.mark.parametrize("name", [name for name in all_metrics() if name not in PACKAGES])
def test_every_metric_keeps_the_shared_promises(name):
    """Card, spec round trip, pickling, range, order, duplication, batch independence, unicode, emptiness."""
    check_metric(name, TINY if name == "qascore" and family_entry("masked", "embedded") is None else MODELS)


def test_specs_print_and_parse():
    assert str(metric("bleu")) == "bleu"
    assert str(metric("bleu[n=4]")) == "bleu"
    assert str(metric(" BLEU[ judge=answer , n=2 ]")) in ("bleu[n=2,judge=answer]", "bleu[judge=answer,n=2]")
    assert metric(str(metric("bleu[n=2,judge=answer]"))) == metric("bleu[judge=answer,n=2]")
    assert split_specs("bleu[n=2,judge=answer], f1 ,rouge-l") == ["bleu[n=2,judge=answer]", "f1", "rouge-l"]


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("blue", "did you mean bleu"),
        ("qrelscor", "qrelscore"),
        ("bleu[m=4]", "no parameter 'm'"),
        ("bleu[n=9]", "not one of"),
        ("bleu[n=four]", "n"),
        ("bleu[n]", "not parameter=value"),
        ("bleu[n=2,n=3]", "given twice"),
        ("bleu[n=2", "not a metric spec"),
        ("", "not a metric spec"),
        ("qrelscore[layers=nine]", "layers"),
        ("qrelscore[p=0]", "above 0"),
        ("qrelscore[form=code,attention=raw]", "the program has no attention"),
        ("qrel-grg[form=code,separator=blank]", "the program has no separator"),
        ("rouge-l-kpqa[form=code,beta=2]", "the program has beta 1"),
        ("questeval[form=code,beams=3]", "the program has no beams"),
        ("qascore[form=code,reduce=mean]", "reduce does not apply"),
    ],
)
def test_wrong_specs_are_refused_with_a_hint(spec, said):
    with pytest.raises(UsageError, match=said.replace("[", r"\[")):
        metric(spec)


def test_the_names_of_the_contract_are_there():
    wanted = (
        "bleu gleu rouge-1 rouge-2 rouge-l rouge-lsum meteor cider cider-d answerability q-bleu q-meteor q-rouge f1 em "
        "bertscore moverscore likelihood qrelscore qrel-lrm qrel-grg ref-qrelscore qascore qsts bleu1-kpqa rouge-l-kpqa "
        "bertscore-kpqa questeval summaqa qags novel-f1 source-overlap lead-overlap length answer-leak near-answer roundtrip qa-overlap bleurt comet ctc"
    )
    assert set(wanted.split()) <= set(all_metrics())
