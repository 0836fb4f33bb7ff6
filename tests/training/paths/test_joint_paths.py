"""Paths of a prompt vector and a head together, against nested searches over both angles."""

import numpy as np
import prompt_examples as examples
import pytest

from attractor.attention import LinearHead
from attractor.support.errors import TrialStatus
from attractor.tokens import Tokens
from attractor.training import regularization_path

KEYS = np.stack([examples.NOT_TIGHT, examples.TIGHT]).astype(float)
RADIUS = 14


def joint_path(radii, head_radius, keys=KEYS):
    labels = np.stack([examples.JOINT_LABELS] * 2)
    tokens = Tokens(keys, np.ones((2, 3, 1)), labels)
    return regularization_path(
        tokens, LinearHead([0, 1]), radii=radii, parameterization="(v, p)", head_radius=head_radius
    )


def log_loss(keys, p, v):
    logits = np.einsum("ntd,...d->...nt", keys, p)
    weights = np.exp(logits - np.logaddexp.reduce(logits, -1)[..., None])
    values = np.einsum("ntd,...d->...nt", keys, v)
    margins = examples.JOINT_LABELS * (weights * values).sum(-1)
    logs = np.where(margins > 30, -margins, np.log(np.logaddexp(0, -np.minimum(margins, 40))))
    return np.logaddexp.reduce(logs, -1) - np.log(3)


def lowest_slope(keys, radius, head_radius):
    """The slope ``p_2 / p_1`` of the lowest loss: for each angle of p the best angle of v."""

    def at(angle, head_angle):
        p, v = ([np.cos(a), np.sin(a)] for a in (angle, head_angle))
        return log_loss(keys, radius * np.stack(p, -1), head_radius * np.stack(v, -1))

    def best_head(angles):
        turns = np.linspace(0, 2 * np.pi, 181)
        start = turns[at(angles[:, None], turns[None]).argmin(1)]
        low, high = start - turns[1], start + turns[1]
        for _ in range(70):  # golden sections
            left, right = high - (high - low) * 0.6180339887, low + (high - low) * 0.6180339887
            lower = at(angles, left) < at(angles, right)
            low, high = np.where(lower, low, left), np.where(lower, right, high)
        return at(angles, (low + high) / 2)

    angles, width = np.linspace(0, 2 * np.pi, 361), 2 * np.pi / 360
    for _ in range(5):
        angle = angles[best_head(angles).argmin()]
        angles, width = np.linspace(angle - width, angle + width, 41), width / 10
    return np.tan(angle)


@pytest.mark.long
@pytest.mark.parametrize(
    ("ratio", "published"),
    (
        (lambda R: R / 2, (0.1189, 0.2292)),
        pytest.param(lambda R: R, (0.0345, 0.2277), marks=pytest.mark.slow),
        pytest.param(lambda R: 10 * R, (0.0, 0.2263), marks=pytest.mark.slow),
        (np.exp, (0.0, 0.2618)),
    ),
)
def test_the_direction_depends_on_the_order_of_the_limits(ratio, published):
    run = joint_path([2, 5, RADIUS], ratio)
    p, v = (run.data[name].values[:, 0, -1] for name in ("p", "head_weight"))
    slopes = p[:, 1] / p[:, 0]
    np.testing.assert_allclose(slopes, published, atol=6e-5)
    for keys, slope in zip(KEYS, slopes, strict=True):
        expected = lowest_slope(keys, RADIUS, ratio(float(RADIUS)))
        np.testing.assert_allclose(slope, expected, atol=2e-5)
    np.testing.assert_allclose(v[0] / np.linalg.norm(v[0]), [0, 1], atol=1e-3)
    np.testing.assert_allclose(np.linalg.norm(v, axis=-1), ratio(float(RADIUS)))
    assert (run.data["optimality"] < 1e-8).all()
    assert (np.diff(run.data["log_loss"], axis=-1) < 0).all()


def test_where_rounding_hides_the_minimum_it_is_said():
    run = joint_path([14, 60, 400], np.exp)
    assert (run.data["optimality"].values[..., 0] < 1e-8).all()
    assert (run.data["optimality"].values[..., 1:] > 1e-4).all()
    np.testing.assert_array_equal(run.data["status"], TrialStatus.UNCONVERGED)


def test_no_pair_of_directions_is_lower():
    # In these data minima of several selections compete.
    keys = np.random.default_rng(2).normal(size=(40, 3, 2, 2))[[18, 33]]
    run = joint_path([2, 5, RADIUS], lambda R: R, keys)
    angles = np.linspace(0, 2 * np.pi, 181)
    circle = np.stack([np.cos(angles), np.sin(angles)], axis=-1)
    for instance in range(2):
        for number, radius in enumerate((2, 5, RADIUS)):
            grid = log_loss(keys[instance], radius * circle[:, None], radius * circle[None])
            assert run.data["log_loss"].values[instance, 0, number] <= grid.min() + 1e-9
