"""Gradient flow against other solvers, quadrature and descent; one shape compiles once."""

import mpmath
import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.optimize import brentq

from attractor.attention import LinearHead
from attractor.support.errors import InvalidInputError, TrialStatus
from attractor.tokens import Tokens
from attractor.training import Trajectory, gradient_descent, normalized_gradient_descent, train
from attractor.training.flow import gradient_flow

TIMES = [0.0, 0.1, 1.0, 10.0, 100.0, 1000.0]
RADII = [0.5, 1.0, 5.0, 20.0, 200.0]


def random_tokens(rng, instances=2):
    tokens = Tokens(
        rng.normal(size=(instances, 3, 3, 3)),
        rng.normal(size=(instances, 3, 2)),
        np.sign(rng.normal(size=(instances, 3))),
    )
    return tokens, LinearHead(rng.normal(size=(instances, 3)))


def one_direction():
    """One row chooses between e_1 and 0, the others have nothing to choose."""
    keys, queries = np.zeros((3, 3, 3)), np.zeros((3, 2))
    keys[0, 0, 0], queries[:, 0] = 1.0, 1.0
    mask = np.zeros((3, 3), bool)
    mask[0, :2] = mask[1:, 0] = True
    return Tokens(keys, queries, np.ones(3), mask), LinearHead([1.0, 0.0, 0.0])


def in_balance():
    """Two rows pull W_11 apart and meet in the middle; the third sends W_21 to infinity."""
    keys, queries = np.zeros((3, 3, 3)), np.zeros((3, 2))
    keys[0, 0, 0], keys[1, 0, 0], keys[2, 0, 1], queries[:, 0] = 1.0, 0.5, 1.0, 1.0
    mask = np.broadcast_to([True, True, False], (3, 3))
    return Tokens(keys, queries, [1.0, -1.0, 1.0], mask), LinearHead([1.0, 1.0, 0.0])


def slope(tokens, head, instance, W):
    """The gradient, written out."""
    total = np.zeros_like(W)
    for row in range(3):
        keys, query = tokens.keys[instance, row], tokens.queries[instance, row, 0]
        label, gain = tokens.labels[instance, row, 0], keys @ head.weight[instance]
        weights = np.exp(keys @ W @ query)
        weights /= weights.sum()
        prediction = weights @ gain
        outer = -label / (1 + np.exp(label * prediction))
        total += outer * np.outer(keys.T @ (weights * (gain - prediction)), query) / 3
    return total


def statuses(run):
    return run.data["status"].to_numpy().ravel().tolist()


@pytest.fixture(scope="module")
def far():
    """Random tokens, their head, and their flow to a norm of 200."""
    tokens, head = random_tokens(np.random.default_rng(20231))
    return tokens, head, gradient_flow(tokens, head, norm=200.0, record=RADII)


@pytest.fixture(scope="module")
def by_radau():
    """The flows of both data sets from given starts, each followed once for both solvers."""
    kept = {}

    def follow(tokens, head, instance, start):
        case = (instance, start.tobytes(), tokens.keys.tobytes(), head.weight.tobytes())
        if case not in kept:
            kept[case] = solve_ivp(
                lambda _, w: -slope(tokens, head, instance, w.reshape(3, 2)).ravel(),
                (0, TIMES[-1]), start.ravel(), method="Radau", rtol=1e-10, atol=1e-12,
                t_eval=TIMES,
            ).y.T.reshape(-1, 3, 2)  # fmt: skip
        return kept[case]

    return follow


@pytest.mark.long
@pytest.mark.parametrize("solver", ["explicit", "implicit"])
def test_the_flow_of_the_matrix_is_that_of_another_solver(rng, solver, by_radau):
    tokens, head = random_tokens(rng)
    run = gradient_flow(tokens, head, time=1000.0, record=TIMES, seeds=2, solver=solver)
    assert run.axis == "time" and statuses(run) == [TrialStatus.TRAINED] * 4
    log_times = np.broadcast_to(np.log(TIMES[1:]), (2, 2, 5))
    np.testing.assert_allclose(run.data["log_time"][..., 1:], log_times, atol=1e-8)
    for instance in range(2):
        W = run.data["W"].to_numpy()[instance, 0]
        error = np.abs(W - by_radau(tokens, head, instance, W[0])).max()
        assert error < (1e-8 if solver == "explicit" else 1e-7)


@pytest.mark.long
def test_the_flow_of_the_factors_is_that_of_another_solver(rng):
    tokens, head = random_tokens(rng)
    run = gradient_flow(tokens, head, time=1000.0, record=TIMES, parameterization="KQ")

    def velocity(_, both):
        K, Q = both[:9].reshape(3, 3), both[9:].reshape(2, 3)
        G = slope(tokens, head, 1, K @ Q.T)
        return -np.concatenate([(G @ Q).ravel(), (G.T @ K).ravel()])

    K, Q = (run.data[name].to_numpy()[1, 0] for name in ("K", "Q"))
    begun = np.concatenate([K[0].ravel(), Q[0].ravel()])
    other = solve_ivp(
        velocity, (0, TIMES[-1]), begun, method="Radau", rtol=1e-10, atol=1e-12, t_eval=TIMES
    )
    flat = np.concatenate([K.reshape(6, -1), Q.reshape(6, -1)], axis=1)
    np.testing.assert_allclose(flat, other.y.T, atol=1e-8)


@pytest.mark.long
def test_time_is_right_far_past_saturation():
    tokens, head = one_direction()
    start = np.zeros((3, 2))
    run = gradient_flow(tokens, head, norm=10_000.0, record=[1, 20, 200, 2000], initial=start)
    assert run.axis == "radius" and statuses(run) == [TrialStatus.TRAINED]
    np.testing.assert_allclose(run.data["norm"][0, 0], run.steps, rtol=1e-9)
    mpmath.mp.dps = 30

    def time_per_length(w):
        prediction = 1 / (1 + mpmath.exp(-w))
        return 3 * (1 + mpmath.exp(prediction)) * (2 + 2 * mpmath.cosh(w))

    for radius, log_time in zip(run.steps, run.data["log_time"].to_numpy()[0, 0], strict=True):
        last = max(0, radius - 80)  # what comes before is exp(-80) of the whole
        pieces = mpmath.linspace(last, radius, 9)
        exact = mpmath.log(mpmath.quad(time_per_length, pieces))
        assert abs(log_time - float(exact)) < 1e-7 * max(1, radius / 20)


@pytest.mark.slow
def test_small_steps_of_gradient_descent_follow_the_flow(rng):
    tokens, head = random_tokens(rng)
    run = gradient_flow(tokens, head, time=20.0, record=[1, 2, 5, 10])
    errors = []
    for rate in (0.02, 0.01):
        steps = round(20 / rate)
        descent = train(tokens, head, gradient_descent(rate), steps=steps, record=[steps])
        errors.append(np.abs(descent.W() - run.W()).max())
    assert errors[1] < 1e-3 and errors[1] / errors[0] == pytest.approx(0.5, abs=0.1)


@pytest.mark.long
def test_small_normalized_steps_follow_it_far_past_saturation(far):
    tokens, head, run = far
    recorded = range(0, 8001, 50)
    step = normalized_gradient_descent(0.005)
    descent = train(tokens, head, step, steps=8000, record=recorded)
    for instance in range(2):
        norms = descent.data["norm"].to_numpy()[instance, 0]
        assert norms[-1] > RADII[3]
        for position, radius in enumerate(RADII[2:4], 2):
            near = np.abs(norms - radius).argmin()
            W = descent.data["W"].to_numpy()[instance, 0, near]
            exact = run.data["W"].to_numpy()[instance, 0, position]
            direction, other = (one / np.linalg.norm(one) for one in (W, exact))
            assert np.abs(direction - other).max() < 0.02
            late = descent.data["log_time"].to_numpy()[instance, 0, near]
            assert abs(late - run.data["log_time"].to_numpy()[instance, 0, position]) < 0.5


@pytest.mark.long
def test_factors_stay_in_balance_and_the_monitor_can_tell(rng):
    tokens, head = random_tokens(rng)
    given = {"norm": 50.0, "record": RADII[:4], "parameterization": "KQ"}
    fine = gradient_flow(tokens, head, **given)
    coarse = gradient_flow(tokens, head, tolerance=1e-3, **given)
    drift = fine.data["conserved_drift"].to_numpy()
    assert drift.max() < 1e-8
    assert coarse.data["conserved_drift"].max() > 100 * drift.max()
    K, Q = (fine.data[name].to_numpy()[:, 0] for name in ("K", "Q"))
    balance = K.mT @ K - Q.mT @ Q
    np.testing.assert_allclose(balance[:, -1], balance[:, 0], atol=1e-7)
    nuclear = np.linalg.norm(fine.data["W"].to_numpy()[:, 0], "nuc", axis=(-2, -1))
    np.testing.assert_allclose(nuclear[:, -1], 50, rtol=1e-9)


def test_nothing_leaves_the_span_of_token_differences(far):
    tokens, head, everything = far
    mask = np.broadcast_to([True, False, True], tokens.mask.shape)
    fewer = Tokens(tokens.keys, tokens.queries, tokens.labels, mask)
    run = gradient_flow(fewer, head, norm=200.0, record=RADII)
    assert run.data["conserved_drift"].max() < 1e-12
    moved = run.W()[0, 0] - run.W(0.5)[0, 0]
    differences = tokens.keys[0, :, 0] - tokens.keys[0, :, 2]
    span = np.einsum("nd,ne->nde", differences, tokens.queries[0, :, 0]).reshape(3, -1).T
    left = moved.ravel() - span @ np.linalg.lstsq(span, moved.ravel(), rcond=None)[0]
    assert np.abs(left).max() < 1e-10 * np.linalg.norm(moved)
    assert everything.data["conserved_drift"].isnull().all()


@pytest.mark.slow
def test_whichever_of_norm_and_time_comes_first(rng):
    tokens, head = random_tokens(rng)
    start = np.stack([np.zeros((3, 2)), rng.normal(size=(3, 2))])[None].repeat(2, 0)
    given = {"log_time": 200.0, "record": [0, 10, 20, 50], "seeds": 2, "initial": start}
    free = gradient_flow(tokens, head, **given)
    held = gradient_flow(tokens, head, norm=20.0, **given)
    assert free.axis == "logarithmic_time"
    late = free.data["norm"].to_numpy()[:, :, -1] > 20
    assert late.any()
    expected = np.where(late, TrialStatus.STOPPED, TrialStatus.TRAINED)
    np.testing.assert_array_equal(held.data["status"], expected)
    np.testing.assert_allclose(held.data["norm"].to_numpy()[:, :, -1][late], 20, rtol=1e-9)
    before = held.data["log_time"].to_numpy() < held.steps - 1e-6
    same = ~before[..., None, None]
    difference = held.data["W"].to_numpy() - free.data["W"].to_numpy()
    assert np.abs(difference * same).max() < 1e-6 and before.any()


def test_a_trial_gives_the_same_bits_alone(rng):
    tokens, head = random_tokens(rng, instances=3)
    given = {"norm": 50.0, "record": RADII[:4]}
    together = gradient_flow(tokens, head, seeds=3, **given)
    alone = gradient_flow(tokens[1:2], LinearHead(head.weight[1:2]), seed=2, **given)
    np.testing.assert_array_equal(alone.data["W"][0, 0], together.data["W"][1, 2])
    np.testing.assert_array_equal(alone.data["log_time"][0, 0], together.data["log_time"][1, 2])


def test_rescaled_data_have_a_rescaled_flow(rng):
    tokens, head = random_tokens(rng)
    start, scale = rng.normal(size=(3, 2)), 1024.0
    run = gradient_flow(tokens, head, time=1000.0, record=TIMES, initial=start)
    larger = Tokens(tokens.keys * scale, tokens.queries, tokens.labels, values=tokens.keys)
    times, start = np.divide(TIMES, scale**2), start / scale
    other = gradient_flow(larger, head, time=times[-1], record=times, initial=start)
    np.testing.assert_allclose(other.W() * scale, run.W(), rtol=1e-9)


@pytest.mark.long
def test_rows_in_balance_are_stiff_and_do_not_stop_the_others():
    tokens, head = in_balance()
    start = np.zeros((3, 2))
    run = gradient_flow(tokens, head, log_time=25.0, record=[0, 5, 10, 20], initial=start)
    assert statuses(run) == [TrialStatus.TRAINED]

    def pull(w):
        def row(size, label):
            weight = 1 / (1 + np.exp(-size * w))
            gain = label * size**2 * weight * (1 - weight)
            return gain / (1 + np.exp(label * size * weight))

        return row(1.0, 1.0) + row(0.5, -1.0)

    assert run.W()[0, 0, 0, 0] == pytest.approx(brentq(pull, 1, 4), abs=1e-7)


@pytest.mark.slow
def test_rows_in_balance_end_where_their_gradient_is_lost_in_rounding():
    tokens, head = in_balance()
    far = gradient_flow(tokens, head, norm=1000.0, record=RADII, initial=np.zeros((3, 2)))
    assert statuses(far)[0] in (TrialStatus.BELOW_ROUNDING, TrialStatus.OUT_OF_STEPS)
    assert 25 < far.data["log_time"][0, 0, -1] < 40


@pytest.mark.long
def test_a_trial_at_rest_and_one_that_begins_beyond_the_norm():
    tokens, head = one_direction()
    still = Tokens(
        np.ones((2, 3, 3, 3)) * [[[[1.0]]], [[[1.0]]]], np.ones((2, 3, 2)), np.ones((2, 3))
    )
    run = gradient_flow(still, head, norm=200.0, record=RADII, initial=np.eye(3, 2))
    assert statuses(run) == [TrialStatus.STATIONARY] * 2
    np.testing.assert_array_equal(run.W()[0, 0], np.eye(3, 2))
    far = gradient_flow(tokens, head, norm=200.0, record=RADII, initial=np.full((3, 2), 100.0))
    assert statuses(far) == [TrialStatus.TRAINED]
    np.testing.assert_array_equal(far.data["W"][0, 0, -1], np.full((3, 2), 100.0))
    assert far.data["steps_taken"][0, 0] == 0


def test_a_trial_out_of_steps_is_frozen_where_it_is(rng):
    tokens, head = random_tokens(rng)
    run = gradient_flow(tokens, head, norm=200.0, record=RADII, max_steps=5)
    assert statuses(run) == [TrialStatus.OUT_OF_STEPS] * 2
    assert (run.data["norm"][:, 0, -1] < 200).all()
    assert np.isfinite(run.W()).all()


def test_it_is_saved_and_read_like_any_trajectory(rng, tmp_path):
    tokens, head = random_tokens(rng)
    run = gradient_flow(tokens, head, norm=20.0, record=RADII[:3], weights="last")
    run.save(tmp_path / "flow.nc")
    again = Trajectory.load(tmp_path / "flow.nc")
    assert again.data.identical(run.data) and again.axis == "radius"
    assert "gradient flow" in str(again) and "last radius" in str(again)


@pytest.mark.long
def test_default_records_begin_at_the_start_and_end_at_the_end(rng):
    tokens, head = random_tokens(rng)
    run = gradient_flow(tokens[:1], LinearHead(head.weight[:1]), time=1e300, weights="last")
    assert run.steps[0] == 0 and run.steps[-1] == 1e300 and len(run.steps) == 61
    assert run.data["log_time"][0, 0, -1] == pytest.approx(np.log(1e300))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"time": None}, "time: the flow has no end"),
        ({"time": -1.0}, "time: -1.0 is not a positive number"),
        ({"time": np.inf}, "time: inf"),
        ({"log_time": 3.0}, "log_time: time is given as well"),
        ({"norm": 0}, "norm: 0 is not"),
        ({"norm": "far"}, "norm: 'far'"),
        ({"record": [1.0, 2000.0]}, "record: it asks for values from 1 to 2000"),
        ({"record": ["start"]}, "record: "),
        ({"tolerance": 0.0}, "tolerance: 0.0"),
        ({"solver": "Euler"}, "solver: 'Euler'"),
        ({"max_steps": 0}, "max_steps: 0"),
        ({"seeds": 0}, "seeds: 0"),
        ({"initial": np.zeros((2, 2))}, "initial: the shape"),
        ({"weights": "some"}, "weights: 'some'"),
        ({"head": LinearHead([1.0])}, "head: it reads"),
    ],
)
def test_arguments_are_refused_by_name(rng, changes, message):
    tokens, head = random_tokens(rng)
    given = {"head": head, "time": 1000.0} | changes
    with pytest.raises(InvalidInputError, match=message):
        gradient_flow(tokens, given.pop("head"), **given)
