"""The scale of a random start: a number, or several as an axis of the trajectory."""

import numpy as np
import pytest
from sizes import USUAL, drawn

import attractor as at
from attractor.support.errors import InvalidInputError

STEP = at.normalized_gradient_descent(0.1)
SCALES = [0.01, 0.3, 1.0]


@pytest.fixture(scope="module")
def data():
    return drawn(USUAL)


@pytest.fixture(scope="module")
def run(data):
    tokens, head = data
    return at.train(
        tokens, head, at.momentum([0.05, 0.2]), steps=20, seeds=2, initial=SCALES, weights="all"
    )


@pytest.mark.parametrize("parameterization", ["W", "KQ", "p", "(v, W)"])
def test_a_number_multiplies_every_array_of_the_start(data, parameterization):
    tokens, head = data
    settings = {"steps": 1, "seeds": 2, "parameterization": parameterization}
    plain = at.train(tokens, head, STEP, **settings)
    assert at.train(tokens, head, STEP, initial=1.0, **settings).data.identical(plain.data)
    scaled = at.train(tokens, head, STEP, initial=0.3, **settings)
    trained = [name for name in ("K", "Q", "p") if name in plain.data] or ["W"]
    for name in trained:
        begun = plain.data[name].sel(step=0).values
        np.testing.assert_array_equal(scaled.data[name].sel(step=0), 0.3 * begun)
    if parameterization == "(v, W)":  # the head starts where it was given
        heads = scaled.data["head_weight"].sel(step=0)
        np.testing.assert_array_equal(heads, plain.data["head_weight"].sel(step=0))
    assert scaled.settings["initial"] == "random" and scaled.settings["initial_scale"] == 0.3
    assert "initial_scale" not in plain.settings


def test_several_have_the_bits_of_single_runs(data, run):
    tokens, head = data
    assert run.hyperparameters == ("learning_rate", "initial_scale")
    assert run.data["loss"].dims == ("learning_rate", "initial_scale", "instance", "seed", "step")
    assert run.settings["initial_scale"] == SCALES
    for rate, scale in ((0.05, 0.01), (0.2, 0.3), (0.2, 1.0)):
        alone = at.train(
            tokens, head, at.momentum(rate), steps=20, seeds=2, initial=scale, weights="all"
        )
        chosen = run.sel(learning_rate=rate, initial_scale=scale)
        assert chosen.data.identical(alone.data)
        assert chosen.settings == alone.settings


def test_all_scales_share_one_program(data, compiled):
    tokens, head = data
    at.train(tokens, head, STEP, steps=9, initial=0.5, loss="exponential")
    count = len(compiled())
    assert count
    for scale in (0.0, 0.1, [0.2, 0.3, 4.0], np.geomspace(1e-3, 1e3, 7)):
        at.train(tokens, head, STEP, steps=9, initial=scale, loss="exponential")
    assert len(compiled()) == count


def test_zero_is_a_start_where_training_can_leave_it(data):
    tokens, head = data
    zero = at.train(tokens, head, STEP, steps=3, initial=0)
    given = at.train(tokens, head, STEP, steps=3, initial=np.zeros((5, 5)))
    assert zero.data.identical(given.data)
    for initial in (0, [0.0, 0.1]):
        with pytest.raises(InvalidInputError, match=r"^initial: K = Q = 0 is a saddle point"):
            at.train(tokens, head, STEP, steps=3, initial=initial, parameterization="KQ")


def test_a_sequence_for_a_prompt_vector_is_the_vector(data):
    tokens, head = data
    vector = [0.1, 0.2, 0.3, 0.4, 0.5]
    run = at.train(tokens, head, STEP, steps=1, initial=vector, parameterization="p")
    assert not run.hyperparameters
    np.testing.assert_array_equal(run.data["p"].sel(step=0)[0, 0], vector)
    with pytest.raises(InvalidInputError, match=r"^initial: the shape of p is \(2,\)"):
        at.train(tokens, head, STEP, steps=1, initial=[0.1, 0.2], parameterization="p")


@pytest.mark.long
def test_flows_start_from_it(data):
    tokens, head = data
    several = at.gradient_flow(tokens, head, time=1.0, initial=[0.1, 1.0], record=[1.0])
    assert several.hyperparameters == ("initial_scale",)
    alone = at.gradient_flow(tokens, head, time=1.0, initial=0.1, record=[1.0])
    assert several.sel(initial_scale=0.1).data.identical(alone.data)
    plain = at.gradient_flow(tokens, head, time=1.0, record=[1.0])
    np.testing.assert_array_equal(several.sel(initial_scale=1.0).data["W"], plain.data["W"])


def test_a_path_has_no_scale(data):
    with pytest.raises(InvalidInputError, match=r"^initial: 0.1 is a scale"):
        at.regularization_path(*data, radii=[1.0], initial=0.1)


@pytest.mark.parametrize(
    ("initial", "words"),
    [
        (-0.1, "-0.1 is not"),
        (np.nan, "nan is not"),
        ([0.1, -1.0], "-1.0 is not"),
        ([0.1, 0.1], "names a scale twice"),
        ([], "names no scale"),
        (1e60, "is not"),
        (True, "data type is bool"),
        ([[0.1, 0.2]], "the shape of W is"),
    ],
)
def test_scales_that_cannot_be_used_are_refused(data, initial, words):
    with pytest.raises(InvalidInputError, match=f"^initial: .*{words}"):
        at.train(*data, STEP, steps=1, initial=initial)


def test_files_and_checkpoints_keep_it(data, run, tmp_path):
    run.save(tmp_path / "run.nc")
    again = at.Trajectory.load(tmp_path / "run.nc")
    assert again.data.identical(run.data) and again.settings["initial_scale"] == SCALES
    assert again.sel(initial_scale=0.3, learning_rate=0.2).settings["initial_scale"] == 0.3
    tokens, head = data
    folder = tmp_path / "kept"
    first = at.train(tokens, head, STEP, steps=5, initial=[0.1, 0.2], checkpoint=folder)
    same = at.train(tokens, head, STEP, steps=5, initial=[0.1, 0.2], checkpoint=folder)
    assert same.data.identical(first.data)
    with pytest.raises(InvalidInputError, match=r"initial_scale was \[0.1, 0.2\] and is 0.1"):
        at.train(tokens, head, STEP, steps=5, initial=0.1, checkpoint=folder)


def test_verdicts_and_metrics_know_the_axis(data, run):
    verdict = at.verify(run)
    assert verdict.data["margin_ratio"].dims[:2] == ("learning_rate", "initial_scale")
    chosen = {"learning_rate": 0.2, "initial_scale": 0.01}
    alone = at.verify(run.sel(**chosen))
    np.testing.assert_allclose(verdict.sel(**chosen).margin_ratio, alone.margin_ratio, rtol=1e-12)
    assert "learning_rate = 0.2, initial_scale = 0.01" in verdict.by_hyperparameters
    metrics = {"initial_scale": lambda seen: seen.loss}
    with pytest.raises(InvalidInputError, match="metrics: the name 'initial_scale'"):
        at.train(*data, STEP, steps=1, initial=[0.1, 0.2], metrics=metrics)


def test_a_value_that_was_not_trained_with_is_refused(run):
    with pytest.raises(InvalidInputError, match=r"^initial_scale: 0.5 was not trained with"):
        run.sel(initial_scale=0.5)
