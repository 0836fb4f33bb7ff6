"""Local paths against published numbers and against points drawn from the cone."""

import numpy as np
import prompt_examples as examples
import pytest

from attractor.attention import LinearHead
from attractor.margin import MarginProblem, solve
from attractor.margin.selection import Selection
from attractor.support.errors import InvalidInputError, TrialStatus
from attractor.tokens import Tokens
from attractor.training import local_path

# In space, as published: the third coordinate bears on no score, but takes up norm.
KEYS = np.pad(examples.ONE_SEQUENCE, ((0, 0), (0, 0), (0, 1)))
TOKENS, HEAD = examples.scored(KEYS, examples.UNEQUAL_SCORES)


def path_around(token, opening, radii):
    solution = solve(MarginProblem.from_selection(TOKENS, Selection.from_index(TOKENS, [token])))
    return local_path(TOKENS, HEAD, solution, opening, radii=radii, parameterization="p").data


@pytest.mark.long
@pytest.mark.parametrize("opening", (0.004, pytest.param(0.001, marks=pytest.mark.slow), 3.1e-4))
def test_the_path_tends_to_a_locally_optimal_direction_from_inside_a_small_cone(opening):
    data = path_around(1, opening, (20, 50, 100))
    edge = np.arccos(1 - opening)
    np.testing.assert_allclose(
        data["angle"][0, 0], [min(0.0261, edge), 0.00078, 0.000005], rtol=0.01, atol=4e-5
    )
    np.testing.assert_array_equal(data["at_edge"][0, 0], [opening == 3.1e-4, False, False])
    p = data["p"].values[0, 0]
    across = np.linalg.norm(p[:, 1:], axis=-1)
    np.testing.assert_allclose(np.arctan2(across, p[:, 0]), data["angle"][0, 0], atol=1e-12)
    np.testing.assert_allclose(np.linalg.norm(p, axis=-1), (20, 50, 100), rtol=1e-12)
    np.testing.assert_array_equal(data["status"], TrialStatus.TRAINED)


@pytest.mark.parametrize("opening", (0.01, 0.05))
def test_in_a_wider_cone_another_token_of_higher_score_wins(opening):
    data = path_around(1, opening, (20, 100, 1000))
    assert data["at_edge"].all()
    np.testing.assert_allclose(data["angle"], np.arccos(1 - opening), rtol=1e-6)
    assert np.isnan(data["log_excess"].values[..., 1:]).all()  # it is below the selection's
    assert np.isfinite(data["log_deficit"].values[..., 1:]).all()


@pytest.mark.parametrize("opening", (1e-3, 1e-5))
def test_no_cone_is_small_enough_around_a_direction_that_is_not_locally_optimal(opening):
    data = path_around(2, opening, (20, 100, 500))
    assert data["at_edge"].all()
    np.testing.assert_allclose(data["angle"], np.arccos(1 - opening), rtol=1e-6)
    assert (data["optimality"] < 1e-9).all()


def loss_of(tokens, head, W):
    scores = np.einsum("ntd,bde,nke->bnkt", tokens.keys, W, tokens.queries)
    weights = np.exp(scores - np.logaddexp.reduce(scores, -1)[..., None])
    margins = (weights * (tokens.labels * (tokens.values @ head.weight))[:, None]).sum(-1)
    return np.logaddexp(0, -margins).mean((1, 2))


def into_cone(W, axis, opening):
    """The nearest unit matrices in the cone, by the plane of each with the axis."""
    W = W / np.linalg.norm(W, axis=(1, 2), keepdims=True)
    cosine = (W * axis).sum((1, 2), keepdims=True)
    across = W - cosine * axis
    across /= np.maximum(np.linalg.norm(across, axis=(1, 2), keepdims=True), 1e-300)
    cosine = np.maximum(cosine, 1 - opening)
    return cosine * axis + np.sqrt(1 - cosine**2) * across


@pytest.mark.parametrize(("seed", "shape"), ((0, (2, 2)), (1, (3, 1)), (2, (2, 2)), (3, (3, 1))))
@pytest.mark.parametrize("opening", (0.3, 0.02))
def test_no_matrix_drawn_from_the_cone_is_better(seed, shape, opening):
    rng = np.random.default_rng(seed)
    keys, queries = rng.normal(size=(1, 3, shape[0])), rng.normal(size=(1, 1, shape[1]))
    tokens = Tokens(keys, queries, rng.choice([-1.0, 1], size=(1, 1)))
    head, direction = LinearHead(rng.normal(size=shape[0])), rng.normal(size=shape)
    if shape == (2, 2):  # scores depend on two of the four coordinates, and direction on no other
        direction = direction @ queries[0, 0][:, None] * queries[0]
    axis = direction / np.linalg.norm(direction)
    run = local_path(tokens, head, direction, opening, radii=(2, 6, 15))
    for number, radius in enumerate((2, 6, 15)):
        own = run.data["W"].values[0, 0, number]
        np.testing.assert_allclose(np.linalg.norm(own), radius, rtol=1e-12)
        assert (own * axis).sum() >= radius * (1 - opening) * (1 - 1e-12)
        best, lowest = axis, np.inf
        for spread in (1, 0.3, 0.1, 0.03, 0.01, 0.003):
            noise = spread * np.sqrt(opening) * rng.normal(size=(8000, *shape))
            drawn = radius * into_cone(best + noise, axis, opening)
            values = loss_of(tokens, head, drawn)
            if values.min() < lowest:
                best, lowest = drawn[values.argmin()] / radius, values.min()
        found = loss_of(tokens, head, own[None])[0]
        assert found <= lowest + 1e-10
        np.testing.assert_allclose(found, lowest, rtol=1e-3)
        np.testing.assert_allclose(found, run.data["loss"].values[0, 0, number], rtol=1e-12)
    assert (run.data["optimality"] < 1e-9).all()


def test_a_batch_and_cones_that_leave_no_choice():
    keys = np.array([[[[1.0], [0], [-2]]], [[[1.0], [1], [1]]]])
    tokens = Tokens(keys, np.ones((2, 1, 1)), np.ones((2, 1)))
    run = local_path(tokens, LinearHead([1]), np.array([[[-1.0]], [[1]]]), 0.5, radii=(1, 10))
    np.testing.assert_array_equal(run.W()[:, 0, 0, 0], [-10, 10])
    np.testing.assert_array_equal(run.data["angle"], 0)
    weights = np.exp([-1.0, 0, 2]) / np.exp([-1.0, 0, 2]).sum()
    deficit = np.log1p(np.exp(2)) - np.log1p(np.exp(-weights @ [1, 0, -2]))
    np.testing.assert_allclose(run.data["log_deficit"].values[0, 0, 0], np.log(deficit))
    np.testing.assert_array_equal(run.data["log_excess"].values[1], -np.inf)


@pytest.mark.parametrize(
    ("changed", "argument"),
    (
        ({"opening": 0}, "opening"),
        ({"opening": 1}, "opening"),
        ({"direction": [0.0, 0.0, 0.0]}, "direction"),
        ({"direction": [1.0, 0.0]}, "direction"),
        ({"direction": [np.nan, 1.0, 0.0]}, "direction"),
        ({"parameterization": "KQ"}, "parameterization"),
        ({"parameterization": "(v, p)"}, "parameterization"),
        ({"loss": "squared"}, "loss"),
        ({"radii": [2, 1]}, "radii"),
        ({"starts": -1}, "starts"),
    ),
)
def test_what_cannot_be_used_is_named_before_any_work(changed, argument):
    arguments = {"direction": [1.0, 0.0, 0.0], "opening": 0.1, "parameterization": "p", **changed}
    with pytest.raises(InvalidInputError, match=f"^{argument}: "):
        local_path(TOKENS, HEAD, arguments.pop("direction"), arguments.pop("opening"), **arguments)
