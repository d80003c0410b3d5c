"""The fast QRelScore against the readable one, its edges, its evidence, its rescaling."""

import dataclasses
import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import elench
from elench.metrics import metric
from elench.metrics.qrelscore import chunks, pick_layers, power_mean
from elench.models.base import ModelSet
from elench.requests import Relevance, TokenScores
from tests.metrics.second_qrelscore import SecondQRelScore
from tests.tiny import WORDS, tiny

CONTEXT = "jane austen wrote the great old book in the city by the river . the king was in the new city ."
COMBINATIONS = [
    {}, {"form": "code"}, {"attention": "raw"}, {"attention": "hard"}, {"aggregate": "mean"}, {"aggregate": "mover"},
    {"layers": "first"}, {"layers": "middle"}, {"layers": "last"}, {"layers": "specific"}, {"layers": "1+3"}, {"p": 3.0},
    {"gain": "absolute"}, {"gain": "rate"}, {"attention": "raw", "aggregate": "mover", "layers": "last", "p": 0.5},
]  # fmt: skip


@pytest.fixture(scope="module")
def second():
    return SecondQRelScore(tiny("bert"), tiny("gpt2"))


@pytest.fixture(scope="module")
def models():
    return ModelSet({"encoder": str(tiny("bert")), "causal": str(tiny("gpt2"))})


def spec(options, name="qrelscore"):
    return name + (
        f"[{','.join(f'{k}={v:g}' if isinstance(v, float) else f'{k}={v}' for k, v in options.items())}]"
        if options
        else ""
    )


def texts(seed, n):
    rng = random.Random(seed)
    extra = ["Zoë's", "naïve", "🍣", "3,50", "(not!)", "---", "東京", "the", "the", "the", "?", "X1", "can't"]

    def some(low, high):
        return " ".join(rng.choices(WORDS + extra, k=rng.randint(low, high)))

    return [(some(2, 12), some(3, 25)) for _ in range(n)]


@pytest.mark.parametrize("options", COMBINATIONS, ids=spec)
def test_the_fast_one_equals_the_readable_one(options, second, models):
    pairs = texts(len(spec(options)), 6)
    records = [{"id": str(i), "question": q, "context": c} for i, (q, c) in enumerate(pairs)]
    fast = elench.score(records, spec(options), models=models, cache=False)
    for i, (q, c) in enumerate(pairs):
        assert fast[spec(options), str(i)] == pytest.approx(second.score(q, c, **options), abs=1e-5), (q, c)


@settings(max_examples=15, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    words=st.lists(st.sampled_from([*WORDS, "é", "?", "--", "🍣", "a.b"]), min_size=2, max_size=14),
    options=st.sampled_from(COMBINATIONS[:6]),
)
def test_any_question_agrees(words, options, second, models):
    question = " ".join(words)
    record = {"id": "1", "question": question, "context": CONTEXT}
    fast = elench.score([record], spec(options), models=models, cache=False)
    value = fast[spec(options), "1"]
    if value is None:
        assert not fast.unscored[spec(options)]["1"].startswith("error")
    else:
        assert value == pytest.approx(second.score(question, CONTEXT, **options), abs=1e-5)


def test_the_parts_and_the_reference_form(second, models):
    question, reference = "who wrote the old book ?", "who was the king ?"
    record = {"id": "1", "question": question, "context": CONTEXT, "references": ["when ?", reference]}
    fast = elench.score([record], "qrel-lrm,qrel-grg,ref-qrelscore,qrelscore", models=models, cache=False)
    assert fast["qrel-lrm", "1"] == pytest.approx(second.lrm(question, CONTEXT), abs=1e-5)
    assert fast["qrel-grg", "1"] == pytest.approx(second.grg(question, CONTEXT), abs=1e-5)
    best = max(second.score(question, r) for r in ("when ?", reference))
    assert fast["ref-qrelscore", "1"] == pytest.approx((fast["qrelscore", "1"] + best) / 2, abs=1e-5)


def test_evidence_names_the_best_match_and_the_gain_of_each_token(models):
    record = {"id": "1", "question": "who wrote the old book ?", "context": CONTEXT}
    (line,) = elench.score([record], "qrelscore", models=models, cache=False)
    evidence = line["evidence"]["qrelscore"]
    assert [m[0] for m in evidence["matches"]] == ["who", "wrote", "the", "old", "book", "?"]
    assert all(len(m) == 4 and 1 <= m[3] <= 3 for m in evidence["matches"])
    assert len(evidence["gains"]) > 15 and {"lrm", "grg", "layers", "chunks"} <= set(evidence)


@pytest.mark.parametrize(
    ("question", "context"),
    [
        ("why", CONTEXT), ("?", "."), ("🍣", "🍣"), (CONTEXT, CONTEXT), ("who ?", "word " * 20_000), ("w" * 3000, CONTEXT),
        ("x " * 3000, CONTEXT), ("who ?", "y" * 5000),
    ],
    ids=["one piece", "marks", "emoji", "identical", "20,000 words", "one long word", "long question", "long unbroken"],
)  # fmt: skip
def test_edges_give_a_number_or_a_reason(question, context, models):
    for name in ("qrelscore", "qrelscore[form=code]"):
        result = elench.score([{"id": "1", "question": question, "context": context}], name, models=models, cache=False)
        if result[name, "1"] is None:
            assert not result.unscored[name]["1"].startswith("error:"), result.unscored


def test_a_context_is_cut_only_where_the_model_cannot_read_it_at_once():
    """Chunks by the model's own window (here 20 tokens), not by a count of words."""

    def parts_of(tokens, window):
        step = window // 2
        chunks_ = 1 if tokens <= window else 1 + -(-(tokens - window) // step)
        steps = chunks("q ", "x" * tokens).__await__()
        next(steps)
        spans = tuple((k, k + 1) for k in range(tokens))
        with pytest.raises(StopIteration) as done:
            steps.send([TokenScores(("x",) * tokens, spans, (-1.0,) * tokens, chunks_)])
        return done.value.value

    assert parts_of(20, 20) == ["x" * 20]
    for tokens in (21, 39, 60, 101):
        parts = parts_of(tokens, 20)
        assert "".join(parts) == "x" * tokens and all(len(p) <= 20 for p in parts)
        assert max(map(len, parts)) - min(map(len, parts)) <= 1


def test_the_separator_of_the_prompt_is_a_parameter(models):
    record = {"id": "1", "question": "who wrote the book ?", "context": CONTEXT}
    specs = ["qrel-grg[gain=absolute]", "qrel-grg[gain=absolute,separator=blank]"]
    result = elench.score([record], specs, models=models, cache=False)
    second = SecondQRelScore(tiny("bert"), tiny("gpt2"))
    base = sum(second.logprobs([], second.ids(CONTEXT)))
    for spec_, separator in zip(specs, "\n ", strict=True):
        prompt = sum(second.logprobs(second.ids(f"who wrote the book ?{separator}"), second.ids(CONTEXT)))
        assert result[spec_, "1"] == pytest.approx(max(prompt - base, 0.0), abs=1e-4)


def test_both_parts_can_be_rescaled_before_the_harmonic_mean(tmp_path, monkeypatch):
    """LRM .8 and GRG .5 with baselines .6 and .2: (.5, .375), harmonic mean 3/7; the whole score moves by another line."""
    from elench.metrics import qrelscore
    from elench.requests import Baseline

    async def local(*given):
        return 0.8, Relevance((0.8,), ("a",), (("b",),), ((0.8,),))

    async def gain(*given):
        return 0.5, []

    monkeypatch.setattr(qrelscore, "local_relevance", local)
    monkeypatch.setattr(qrelscore, "global_relevance", gain)

    def value(spec_):
        steps = metric(spec_).relate("q", "c").__await__()
        asked = next(steps)
        assert all(isinstance(r, Baseline) for r in asked)
        with pytest.raises(StopIteration) as done:
            steps.send([0.6, 0.2])
        return done.value.value.value

    assert value("qrelscore[rescale=on,rescaled=parts]") == pytest.approx(2 * 0.5 * 0.375 / 0.875)
    raw, low = 2 * 0.8 * 0.5 / 1.3, 2 * 0.6 * 0.2 / 0.8
    assert value("qrelscore[rescale=on]") == pytest.approx((raw - low) / (1 - low))


def test_layers_and_power_mean():
    assert pick_layers("specific", 12) == [0, 3, 7, 11]
    assert pick_layers("first", 12) == [0, 1, 2, 3] and pick_layers("middle", 12) == [4, 5, 6, 7]
    assert pick_layers("last", 6) == [4, 5] and pick_layers("2+4", 6) == [1, 3]
    assert power_mean([1.0, 3.0], 1) == 2.0
    assert power_mean([3.0, 4.0], 2) == pytest.approx((25 / 2) ** 0.5)


def test_rescaling_needs_a_baseline_and_never_changes_a_ranking(tmp_path, monkeypatch):
    monkeypatch.setenv("ELENCH_CACHE", str(tmp_path))
    models = ModelSet({"encoder": str(tiny("bert")), "causal": str(tiny("gpt2"))})
    records = [{"id": str(i), "question": q, "context": c} for i, (q, c) in enumerate(texts(3, 12))]
    with pytest.raises(elench.UsageError, match="elench baselines FILE"):
        elench.score(records, "qrelscore[rescale=on]", models=models, cache=False)
    from elench.evaluate.rescaling import compute_baselines
    from elench.records.record import Record

    pairs = [Record(id=str(i), question=q, context=c, judge="question") for i, (q, c) in enumerate(texts(9, 8))]
    models = dataclasses.replace(models, loaded={})
    compute_baselines(pairs, [metric("qrel-lrm"), metric("qrel-grg")], models, "toy")
    for name in ("qrelscore", "qrel-lrm", "qrel-grg"):
        for rescale in ("on", "toy"):
            fast = elench.score(records, [name, f"{name}[rescale={rescale}]"], models=models, cache=False)
            raw, moved = (fast.values(s) for s in fast.specs)
            assert sorted(range(12), key=lambda i: raw[i]) == sorted(range(12), key=lambda i: moved[i])
            assert max(abs(a - b) for a, b in zip(raw, moved, strict=True)) > 1e-6


def test_unrelated_pairs_are_those_with_a_bleu_1_of_at_most_a_twentieth():
    """sacrebleu 2.5, sentence_bleu with max_ngram_order=1: 36.79 for three of three words in six, 0 without a word."""
    from elench.evaluate.rescaling import bleu1

    assert bleu1("the old city", "the king in the old city") == pytest.approx(0.36788, abs=1e-4)
    assert bleu1("who wrote it", "jane austen in the city") == 0.0
    assert bleu1("the the the", "the king") == pytest.approx(1 / 3)


@pytest.mark.parametrize("kind", ["roberta", "xlnet"])
def test_other_backbones_have_their_own_frame_around_the_pair(kind):
    """Figure 8: XLNet puts its special tokens last. Equations 2–4 worked out on the tokenizer's own pair."""
    import torch
    from transformers import AutoModel, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(tiny(kind))
    model = AutoModel.from_pretrained(tiny(kind), attn_implementation="eager").eval()
    questions = {"1": "who wrote the old book ?", "2": "when ?"}
    records = [{"id": name, "question": q, "context": CONTEXT} for name, q in questions.items()]
    fast = elench.score(records, "qrel-lrm", models=ModelSet({"encoder": str(tiny(kind))}), cache=False)
    for name, question in questions.items():
        coded = tokenizer(question, CONTEXT, return_tensors="pt")
        own = [i for i, side in enumerate(coded.sequence_ids(0)) if side == 0]
        other = [i for i, side in enumerate(coded.sequence_ids(0)) if side == 1]
        with torch.inference_mode():
            out = model(**coded, output_hidden_states=True, output_attentions=True)
        layers = []
        for attention, states in zip(out.attentions, out.hidden_states[1:], strict=True):
            weights = attention[0].amax(0)[own][:, other]
            alike = torch.nn.functional.cosine_similarity(states[0][own][:, None], states[0][other][None], dim=-1)
            layers.append((weights / weights.amax(1, keepdim=True) * alike).amax(1).mean())
        assert fast["qrel-lrm", name] == pytest.approx(float(torch.stack(layers).mean()), abs=1e-5)
