"""What is measured of decoders, and the published comparison of optimizers."""

import numpy as np
import pytest
from runs import LINEAR, embedded_contexts, linear_trajectory

from attractor.corpora.linear import (
    EmbeddedContexts,
    decoder_problem,
    finite_part,
    measure_linear,
    random_contexts,
    support_projection,
    train_linear,
)
from attractor.margin import solve
from attractor.support.errors import InvalidInputError
from attractor.training.optimizers import adam, gradient_descent, normalized_gradient_descent

SMALL = embedded_contexts()
NGD = normalized_gradient_descent(0.1)


def cosine(one, other):
    return (one * other).sum() / np.linalg.norm(one) / np.linalg.norm(other)


def test_measures_are_those_of_their_definitions():
    run = linear_trajectory()
    solution, finite = solve(decoder_problem(SMALL)), finite_part(SMALL)
    found = measure_linear(run, solution)
    for i, seed in np.ndindex(3, 3):
        W = run.W()[i, seed]
        at = found.isel(instance=i, seed=seed, step=-1)
        part = support_projection(SMALL[i], W)
        direction, fixed = solution.W[i], finite[i]
        assert float(at["correlation"]) == pytest.approx(cosine(W, direction))
        assert float(at["correlation_without_finite_part"]) == pytest.approx(
            cosine(W - fixed, direction)
        )
        assert float(at["projected_correlation"]) == pytest.approx(cosine(W - part, direction))
        error = np.linalg.norm(part - fixed)
        assert float(at["finite_error"]) == pytest.approx(error)
        relative = float(at["relative_finite_error"])
        assert relative == pytest.approx(error / np.linalg.norm(fixed))
        assert float(at["excess_loss"]) == float(run.data["excess_loss"][i, seed, -1])
    last = train_linear(SMALL, NGD, seeds=3, seed=1, weights="last", **LINEAR)
    end = measure_linear(last, solution.W, finite)
    assert "step" not in end.dims
    for name in found:
        np.testing.assert_allclose(end[name], found[name].isel(step=-1))
    alone = measure_linear(
        train_linear(SMALL[1], NGD, steps=7, record=[0, 7]), solution[1], finite[1]
    )
    assert np.isnan(alone["correlation"].isel(step=0)).all()  # it starts at zero
    assert (alone["correlation"].isel(step=1) > 0).all()


def test_without_a_finite_part_there_is_no_relative_error():
    contexts = EmbeddedContexts.one_hot(np.eye(5, 6), [0, 1, 2, 3, 0], 4)
    run = train_linear(contexts, NGD, steps=7, record=[0, 7])
    found = measure_linear(run, solve(decoder_problem(contexts))).isel(step=-1)
    assert found["finite_error"].item() == 0 and np.isnan(found["relative_finite_error"]).all()
    whole, without = found["correlation"].item(), found["correlation_without_finite_part"].item()
    assert whole == pytest.approx(without, abs=1e-14) and 0.9 < whole <= 1
    with pytest.raises(InvalidInputError, match=r"^solution: "):
        measure_linear(run, np.zeros((6, 4)))


OPTIMIZERS = {
    "gradient descent": gradient_descent(0.5),
    "normalized": normalized_gradient_descent(0.01),
    "adam": adam(0.01, 0.9, 0.99),
}


def overparameterized(name, instances, steps):
    contexts = random_contexts(instances)
    run = train_linear(
        contexts, OPTIMIZERS[name], steps=steps, initial_scale=60**-0.5, record=[0, steps]
    )
    found = measure_linear(run, solve(decoder_problem(contexts)))
    return found.isel(step=-1, seed=0), found.isel(step=0, seed=0)


@pytest.mark.long
def test_overparameterized_decoders_turn_to_the_margin_solution():
    end, start = overparameterized("gradient descent", 1, 300)
    assert start["correlation"].item() < 0.2
    assert end["correlation_without_finite_part"].item() > end["correlation"].item() > 0.6
    assert end["excess_loss"].item() < 0.2 < start["excess_loss"].item()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "norm", "correlation", "without", "excess", "finite"),
    [
        ("gradient descent", 15.5, 0.920, 0.946, 1.8e-3, 0.088),
        ("normalized", 20.0, 0.948, 0.965, 3.7e-4, 0.016),
    ],
)
def test_overparameterized_decoders_end_where_an_independent_run_did(
    name, norm, correlation, without, excess, finite, optimized
):
    """Five data sets against one of another implementation: means, of errors geometric ones."""
    end, _ = overparameterized(name, 5, 10_000)
    assert float(end["norm"].mean()) == pytest.approx(norm, rel=0.05)
    assert float(end["correlation"].mean()) == pytest.approx(correlation, abs=0.03)
    assert float(end["correlation_without_finite_part"].mean()) == pytest.approx(without, abs=0.03)
    for measured, expected in (("excess_loss", excess), ("relative_finite_error", finite)):
        assert 0.5 < float(np.exp(np.log(end[measured]).mean())) / expected < 2


@pytest.mark.slow
def test_adam_gets_farthest_in_the_same_steps(optimized):
    """It descends in another norm, so that its direction is not the nearest."""
    end, _ = overparameterized("adam", 5, 10_000)
    assert float(end["excess_loss"].max()) < 1e-4 and float(end["norm"].min()) > 25
    assert 0.93 < float(end["correlation"].min()) and float(end["correlation"].max()) < 0.96
