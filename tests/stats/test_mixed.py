"""The mixed model equals statsmodels' MixedLM; its tests hold when a rater favours a system."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
from scipy import stats

from elench.errors import UsageError
from elench.stats.mixed import mixed_model


def study(rng, passages=12, raters=8, systems=4, favour=0.5, effect=0.0):
    """Every rater rates every system on six passages."""
    hard, severe = rng.normal(size=passages), rng.normal(size=raters)
    taste = favour * rng.normal(size=(raters, systems))
    rows = []
    for r in range(raters):
        for p in rng.choice(passages, 6, replace=False):
            for s in range(systems):
                y = 3 + effect * s + hard[p] + severe[r] + taste[r, s] + rng.normal()
                rows.append((y, f"s{s}", f"p{p}", f"r{r}"))
    return list(zip(*rows, strict=True))


def test_estimates_equal_statsmodels() -> None:
    y, system, passage, rater = study(np.random.default_rng(0), effect=0.4)
    fit = mixed_model(y, system, passage, rater)
    frame = pd.DataFrame({"y": y, "s": system, "p": passage, "r": rater, "one": 1})
    parts = {"passage": "0 + C(p)", "rater": "0 + C(r)", "rater:system": "0 + C(r):C(s)"}
    theirs = smf.mixedlm("y ~ 0 + C(s)", frame, groups="one", vc_formula=parts, re_formula="0").fit(reml=True)
    for name, mean in zip(fit.systems, fit.means, strict=True):
        assert mean == pytest.approx(theirs.fe_params[f"C(s)[{name}]"], abs=2e-3)
    variances = dict(zip(theirs.model.exog_vc.names, theirs.vcomp, strict=True))
    for name in parts:
        assert fit.variances[name] == pytest.approx(variances[name], rel=0.02, abs=5e-3)
    assert fit.variances["residual"] == pytest.approx(theirs.scale, rel=0.01)


@pytest.mark.parametrize(("raters", "passages", "systems"), [(8, 6, 4), (5, 10, 3)])
def test_a_complete_study_gives_the_analysis_of_variance(raters: int, passages: int, systems: int) -> None:
    """Every rater rates every system on every passage: REML then equals the classic mean squares, and two systems are
    tested against the rater × system mean square with (raters - 1)(systems - 1) degrees of freedom."""
    rng = np.random.default_rng(raters)
    y = 3 + 0.2 * np.arange(systems) + rng.normal(size=(raters, 1, 1)) + rng.normal(size=(1, passages, 1))
    y = y + 0.7 * rng.normal(size=(raters, 1, systems)) + rng.normal(size=(raters, passages, systems))
    r, p, s = np.indices(y.shape).reshape(3, -1)
    fit = mixed_model(y.ravel(), [f"s{k}" for k in s], p.tolist(), [f"r{k}" for k in r])
    by_r, by_p, by_s, by_rs, whole = y.mean((1, 2)), y.mean((0, 2)), y.mean((0, 1)), y.mean(1), y.mean()
    df_rs = (raters - 1) * (systems - 1)
    ms_rs = passages * ((by_rs - by_r[:, None] - by_s + whole) ** 2).sum() / df_rs
    ms_r = passages * systems * ((by_r - whole) ** 2).sum() / (raters - 1)
    ms_p = raters * systems * ((by_p - whole) ** 2).sum() / (passages - 1)
    rest = y - by_rs[:, None, :] - by_p[None, :, None] + whole
    ms_e = (rest**2).sum() / (y.size - raters * systems - passages + 1)
    expected = {"residual": ms_e, "rater:system": (ms_rs - ms_e) / passages,
                "rater": (ms_r - ms_rs) / (passages * systems), "passage": (ms_p - ms_e) / (raters * systems)}  # fmt: skip
    for name, value in expected.items():
        assert fit.variances[name] == pytest.approx(value, rel=1e-3)
    error = np.sqrt(2 * ms_rs / (raters * passages))
    for pair in fit.pairs:
        assert pair.freedom == pytest.approx(df_rs, rel=1e-3)
        assert pair.p == pytest.approx(2 * stats.t.sf(abs(pair.difference) / error, df_rs), rel=1e-2)
        assert (pair.high - pair.low) / 2 == pytest.approx(stats.t.ppf(0.975, df_rs) * error, rel=1e-3)


def test_a_balanced_study_gives_the_t_test_on_rater_means() -> None:
    """Raters × systems complete and no passages repeated: the exact test is the paired t over raters, df = raters - 1."""
    rng = np.random.default_rng(1)
    taste = rng.normal(size=(10, 2)) + 2 * rng.normal(size=(10, 1))
    rows = [
        (taste[r, s] + 0.3 * rng.normal(), f"s{s}", f"{r}-{k}", f"r{r}")
        for r in range(10)
        for s in range(2)
        for k in range(5)
    ]
    pair = mixed_model(*zip(*rows, strict=True)).pairs[0]
    assert pair.freedom == pytest.approx(9, abs=1.0)


def test_false_alarms_with_rater_by_system_tastes() -> None:
    """The audit's case: 10 raters; the signed-rank test on passages alarmed in 29 % of families."""
    rng = np.random.default_rng(2)
    alarms = np.mean([min(p.corrected for p in mixed_model(*study(rng)).pairs) < 0.05 for _ in range(60)])
    assert alarms <= 0.15  # 5 % + 3.5 standard errors of 60 runs


def test_severity_is_found_and_useless_input_refused() -> None:
    rows = [(5.0 - (r == 2) * 2 + 0.01 * ((7 * r + 3 * p + s) % 5) + s, f"s{s}", f"p{p}", f"r{r}")
            for r in range(5) for p in range(6) for s in range(3)]  # fmt: skip
    fit = mixed_model(*zip(*rows, strict=True))
    assert fit.raters[0].rater == "r2" and fit.raters[0].severity == pytest.approx(1.6, abs=0.1)
    assert fit.systems == ("s2", "s1", "s0") and fit.letters == ("a", "b", "c")
    with pytest.raises(UsageError, match="at least two systems by at least two raters"):
        mixed_model([1, 2, 3, 4, 5, 6], ["a"] * 6, "pqrstu", ["x"] * 6)
    with pytest.raises(UsageError, match="ratings that differ"):
        mixed_model([1.0] * 8, list("ab") * 4, list("ppqqrrss"), list("xxyyxxyy"))
