"""Training of several attention heads: one is what there was, and those apart are apart."""

import numpy as np
import pytest
from sizes import USUAL, drawn

import attractor as at
from attractor.geometry import Frobenius, Nuclear, Spectral
from attractor.support.errors import InvalidInputError

OPTIMIZERS = [
    at.gradient_descent(3.0),
    at.normalized_gradient_descent(0.1, weight_decay=1e-3),
    at.sign_descent(0.03),
    at.greedy_coordinate_descent(0.1),
    at.spectral_descent(0.03),
    at.steepest_descent(0.1, "l_3"),
    at.momentum(1.0),
    at.sign_momentum(0.03),
    at.normalized_momentum(0.1),
    at.lion(0.03),
    at.adam(0.03),
    at.adam(0.03, eps=0.0),
    at.muon(0.03),
    at.mirror_descent(0.1),
    at.schatten_mirror_descent(0.1),
    at.polyak_step(),
]


@pytest.fixture(scope="module")
def data():
    return drawn(USUAL)


def differences(one, several):
    """Names of what is not the same to the last bit."""
    assert set(one.data) == set(several.data)
    alone = several.data.isel(attention_head=0)
    return [
        name
        for name in one.data
        if not np.array_equal(one.data[name].values, alone[name].values, equal_nan=True)
    ]


def same_bits(data, optimizer, name, of_one, **options):
    steps = {"steps": 60, "record": [0, 60], "seeds": 2}
    runs = [
        at.train(*data, optimizer, parameterization=each, **steps, **options)
        for each in (name, of_one)
    ]
    assert differences(*runs) == []
    assert runs[0].geometry == runs[1].geometry


@pytest.mark.long
def test_one_head_is_what_there_was_to_the_last_bit(data):
    same_bits(data, at.normalized_gradient_descent(0.1), "W", "1 x W")
    same_bits(data, at.joined(at.sign_descent(0.1)), "KQ", "1 x KQ")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["W", "KQ", "p", "v, W"])
@pytest.mark.parametrize("optimizer", OPTIMIZERS, ids=repr)
def test_one_head_is_what_there_was_by_every_optimizer(data, name, optimizer):
    if optimizer.needs and name == "v, W":
        pytest.skip("the least loss is known of a fixed head alone")
    of_one = {"W": "1 x W", "KQ": "1 x KQ", "p": "1 x p", "v, W": "v, 1 x W"}[name]
    same_bits(data, optimizer, name, of_one)
    if not optimizer.needs:
        same_bits(data, optimizer, name, of_one, batch_size=2)


def starts(data, heads=2):
    shape = (USUAL.instances, 1, heads, USUAL.d, USUAL.d)
    return np.random.default_rng(0).uniform(-0.5, 0.5, shape)


@pytest.mark.long
@pytest.mark.parametrize(
    "optimizer", [at.gradient_descent(1.0), at.spectral_descent(0.05)], ids=["gd", "spectral"]
)
def test_heads_that_never_interact_are_separate_runs(data, optimizer):
    tokens, head = data
    other = at.LinearHead(head.weight[:, ::-1])
    initial = starts(data)
    settings = {"steps": 80, "record": [0, 80], "loss": "linear"}
    run = at.train(
        tokens, [head, other], optimizer, initial=initial, parameterization="2 x W", **settings
    )
    for h, own in enumerate((head, other)):
        alone = at.train(tokens, own, optimizer, initial=initial[:, :, h], **settings)
        assert run.W()[:, :, h] == pytest.approx(alone.W(), abs=80e-13, rel=0)


def test_a_head_that_is_not_read_stays_and_disturbs_nothing(data):
    tokens, head = data
    initial, optimizer = starts(data), at.normalized_gradient_descent(0.1)
    settings = {"steps": 80, "record": [0, 80]}
    run = at.train(
        tokens, [at.LinearHead(0 * head.weight), head], optimizer,
        initial=initial, parameterization="2 x W", **settings,
    )  # fmt: skip
    alone = at.train(tokens, head, optimizer, initial=initial[:, :, 1], **settings)
    assert run.W()[:, :, 1] == pytest.approx(alone.W(), abs=80e-13, rel=0)
    assert np.array_equal(run.W()[:, :, 0], initial[:, :, 0])
    assert run.data.log_time.values == pytest.approx(alone.data.log_time.values, rel=1e-13)


def test_the_norm_that_all_heads_descend_is_known_where_it_is_that_of_one_matrix():
    def of(optimizer, name="3 x W"):
        return at.attention.get_parameterization(name).descended(optimizer)

    for one in (at.gradient_descent(1.0), at.normalized_gradient_descent(0.1), at.momentum(1.0)):
        assert of(one) == Frobenius() and of(one, "3 x KQ") == Nuclear()
        assert of(at.joined(one)) == Frobenius() and of(at.joined(one), "3 x KQ") == Nuclear()
    assert of(at.muon(0.1)) == Spectral() == of(at.joined(at.muon(0.1)))
    assert of(at.spectral_descent(0.1), "3 x p") == Spectral()
    assert of(at.sign_descent(0.1)) == at.Lp(np.inf) == of(at.lion(0.1))
    assert of(at.mirror_descent(0.1, per_factor=False)) == at.Lp(1.5)
    # Each head by its own norm: the largest of these, of which no geometry is known.
    assert of(at.mirror_descent(0.1)) is None and of(at.steepest_descent(0.1, "l_3")) is None
    assert of(at.normalized_gradient_descent(0.1, per_factor=True), "3 x KQ") is None
    assert of(at.joined(at.steepest_descent(0.1, "l_3"))) == at.Lp(3)


@pytest.mark.long
def test_a_run_of_several_heads_is_recorded_saved_and_found_again(data, tmp_path):
    tokens, head = data
    heads = [head, at.LinearHead(-head.weight)]
    seen = {"highest": lambda snapshot: snapshot.probabilities.max((-1, -2))}
    options = {
        "steps": 40, "record": [0, 20, 40], "parameterization": "v, 2 x W", "metrics": seen,
        "batch_size": 2, "initial": [0.5, 2.0], "stop": lambda record: record["loss"] < 0,
        "checkpoint": tmp_path / "state", "checkpoint_every": 0.0,
    }  # fmt: skip
    run = at.train(tokens, heads, at.normalized_gradient_descent([0.1, 0.2]), **options)
    record = ("learning_rate", "initial_scale", "instance", "seed", "step", "attention_head")
    assert run.data.attended_probability.dims == (*record, "sequence", "query")
    assert run.data.W.dims == (*record, "row", "column")
    assert run.data.highest.shape == (2, 2, 2, 1, 3, 2, 3)
    assert run.settings["attention_heads"], run.settings["arrangement"] == (2, "stacked")
    stack = run.sel(learning_rate=0.1).W()
    assert run.data.norm[0, ..., -1].values == pytest.approx(np.linalg.norm(
        stack.reshape(2, 2, 1, -1), axis=-1))  # fmt: skip
    again = at.train(tokens, heads, at.normalized_gradient_descent([0.1, 0.2]), **options)
    assert again.data.identical(run.data)
    run.save(tmp_path / "run.nc")
    loaded = at.Trajectory.load(tmp_path / "run.nc")
    assert loaded.data.identical(run.data) and loaded.settings == run.settings
    assert loaded.head.name == "prediction_heads(linear, linear)"


def test_what_has_no_meaning_for_several_heads_is_refused(data):
    tokens, head = data
    several = {"parameterization": "2 x W"}
    for refused in (
        lambda: at.gradient_flow(tokens, head, log_time=3.0, **several),
        lambda: at.regularization_path(tokens, head, radii=[1.0], **several),
        lambda: at.maps.basin_shares(
            tokens[0], at.LinearHead(head.weight[0]), at.gradient_descent(1.0), **several
        ),
    ):
        with pytest.raises(InvalidInputError, match="has attention heads"):
            refused()
    with pytest.raises(InvalidInputError, match="3 prediction heads, but 2 attention heads"):
        at.train(tokens, [head] * 3, at.gradient_descent(1.0), steps=1, **several)
    with pytest.raises(InvalidInputError, match="2 prediction heads, but one attention head"):
        at.train(tokens, [head] * 2, at.gradient_descent(1.0), steps=1)
    zero = {"K": np.zeros((2, USUAL.d, USUAL.d)), "Q": np.zeros((2, USUAL.d, USUAL.d))}
    zero["K"][0] = 1
    with pytest.raises(InvalidInputError, match="saddle"):
        at.train(
            tokens, head, at.gradient_descent(1.0), steps=1, initial=zero,
            parameterization="2 x KQ",
        )  # fmt: skip
