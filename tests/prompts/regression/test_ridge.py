import numpy as np
import pytest

from attractor.prompts.regression import RegressionTask, linear_attention_optimum, ridge_risk
from attractor.support.errors import InvalidInputError

LENGTHS = np.array([10, 50, 100, 1000])


@pytest.mark.parametrize(
    ("task", "errors"),
    [
        (RegressionTask.official(as_run=True), [0.2920, 0.1326, 0.1158, 0.1015]),
        (RegressionTask.official(), [0.1886, 0.1111, 0.1053, 0.1005]),
        pytest.param(
            RegressionTask(np.eye(5), None, 0.2, 0.1, 0.1),
            [0.1960, 0.1112, 0.1053, 0.1005],
            marks=pytest.mark.slow,
        ),
    ],
)
def test_risk_on_the_official_task(task, errors):
    found = ridge_risk(task, LENGTHS)
    np.testing.assert_allclose(task.mean_squared_error(found.risk), errors, atol=5e-4)
    assert (2 * found.standard_error < 3e-4).all()
    assert found.penalty == pytest.approx(0.5)


@pytest.mark.parametrize("penalty", [None, 2.0])
@pytest.mark.parametrize("length", [2, 6])
def test_risk_against_simulated_regressions(simulate, length, penalty):
    task = RegressionTask([[0.9, 0.3, 0], [0.3, 0.6, 0], [0, 0, 1]], np.eye(3), 0.7, 0.4)
    found = ridge_risk(task, length, penalty=penalty)
    simulation = simulate(task, length, 20_000, seed=length)
    inputs, labels = simulation.tokens[..., :-1], simulation.tokens[..., -1]
    gram = np.swapaxes(inputs, 1, 2) @ inputs + found.penalty * np.eye(3)
    moments = np.einsum("nli,nl->ni", inputs, labels)
    weights = np.linalg.solve(gram, moments[..., None])[..., 0]
    predictions = np.sum(weights * simulation.queries[:, :-1], axis=1)
    assert simulation.agrees(predictions, found.risk)
    assert found.risk < linear_attention_optimum(task, length).risk


def test_without_noise_only_directions_not_seen_are_missed():
    found = ridge_risk(RegressionTask(np.eye(5)), np.array([1, 3, 4, 5, 6]), samples=500)
    np.testing.assert_allclose(found.risk, [2, 1, 0.5, 0, 0], atol=1e-12)


def test_the_best_penalty_is_best_and_results_repeat():
    task = RegressionTask.official()
    options = {"seed": 3, "samples": 2_000}
    best = ridge_risk(task, 8, **options)
    assert best == ridge_risk(task, 8, **options)
    assert best.risk != ridge_risk(task, 8, seed=4, samples=2_000).risk
    # the same inputs: the comparison has no noise of its own
    assert best.risk < min(ridge_risk(task, 8, penalty=p, **options).risk for p in (0.3, 0.8))


@pytest.mark.parametrize(
    "arguments", [{"length": 0}, {"length": 2.5}, {"penalty": 0}, {"samples": 1}]
)
def test_bad_input(arguments):
    with pytest.raises(InvalidInputError, match=next(iter(arguments))):
        ridge_risk(RegressionTask(np.eye(2)), **{"length": 3, **arguments})
