"""Paths against brute force, closed forms, published numbers and their own certificate."""

import numpy as np
import prompt_examples as examples
import pytest
from scipy.special import expit

from attractor.analysis import verify
from attractor.attention import LinearHead, ReLUHead
from attractor.geometry import Frobenius, Lp, Nuclear, Schatten, Spectral
from attractor.margin.selection import Selection
from attractor.support.errors import InvalidInputError, TrialStatus
from attractor.tokens import Tokens
from attractor.training.paths import regularization_path

NORMS = (Frobenius(), Nuclear(), Lp(1), Lp(1.5), Lp(3), Lp(np.inf), Schatten(3), Spectral())
SLOW = pytest.mark.slow


def log_excess(tokens, head, W):
    """The excess of many matrices in plain arithmetic, good to radius 30 or so."""
    scores = np.einsum("ntd,bde,nke->bnkt", tokens.keys, W, tokens.queries)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    gamma = (tokens.labels * (tokens.values @ head.weight))[:, None]
    best = gamma.max(-1, keepdims=True)
    delta = (weights * (best - gamma)).sum(-1)
    rise = np.log1p(np.expm1(delta) * expit(-best[..., 0]))
    return np.log(rise.mean((-2, -1)))


@pytest.fixture(scope="module")
def tiny():
    """Two sequences of three tokens; W has four entries."""
    rng = np.random.default_rng(8)
    tokens = Tokens(rng.normal(size=(2, 3, 2)), rng.normal(size=(2, 1, 2)), np.array([[1.0], [-1]]))
    return tokens, LinearHead(rng.normal(size=2))


@pytest.mark.long
@pytest.mark.parametrize(
    "geometry", [pytest.param(g, marks=() if g in NORMS[:3] else SLOW, id=repr(g)) for g in NORMS]
)
def test_no_matrix_of_the_ball_is_better(geometry, tiny):
    tokens, head = tiny
    run = regularization_path(tokens, head, geometry, radii=[1, 3, 10, 30, 1e4])
    generator = np.random.default_rng(0)
    sizes = generator.uniform(size=(100_000, 1, 1)) ** 0.1
    for number, radius in enumerate((1, 3, 10, 30)):
        found = run.data["log_excess"].values[0, 0, number]
        W = generator.normal(size=(100_000, 2, 2))
        W = sizes * radius * W / geometry.norm(W)[:, None, None]
        values = log_excess(tokens, head, W)
        for spread in (0.3, 0.1, 0.03, 0.01):  # closing in on the best of them
            near = W[values.argmin()] + spread * radius * generator.normal(size=(20_000, 2, 2))
            shrunk = near / np.maximum(geometry.norm(near) / radius, 1)[:, None, None]
            W, values = (
                np.concatenate([W, shrunk]),
                np.append(values, log_excess(tokens, head, shrunk)),
            )
        assert found <= values.min() + 1e-9
        np.testing.assert_allclose(found, values.min(), atol=0.02 * (1 + radius / 10))
        own = run.data["W"].values[0, 0, number]
        np.testing.assert_allclose(log_excess(tokens, head, own[None]), found, atol=1e-8)
    assert (run.data["norm"] <= run.steps * (1 + 1e-12)).all()
    assert (run.data["optimality"] <= 1e-11).all()
    assert (run.data["status"] == TrialStatus.TRAINED).all()


@pytest.fixture(scope="module")
def path(published_tokens):
    """The path of two data sets in the Frobenius norm, to radius 10^4."""
    return regularization_path(
        *published_tokens(2), radii=[1, 3, 10, 30, 100, 300, 1000, 3000, 10000], seeds=2
    )


@pytest.mark.long
def test_the_direction_tends_to_the_margin_solution_as_published(path):
    verdict = verify(path, selection="reached at end")
    assert verdict.axis == "radius"
    shortfall = 1 - verdict.data["correlation"].sel(instance=0, seed=0)
    published = {30: 8.5e-3, 100: 1.3e-3, 300: 2.0e-4, 1000: 2.4e-5}
    for radius, value in published.items():
        np.testing.assert_allclose(shortfall.sel(radius=radius), value, rtol=0.03)
    assert (verdict.selection_agreement == 1).all()
    assert (verdict.margin_ratio > 0.999).all()
    assert "to radius 10000" in str(verdict)
    slope = np.polyfit(path.steps, path.data["log_excess"].values[0, 0], 1)[0]
    np.testing.assert_allclose(slope, -1 / 2.9073738904, rtol=1e-4)


def test_the_excess_falls_and_every_point_is_stationary(path):
    assert (np.diff(path.data["log_excess"], axis=-1) < 0).all()
    assert (path.data["optimality"] < 1e-12).all()
    assert np.isfinite(path.data["optimality"]).all()
    np.testing.assert_allclose(path.data["norm"].values[..., -3:], [[[1000, 3000, 10000]] * 2] * 2)
    np.testing.assert_array_equal(path.data["status"], TrialStatus.TRAINED)


def test_a_trial_alone_gives_the_same_numbers(path, published_tokens):
    tokens, head = published_tokens(2)
    alone = regularization_path(
        tokens[1:], LinearHead(head.weight[1:]), radii=path.steps, seed=1, seeds=1
    )
    for name in ("W", "log_excess", "steps_taken"):
        np.testing.assert_array_equal(
            alone.data[name].values[0, 0], path.data[name].values[1, 1], err_msg=name
        )


def test_a_tolerance_out_of_reach_is_said(published_tokens):
    run = regularization_path(*published_tokens(1), radii=[1, 1000], tolerance=1e-300, starts=0)
    reached = (run.data["optimality"] <= 1e-300).all("radius")
    expected = np.where(reached, TrialStatus.TRAINED, TrialStatus.UNCONVERGED)
    np.testing.assert_array_equal(run.data["status"], expected)


@pytest.mark.long
def test_without_a_margin_solution_the_minimum_lies_inside_the_ball():
    # The best token lies between two others, so that no W is better than W = 0.
    keys = np.array([[[-1.0, 0.0], [0.0, 0.0], [1.0, 0.0]]])
    values = np.array([[[0.0], [1.0], [0.0]]])
    tokens = Tokens(keys, np.ones((1, 1, 2)), np.ones((1, 1)), values=values)
    run = regularization_path(tokens, LinearHead([1.0]), radii=[1, 100, 10000])
    np.testing.assert_allclose(run.data["norm"], 0, atol=1e-5)
    np.testing.assert_array_equal(run.data["status"], TrialStatus.TRAINED)
    np.testing.assert_allclose(run.data["attended_probability"], 1 / 3, rtol=1e-5)


def test_where_all_tokens_score_the_same_the_path_rests_at_zero():
    keys = np.array([[[1.0, 0.5], [-2, 0.5], [0, 0.5]], [[0.3, 1.0], [0.1, 1], [0.2, 1]]])
    tokens = Tokens(keys, np.eye(2)[:, None], np.ones((2, 1)))
    run = regularization_path(tokens, LinearHead([0.0, 1.0]), radii=[1, 3, 10, 30, 100])
    np.testing.assert_array_equal(run.data["status"], TrialStatus.STATIONARY)
    np.testing.assert_array_equal(run.W(), 0)
    np.testing.assert_array_equal(run.data["optimality"], 0)
    np.testing.assert_array_equal(run.data["log_excess"], -np.inf)


@pytest.mark.long
def test_a_local_path_leads_to_the_tokens_selected():
    tokens, head = examples.scored(examples.ONE_SEQUENCE, examples.UNEQUAL_SCORES)
    chosen = Selection.from_index(tokens, [1])
    run = regularization_path(tokens, head, radii=[20, 50, 100], selected=chosen)
    W = run.data["W"].values[0, 0, :, :, 0]
    angle = np.arccos(W[:, 0] / np.linalg.norm(W, axis=-1))
    np.testing.assert_allclose(angle[1:], [0.00078, 0.000005], rtol=0.15)
    np.testing.assert_array_equal(run.data["attended"].values[..., -1], 1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    (
        ({"radii": [2, 1]}, "radii"),
        ({"radii": [0, 1]}, "radii"),
        ({"geometry": "l_0.5"}, "p"),
        ({"geometry": Lp(3), "parameterization": "KQ"}, "geometry"),
        ({"loss": "squared"}, "loss"),
        ({"loss": "linear", "parameterization": "(v, W)"}, "loss"),
        ({"head_radius": 2}, "head_radius"),
        ({"head_radius": [1, 2], "parameterization": "(v, W)"}, "head_radius"),
        ({"head_radius": np.exp, "parameterization": "(v, W)"}, "head_radius"),
        ({"selected": [1, 2]}, "selected"),
        ({"tolerance": 0}, "tolerance"),
        ({"starts": -1}, "starts"),
        ({"weights": "some"}, "weights"),
        ({"head": ReLUHead(np.eye(10))}, "head"),
    ),
)
def test_what_cannot_be_used_is_named_before_any_work(published_tokens, arguments, message):
    tokens, head = published_tokens(2)
    arguments = {"geometry": Frobenius(), "head": head, **arguments}
    with pytest.raises(InvalidInputError, match=rf"^{message}: "):
        regularization_path(tokens, arguments.pop("head"), arguments.pop("geometry"), **arguments)
