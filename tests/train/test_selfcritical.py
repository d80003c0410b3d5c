"""Self-critical training: the loss is the paper's, and a reward that can rise does rise, for both kinds of model."""

import json

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoModelForSeq2SeqLM, AutoTokenizer

from quaestor.train.selfcritical import Plan, Task, critic_loss, learn, log_likelihood, save_curve, write
from tests.tiny import tiny

KINDS = [("llama", AutoModelForCausalLM), ("t5", AutoModelForSeq2SeqLM)]


def load(kind, loader):
    torch.manual_seed(0)
    tokenizer = AutoTokenizer.from_pretrained(tiny(kind))
    tasks = [
        Task(
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
        found = float(log_likelihood(model, tokenizer, [task], [task.target])[0])
        labels = torch.tensor([task.target])
        if kind == "t5":
            loss = model(input_ids=torch.tensor([task.prompt]), labels=labels).loss
        else:
            ids = torch.tensor([[*task.prompt, *task.target]])
            shown = torch.tensor([[-100] * len(task.prompt) + list(task.target)])
            loss = model(input_ids=ids, labels=shown).loss
    assert found == pytest.approx(-float(loss) * len(task.target), rel=1e-4)


def test_the_loss_is_equation_15():
    model, tokenizer, tasks = load(*KINDS[0])
    plan = Plan(limit=6, batch=2)

    def reward(asked, texts):  # the first half of the texts is greedy, the second sampled
        return [0.5] * len(tasks[:2]) + [0.2, 0.9]

    torch.manual_seed(3)
    loss, mean = critic_loss(model, tokenizer, tasks[:2], reward, plan, weight=0.7)
    torch.manual_seed(3)
    model.eval()
    write(model, tokenizer, tasks[:2], plan, sample=False)
    sampled = write(model, tokenizer, tasks[:2], plan, sample=True)
    chosen = log_likelihood(model, tokenizer, tasks[:2], sampled)
    human = log_likelihood(model, tokenizer, tasks[:2], [t.target for t in tasks[:2]])
    critical = ((0.5 - 0.2) * chosen[0] + (0.5 - 0.9) * chosen[1]) / 2
    plain = sum(-h / len(t.target) for h, t in zip(human, tasks[:2], strict=True)) / 2
    assert mean == 0.5
    assert float(loss) == pytest.approx(float(0.7 * critical + plain), rel=1e-4)


@pytest.mark.parametrize(("kind", "loader"), KINDS)
def test_a_reward_rises(kind, loader, tmp_path):
    model, tokenizer, tasks = load(kind, loader)

    def reward(asked, texts):
        return [text.split().count("king") / max(len(text.split()), 1) for text in texts]

    target = tuple(tokenizer("king king king book")["input_ids"])
    tasks = [Task(t.prompt, target, t.fields) for t in tasks]
    plan = Plan(steps=40, batch=4, lr=5e-3, limit=6, every=20)
    curve = learn(model, tokenizer, tasks[:3], tasks[3:], reward, plan, log=lambda line: None)
    assert curve.steps == [0, 20, 40] and curve.rewards[-1] > curve.rewards[0] + 0.2
    save_curve(curve, tmp_path, "kings")
    assert json.loads((tmp_path / "curve.json").read_text())["mean"] == curve.rewards
    assert (tmp_path / "curve.svg").read_text().startswith("<svg")
