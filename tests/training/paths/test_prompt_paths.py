"""Paths of a prompt vector in the plane, against minima looked for on a grid of angles."""

import numpy as np
import prompt_examples as examples
import pytest

from attractor.attention import ConcaveHead, LinearHead
from attractor.margin import MarginProblem, solve, solve_several
from attractor.margin.selection import optimal_tokens
from attractor.tokens import Tokens
from attractor.training import regularization_path

pytestmark = pytest.mark.long

RADII = (1, 2, 5, 10, 20, 50, 100)
ONE = (examples.ONE_SEQUENCE, examples.EQUAL_SCORES)
OTHER = (examples.ONE_SEQUENCE, examples.UNEQUAL_SCORES)
THREE = (examples.THREE_SEQUENCES, examples.THREE_SCORES)
PUBLISHED = (
    (0.93690, 0.95677, 0.98248, 0.99406, 0.998815, 0.9999863, 1 - 1e-9),
    (0.96954, 0.99987, 0.99906, 0.99963, 0.999942, 0.9999998, 1),
    (0.95607, 0.97466, 0.99338, 0.99889, 1 - 5.5e-7, 0.999604, 0.999843),
)


def log_excess(keys, scores, p):
    """Logarithm of the logistic loss above that of the best tokens, of points ``(..., 2)``."""
    logits = np.einsum("ntd,...d->...nt", keys, p)
    best = scores.max(-1, keepdims=True)
    with np.errstate(divide="ignore"):
        log_gap = np.log(best - scores)
    log_delta = np.logaddexp.reduce(logits + log_gap, -1) - np.logaddexp.reduce(logits, -1)
    slope = -np.logaddexp(0, best[:, 0])
    rise = np.log(np.log1p(np.expm1(np.exp(log_delta)) * np.exp(slope)))
    return np.logaddexp.reduce(rise, -1) - np.log(rise.shape[-1])


def on_circle(radius, angles):
    return radius * np.stack([np.cos(angles), np.sin(angles)], axis=-1)


def lowest_on_circle(keys, scores, radius):
    """The lowest of 2,000 angles, then of ever finer ones around it."""
    angles, width = np.linspace(0, 2 * np.pi, 2001), 2 * np.pi / 2000
    for _ in range(9):
        values = log_excess(keys, scores, on_circle(radius, angles))
        angle = angles[values.argmin()]
        angles, width = np.linspace(angle - width, angle + width, 41), width / 10
    return values.min(), angle


def repeated(keys, scores):
    """Three sequences of seven tokens, by repetition and masks: the mean loss is the same."""
    rows, length = 3 // len(keys), keys.shape[1]
    keys = np.pad(np.tile(keys, (rows, 1, 1)), ((0, 0), (0, 7 - length), (0, 0)))
    scores = np.pad(np.tile(scores, (rows, 1)), ((0, 0), (0, 7 - length)))
    return keys, scores, np.arange(7) < np.full((3, 1), length)


def test_the_published_table_and_a_grid_of_angles():
    every = [repeated(*data) for data in (ONE, OTHER, THREE)]
    keys, scores, mask = map(np.stack, zip(*every, strict=True))
    tokens = Tokens(keys, np.ones((3, 3, 1)), np.ones((3, 3)), mask, scores[..., None])
    head = LinearHead([1])
    run = regularization_path(tokens, head, radii=RADII, parameterization="p")
    solution = solve(MarginProblem.from_selection(tokens, optimal_tokens(tokens, head)))
    for instance, (keys, scores) in enumerate((ONE, OTHER, THREE)):
        best = solution.W[instance, :, 0] / np.linalg.norm(solution.W[instance])
        p, excess = (run.data[name].values[instance, 0] for name in ("p", "log_excess"))
        cosine = p @ best / np.linalg.norm(p, axis=-1)
        np.testing.assert_allclose(cosine, PUBLISHED[instance], atol=6e-6)
        for number, radius in enumerate(RADII):
            lowest, angle = lowest_on_circle(keys, scores, radius)
            np.testing.assert_allclose(excess[number], lowest, rtol=1e-12)
            np.testing.assert_allclose(cosine[number], on_circle(1, angle) @ best, atol=3e-8)


def test_no_point_of_the_disk_is_lower():
    # In these data minima of several selections compete, inside the disk and on its edge.
    generator = np.random.default_rng(7)
    keys, scores = generator.normal(size=(8, 3, 7, 2)), generator.normal(size=(8, 3, 7))
    tokens = Tokens(keys, np.ones((8, 3, 1)), np.ones((8, 3)), values=scores[..., None])
    radii = (1, 4, 15, 60)
    run = regularization_path(tokens, LinearHead([1]), radii=radii, parameterization="p", starts=1)
    angles, sizes = np.linspace(0, 2 * np.pi, 361), np.linspace(0, 1, 41)[1:, None]
    for instance in range(8):
        for number, radius in enumerate(radii):
            disk = radius * sizes[..., None] * on_circle(1, angles)
            lowest = log_excess(keys[instance], scores[instance], disk).min()
            assert run.data["log_excess"].values[instance, 0, number] <= lowest + 1e-9


def test_a_head_that_is_not_linear_leads_to_one_of_the_best_tokens():
    """Two best tokens a row, of score 1, under h(u) = 1.3 u - 0.3 u^2; on the circle by hand."""
    generator = np.random.default_rng(0)
    keys = generator.normal(size=(2, 5, 2)) + np.array(
        [[2, 0], [0, 2], [-1, -1], [-1, -1], [-1, -1]]
    )
    scores = np.where(np.arange(5) < 2, 1.0, 0.5 * generator.random((2, 5)))
    tokens = Tokens(keys, np.ones((2, 1)), np.ones(2), values=scores[..., None])
    radii = (2.0, 10.0, 100.0)
    run = regularization_path(tokens, ConcaveHead([1.3], 0.3), radii=radii, parameterization="p")
    assert (run.data["optimality"] < 1e-12).all()

    def excess(p):
        logits = np.einsum("ntd,ad->ant", keys, p)
        with np.errstate(divide="ignore"):
            short = np.logaddexp.reduce(logits + np.log(1 - scores), -1)
        short -= np.logaddexp.reduce(logits, -1)
        log_delta = short + np.log(1 - 0.3 * -np.expm1(short))  # h(1) - h(u) = (1 - u)(1 - .3 u)
        delta = np.exp(log_delta)
        grown = np.where(delta < 1e-12, log_delta, np.log(np.expm1(delta)))
        rise = grown - np.logaddexp(0, 1.0)
        rise = np.where(rise < -25, rise, np.log(np.log1p(np.exp(rise))))
        return np.logaddexp.reduce(rise, -1) - np.log(2)

    angles = np.linspace(0, 2 * np.pi, 20_001)
    for number, radius in enumerate(radii):
        lowest = excess(on_circle(radius, angles)).min()
        found = float(run.data["log_excess"][0, 0, number])
        assert lowest - 1e-3 <= found <= lowest + 1e-9
    best = solve_several(tokens, optimal_tokens(tokens, LinearHead([1.0]))).solution.W[:, 0]
    p = run.data["p"].values[0, 0, -1]
    assert p @ best / (np.linalg.norm(p) * np.linalg.norm(best)) > 0.99999
