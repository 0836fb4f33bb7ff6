"""What the figures of in-context regression and of finite prompts are computed with."""

import numpy as np
import pytest

from attractor.papers import get_figure
from attractor.papers.drawing import compute
from attractor.papers.large_prompt.regimes import (
    TARGET,
    covariances,
    infinite_gradient,
    prompts,
    random_head,
    risk_gradient,
    softmax_mean,
)


def test_the_head_and_the_covariances_are_scaled_as_said():
    scores, values = random_head()
    assert np.linalg.norm(scores, 2) == pytest.approx(0.22)
    assert np.linalg.norm(values, 2) == pytest.approx(0.75)
    rotated = covariances()[2]
    np.testing.assert_allclose(np.linalg.eigvalsh(rotated), np.geomspace(0.25, 2, 4), rtol=1e-12)


def test_gradients_from_prompts_agree_with_differences(rng):
    covariance = covariances()[1]
    tokens, queries = prompts(rng, (5,), 7, covariance)
    scores, change = rng.standard_normal((2, 4, 4))

    def risk(scores):
        mean, _ = softmax_mean(tokens, (queries @ scores.T)[:, None])
        return np.mean(np.sum((mean[:, 0] - TARGET * queries) ** 2, axis=-1))

    step = 1e-5
    slope = (risk(scores + step * change) - risk(scores - step * change)) / (2 * step)
    found = np.sum(risk_gradient(scores, tokens, queries) * change)
    assert found == pytest.approx(slope, rel=1e-8)
    both = risk_gradient(np.stack([scores] * 2), np.stack([tokens] * 2), np.stack([queries] * 2))
    np.testing.assert_allclose(both[1], risk_gradient(scores, tokens, queries), rtol=1e-12)


def test_gradients_of_long_prompts_are_those_of_infinite_ones(rng):
    covariance, scores = covariances()[2], random_head()[0]
    tokens, queries = prompts(rng, (4000,), 400, covariance)
    exact = infinite_gradient(scores, covariance)
    off = np.linalg.norm(risk_gradient(scores, tokens, queries) - exact)
    assert off < 0.05 * np.linalg.norm(exact)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["trained-models", "risk"])
def test_shows_its_conclusion_at_paper_size(name):
    figure = get_figure(f"large-prompt/{name}")
    data, _ = compute(figure, size="paper")
    assert all(reading.agrees for reading in figure.readings(data))
