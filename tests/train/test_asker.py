"""The asker's training: branches of a passage are blind to each other, and corrections merge into the weights."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")


@pytest.fixture
def tiny():
    torch.manual_seed(1)
    config = transformers.LlamaConfig(
        vocab_size=32, hidden_size=32, intermediate_size=48, num_hidden_layers=3, num_attention_heads=4,
        num_key_value_heads=2, head_dim=8, initializer_range=0.3, eos_token_id=0, pad_token_id=0,
    )  # fmt: skip
    return transformers.LlamaForCausalLM(config).eval()


def example():
    from elench.train.branching import Branched

    return Branched((5, 6, 7, 8), (((1, 2), (9, 10, 0)), ((3,), (11, 12, 13, 0)), ((4, 4, 4), (14, 0))))


def test_loss_of_a_passage_equals_that_of_its_questions_one_by_one(tiny):
    from elench.train.asker import question_loss
    from elench.train.branching import collate

    other = type(example())((9, 9), (((1,), (5, 0)),))
    together = question_loss(tiny, collate([example(), other], pad=0)) * 11
    alone = torch.tensor(0.0)
    for each in (example(), other):
        for wish, question in each.branches:
            ids = torch.tensor([[*each.passage, *wish, *question]])
            logs = tiny(ids).logits.log_softmax(-1)[0]
            at = len(each.passage) + len(wish) - 1
            alone = alone - sum(logs[at + i, t] for i, t in enumerate(question))
    assert torch.allclose(together, alone, atol=1e-4)


def test_corrections_start_at_nothing_train_alone_and_merge(tiny):
    from elench.train.asker import question_loss
    from elench.train.branching import collate
    from elench.train.lora import adapt, merge

    batch = collate([example()], pad=0)
    before = question_loss(tiny, batch).item()
    adapt(tiny, rank=2, scale=2.0, skip=1)
    trained = [name for name, p in tiny.named_parameters() if p.requires_grad]
    assert len(trained) == 2 * 7 * 2 and not any(".layers.0." in name for name in trained)
    assert question_loss(tiny, batch).item() == pytest.approx(before, abs=1e-5)
    optimizer = torch.optim.SGD([p for p in tiny.parameters() if p.requires_grad], lr=0.05)
    for _ in range(5):
        optimizer.zero_grad()
        loss = question_loss(tiny, batch)
        loss.backward()
        optimizer.step()
    after = question_loss(tiny, batch).item()
    assert after < before
    merge(tiny)
    assert not any("linear" in name for name, _ in tiny.named_modules())
    assert question_loss(tiny, batch).item() == pytest.approx(after, abs=1e-4)


def test_only_short_answers_are_learnt_and_whole_articles_kept_back(tmp_path):
    from elench.train.asker import corpora
    from tests.train.tiny import write_paragraphs

    def article(title, answer):
        context = f"Here stands {answer}."
        qas = [{"id": title, "question": "What?", "answers": [{"text": answer, "answer_start": 12}]}]
        return {"title": title, "context": context, "qas": qas}

    articles = [article(t, "a b") for t in "abcd"] + [article("e", "one two three four five six seven eight nine")]
    write_paragraphs(tmp_path / "squad11_train.jsonl.gz", articles)
    train, kept = corpora(tmp_path)
    assert {e.group for e in train} == {"c", "d"} and {e.group for e in kept} == {"a", "b"}


def test_a_round_has_all_given_passages_and_as_many_others():
    import numpy as np

    from elench.train.asker import half_and_half
    from elench.train.branching import Branched

    given = [Branched((i,), ()) for i in range(3)]
    squad = [Branched((i,), ()) for i in range(100, 120)]
    first, second = (half_and_half(given, squad, np.random.default_rng(seed)) for seed in (1, 2))
    assert first[:3] == given and len(first) == 6 and set(first[3:]) <= set(squad)
    assert first[3:] != second[3:]  # others in the next round
