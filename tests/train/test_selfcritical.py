"""Self-critical training: the loss is the paper's, and a reward that can rise does rise, for both kinds of model."""

import json

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoModelForSeq2SeqLM, AutoTokenizer

from elench.train.selfcritical import RewardSchedule, WritingTask, critic_loss, learn, log_likelihood, save_curve, write
from tests.tiny import tiny

KINDS = [("llama", AutoModelForCausalLM), ("t5", AutoModelForSeq2SeqLM)]


def load(kind, loader):
    torch.manual_seed(0)
    tokenizer = AutoTokenizer.from_pretrained(tiny(kind))
    tasks = [
        WritingTask(
            tuple(tokenizer(f"the {w} in the city")["input_ids"]),
            tuple(tokenizer("who wrote it ?")["input_ids"]),
            {"n": i},
        )
        for i, w in enumerate(("king", "book", "river", "old book"))
    ]
    return loader.from_pretrained(tiny(kind)), tokenizer, tasks


@pytest.mark.parametrize(("kind", "loader"), KINDS)
def test_likelihood_is_the_models_own(kind, loader):
    model, tokenizer, tasks = load(kind, loader)
    task = tasks[0]
    with torch.no_grad():
        other = (*task.target[:2], *task.prompt[:2])
        found, beside, alone = (
            float(log_likelihood(model, tokenizer, [task], [texts])[0][-1])
            for texts in ([task.target], [other, task.target], [task.target, other])
        )
        assert beside == pytest.approx(found, rel=1e-4)  # texts do not see each other
        assert alone == pytest.approx(float(log_likelihood(model, tokenizer, [task], [[other]])[0][0]), rel=1e-4)
        labels = torch.tensor([task.target])
        if kind == "t5":
            loss = model(input_ids=torch.tensor([task.prompt]), labels=labels).loss
        else:
            ids = torch.tensor([[*task.prompt, *task.target]])
            shown = torch.tensor([[-100] * len(task.prompt) + list(task.target)])
            loss = model(input_ids=ids, labels=shown).loss
    assert found == pytest.approx(-float(loss) * len(task.target), rel=1e-4)


@pytest.mark.parametrize("samples", [1, 2])
def test_the_loss_is_equation_15(samples):
    model, tokenizer, tasks = load(*KINDS[0])
    tasks = tasks[:2]
    schedule = RewardSchedule(limit=6, batch=2, samples=samples)
    drawn = [[0.2, 0.9], [0.2, 0.6, 0.9, 0.1]][samples - 1]

    def reward(asked, texts):  # the first texts are greedy, the others sampled
        return [0.5, 0.4, *drawn]

    torch.manual_seed(3)
    loss, mean = critic_loss(model, tokenizer, tasks, reward, schedule, weight=0.7)
    torch.manual_seed(3)
    model.eval()
    write(model, tokenizer, tasks, schedule, sample=False)
    sampled = write(model, tokenizer, [t for t in tasks for _ in range(samples)], schedule, sample=True)
    expected = 0.0
    for n, task in enumerate(tasks):
        for k in range(samples):
            chosen = log_likelihood(model, tokenizer, [task], [[sampled[n * samples + k]]])[0]
            expected += 0.7 * ([0.5, 0.4][n] - drawn[n * samples + k]) * float(chosen[0].detach()) / samples / 2
        human = log_likelihood(model, tokenizer, [task], [[task.target]])[0]
        expected -= float(human[0].detach()) / 2
    assert mean == pytest.approx(0.45)
    assert float(loss) == pytest.approx(expected, rel=1e-4)


def test_equations_14_and_15_by_hand(monkeypatch):
    """r(greedy) = .5, r(sample) = .2, log P(sample) = -2, log P(target) = -1 - 2 - 3 (a sum over its three tokens), λ = .7:
    L = .7 (.5 - .2) (-2) + 6 = 5.58."""
    from elench.train import selfcritical

    model, tokenizer, tasks = load(*KINDS[0])
    monkeypatch.setattr(selfcritical, "write", lambda m, t, some, schedule, sample: [(3, 4)] * len(some))
    monkeypatch.setattr(selfcritical, "log_likelihood", lambda *given: [torch.tensor([-2.0, -1.0 - 2.0 - 3.0])])
    schedule = RewardSchedule(limit=6, batch=1, samples=1)
    loss, mean = critic_loss(model, tokenizer, tasks[:1], lambda asked, texts: [0.5, 0.2], schedule, weight=0.7)
    assert (float(loss), mean) == (pytest.approx(5.58), 0.5)


@pytest.mark.parametrize(("kind", "loader"), KINDS)
def test_a_reward_rises(kind, loader, tmp_path):
    model, tokenizer, tasks = load(kind, loader)

    def reward(asked, texts):
        return [text.split().count("king") / max(len(text.split()), 1) for text in texts]

    target = tuple(tokenizer("king king king book")["input_ids"])
    tasks = [WritingTask(t.prompt, target, t.fields) for t in tasks]
    schedule = RewardSchedule(steps=40, batch=4, lr=5e-3, limit=6, every=20)
    curve = learn(model, tokenizer, tasks[:3], tasks[3:], reward, schedule, log=lambda line: None)
    assert curve.steps == [0, 20, 40] and curve.rewards[-1] > curve.rewards[0] + 0.2
    save_curve(curve, tmp_path, "kings")
    assert json.loads((tmp_path / "curve.json").read_text())["mean"] == curve.rewards
    assert (tmp_path / "curve.svg").read_text().startswith("<svg")
