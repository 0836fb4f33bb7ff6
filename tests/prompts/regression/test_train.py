import math

import numpy as np
import optax
import pytest

from attractor.prompts.regression import (
    Blocks,
    RegressionTask,
    infinite_flow,
    infinite_risk,
    isotropic_finite_flow,
    kac_murdock_szego,
    linear_attention_optimum,
    linear_attention_risk,
    train_in_context,
)
from attractor.support.errors import InvalidInputError
from attractor.training.optimizers import adam

TASK = RegressionTask(kac_murdock_szego(3, 0.5))
FINITE = {"length": 12, "held_out": 2048}
"""Softmax attention on finite prompts, compiled once for all tests of it."""


@pytest.mark.slow
def test_linear_attention_reaches_its_optimum():
    run = train_in_context(
        TASK, length=20, attention="linear", parameterization="blocks", initialization="balanced",
        learning_rate=0.02, batch=256, steps=600, record=[0, 600],
    )  # fmt: skip
    optimum = linear_attention_optimum(TASK, 20)
    assert (run.data["gap"].isel(step=-1) < 0.08 * optimum.risk).all()
    assert (run.data["gap"].isel(step=0) > 0.5 * optimum.risk).all()
    assert (run.data["product_distance"].isel(step=-1) < 0.3).all()
    last = Blocks(*(block[0] for block in run.blocks()))
    assert linear_attention_risk(TASK, last, 20) == pytest.approx(
        float(run.data["risk"].isel(seed=0, step=-1)), rel=1e-12
    )
    assert (run.data["risk_error"] == 0).all()
    assert not run.on_plateau.any()


@pytest.mark.slow
def test_small_steps_on_infinite_prompts_follow_the_flow():
    rate, steps = 0.002, 1000
    run = train_in_context(
        TASK, length=math.inf, parameterization="blocks", initialization="balanced", scale=0.3,
        half=True, learning_rate=rate, batch=512, steps=steps, record=[0, 500, 1000],
    )  # fmt: skip
    flow = infinite_flow(TASK, 0.3, rate * np.array([0, 500, 1000]))
    assert run.time_of_step == rate
    data = run.data.isel(seed=0, head=0)
    np.testing.assert_allclose(data["value_label"], flow.blocks.value_label, rtol=0.03)
    np.testing.assert_allclose(data["key_query"], flow.blocks.key_query, atol=0.03)
    np.testing.assert_allclose(data["risk"], flow.risk, atol=0.05)
    assert np.abs(data["balance"]).max() < 0.02


@pytest.mark.slow
def test_small_steps_on_finite_prompts_follow_the_exact_finite_flow():
    rate, steps = 0.005, np.array([0, 200, 400])
    flow = isotropic_finite_flow(5, 64, 0.2, rate * steps)
    run = train_in_context(
        RegressionTask(np.eye(5)), length=64, parameterization="blocks", initialization="balanced",
        scale=0.2, half=True, learning_rate=rate, batch=512, steps=400, record=steps,
    )  # fmt: skip
    data = run.data.isel(seed=0, head=0)
    np.testing.assert_allclose(data["value_label"], flow.b, rtol=0.03)
    a = np.trace(data["key_query"].to_numpy(), axis1=1, axis2=2) / 5
    np.testing.assert_allclose(a, flow.a, rtol=0.03)
    np.testing.assert_array_less(np.abs(data["risk"] - flow.risk), 4 * data["risk_error"] + 0.01)
    off_diagonal = data["key_query"] - a[:, None, None] * np.eye(5)
    assert np.abs(off_diagonal).max() < 0.05


@pytest.mark.long
def test_risk_of_softmax_is_measured_on_prompts_held_out():
    blocks = Blocks(0.2 * np.eye(3), np.array([0.1, 0, 0]), np.array([0, 0.2, 0]), np.array(0.6))
    run = train_in_context(TASK, initialization=blocks, steps=1, record=[0, 1], **FINITE)
    found = run.data.isel(seed=0, step=0)
    np.testing.assert_allclose(found["key_query"].isel(head=0), blocks.key_query, atol=1e-14)
    rng = np.random.default_rng(0)
    count = 20_000
    w = rng.standard_normal((count, 3))
    x = rng.standard_normal((count, 12, 3)) @ np.linalg.cholesky(TASK.covariance).T
    queries = rng.standard_normal((count, 3)) @ np.linalg.cholesky(TASK.covariance).T
    y = np.einsum("pli,pi->pl", x, w)
    g = queries @ blocks.key_query.T
    scores = np.einsum("pli,pi->pl", x, g) + y * (queries @ blocks.label_row)[:, None]
    p = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
    outputs = x @ blocks.value_inputs + y * blocks.value_label
    errors = ((p * outputs).sum(1) - (w * queries).sum(1)) ** 2 / 2
    error = math.hypot(errors.std() / count**0.5, float(found["risk_error"]))
    assert abs(errors.mean() - float(found["risk"])) < 4 * error
    held_out = FINITE["held_out"]
    assert float(found["risk_error"]) < errors.std() / held_out**0.5  # the control variate helps
    assert float(found["infinite_risk"]) == pytest.approx(float(infinite_risk(TASK, blocks)))


@pytest.mark.long
def test_seeds_are_runs_of_their_own_and_repeat(tmp_path):
    settings = {"steps": 6, "record": [0, 3, 6], **FINITE}
    both = train_in_context(TASK, seeds=2, seed=4, checkpoint=tmp_path / "run", **settings)
    again = train_in_context(TASK, seeds=2, seed=4, checkpoint=tmp_path / "run", **settings)
    assert both.data.equals(again.data)
    assert both.data["seed"].values.tolist() == [4, 5]
    alone = train_in_context(TASK, seed=5, **settings)
    np.testing.assert_array_equal(
        both.data["key_query"].sel(seed=5), alone.data["key_query"].sel(seed=5)
    )
    first = both.data["key_query"].isel(step=0)
    assert (first.sel(seed=4) != first.sel(seed=5)).all()
    assert "12 tokens of 3 inputs" in str(both) and "12 tokens" in both._repr_html_()
    assert both.on_plateau.all()  # where untrained layers stand
    assert both.verdict == "on the plateau: unfinished"
    assert both.verdict in str(both)


def test_a_run_cut_short_goes_on_with_the_same_numbers(tmp_path):
    settings = {"steps": 40, "record": [0, 20, 40], "checkpoint_every": 0, **FINITE}
    whole = train_in_context(TASK, **settings)

    class Cut(Exception):
        pass

    from attractor.training import loop

    original = loop.Measurements.write
    seen = []

    def write(self, *arguments):
        seen.append(arguments)
        if len(seen) == 3:
            raise Cut
        original(self, *arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loop.Measurements, "write", write)
        with pytest.raises(Cut):
            train_in_context(TASK, checkpoint=tmp_path / "run", **settings)
    resumed = train_in_context(TASK, checkpoint=tmp_path / "run", **settings)
    assert whole.data.equals(resumed.data)


def test_a_step_to_infinity_is_not_taken():
    large = Blocks(1e3 * np.eye(3), np.zeros(3), np.zeros(3), np.array(1e3))
    run = train_in_context(TASK, initialization=large, steps=50, record=[50], **FINITE)
    assert np.isfinite(run.data["key_query"]).all()
    assert run.verdict == "diverged"


@pytest.mark.slow
def test_other_optimizers_and_opposite_heads():
    settings = {"length": math.inf, "steps": 30, "record": [30], "parameterization": "blocks",
                "initialization": "balanced"}  # fmt: skip
    start = TASK.risk_of_zero
    for optimizer in (adam(0.05), optax.adam(0.05)):
        run = train_in_context(TASK, optimizer=optimizer, heads=2, **settings)
        assert float(run.data["risk"].isel(step=-1, seed=0)) < 0.8 * start
        b = run.data["value_label"].isel(step=-1, seed=0).to_numpy()
        assert b[0] > 0 > b[1]


@pytest.mark.parametrize(
    ("argument", "value", "others"),
    [
        ("length", 0, {}),
        ("length", 2.5, {}),
        ("length", math.nan, {}),
        ("length", True, {}),
        ("length", 10**10, {}),
        ("steps", 0, {}),
        ("heads", 0, {}),
        ("batch", 0, {}),
        ("attention", "relu", {}),
        ("parameterization", "U", {}),
        ("initialization", "zero", {}),
        ("scale", 0.1, {}),
        ("scale", -1.0, {"initialization": "balanced"}),
        ("draw", "moments", {}),
        ("draw", "projections", {"heads": 2}),
        ("draw", "projections", {"attention": "linear"}),
        ("dtype", "float16", {}),
        ("optimizer", "adam", {}),
        ("learning_rate", -1.0, {}),
        ("record", [9], {}),
        ("initialization", Blocks(np.eye(3), np.zeros(3), np.zeros(3), np.ones(())), {"heads": 2}),
    ],
)
def test_what_cannot_be_used_is_named(argument, value, others):
    with pytest.raises(InvalidInputError) as error:
        train_in_context(TASK, **({"length": 4, "steps": 2} | others | {argument: value}))
    assert error.value.argument == argument
