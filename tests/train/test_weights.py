"""The weighter's regression finds what makes a question important, and is judged on articles it has not seen."""

from __future__ import annotations

import numpy as np

from elench.models.weights import FEATURES
from elench.train.weights import Label, fit, judged


def test_newton_reaches_the_penalised_optimum():
    rng = np.random.default_rng(1)
    x = rng.normal(size=(400, len(FEATURES)))
    y = (rng.random(400) < 1 / (1 + np.exp(-2 * x[:, 0] + x[:, 3]))).astype(float)
    model = fit(x, y, penalty=3.0)
    z = (x - np.array(model["mean"])) / np.array(model["scale"])
    w = np.array(model["weights"])
    p = 1 / (1 + np.exp(-(z @ w + model["bias"])))
    assert np.abs(z.T @ (y - p) - 3.0 * w).max() < 1e-2  # the gradient vanishes
    assert w[0] > 1 and w[3] < -0.5 and abs(w[7]) < 0.3


def test_auc_on_left_out_articles_beats_chance_only_if_there_is_something_to_learn():
    source = " ".join(f"Name{i} did thing{i} here." for i in range(30))
    lead = [
        Label(f"a{k}", source, f"Who did thing{i}?", f"Name{i}", float(i < 5)) for k in range(10) for i in range(30)
    ]
    assert judged(lead, 5, 7)["auc"] > 0.95
    rng = np.random.default_rng(2)
    noise = [Label(x.article, x.source, x.question, x.answer, float(rng.random() < 0.3)) for x in lead]
    assert 0.35 < judged(noise, 5, 7)["auc"] < 0.65
