"""Schedules: formulas with the rate of every step, at every magnitude, as data of a trial."""

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import optax
import pytest
from sizes import USUAL, drawn

import attractor as at
from attractor.attention.scaled import Scaled
from attractor.support.errors import InvalidInputError, TrialStatus
from attractor.support.precision import double_precision
from attractor.training import Trajectory, optimizers
from attractor.training.loop import BlockTrainer
from attractor.training.optimizers import get_optimizer, named_optimizer, power_decay, until

STEPS, RATE, POWER, OFFSET = 50, 0.1, 0.7, 3.0
ETA = RATE * (1 + np.arange(STEPS) / OFFSET) ** -POWER
FAR = -5000.0


@pytest.fixture(autouse=True)
def double():
    with double_precision():
        yield


def steepest(G, name):
    if name == "l_3":
        power = np.abs(G) ** 0.5
        return np.sign(G) * power / (power**3).sum() ** (1 / 3)
    U, _, V = np.linalg.svd(G, full_matrices=False)
    return U @ V


def newton_schulz(G):
    X = G / np.linalg.norm(G)
    for _ in range(5):
        A = X @ X.T
        X = 3.4445 * X + (-4.775 * A + 2.0315 * A @ A) @ X
    return X


def averages(gradients, beta, mixed=1.0):
    """Moving averages of gradients, from zero."""
    m, found = np.zeros_like(gradients[0]), []
    for G in gradients:
        m = beta * m + mixed * G
        found.append(m)
    return np.array(found)


def adam_steps(gradients):
    t = np.arange(1, STEPS + 1)[:, None, None]
    m = averages(gradients, 0.9, 0.1) / (1 - 0.9**t)
    return m / np.sqrt(averages(gradients**2, 0.999, 0.001) / (1 - 0.999**t))


def lion_steps(gradients):
    m = averages(gradients, 0.99, 0.01)
    before = np.concatenate([np.zeros_like(m[:1]), m[:-1]])
    return np.sign(0.9 * before + 0.1 * gradients)


def muon_steps(gradients):
    t = np.arange(1, STEPS + 1)[:, None, None]
    m = averages(gradients, 0.95, 0.05)
    ahead = 0.95 * m / (1 - 0.95 ** (t + 1)) + 0.05 * gradients / (1 - 0.95**t)
    return np.array([newton_schulz(one) for one in ahead]) * np.sqrt(4 / 3)


def greedy_steps(gradients):
    sizes = np.abs(gradients)
    return np.sign(gradients) * (sizes == sizes.max((1, 2), keepdims=True))


def over_norms(gradients):
    return gradients / np.linalg.norm(gradients, axis=(1, 2), keepdims=True)


def each(function, *settings):
    return lambda gradients: np.array([function(G, *settings) for G in gradients])


FORMULAS = {
    "gradient descent": lambda g: g,
    "normalized gradient descent": over_norms,
    "momentum": lambda g: averages(g, 0.9),
    "normalized momentum": lambda g: over_norms(averages(g, 0.9, 0.1)),
    "sign momentum": lambda g: np.sign(averages(g, 0.9, 0.1)),
    "Lion": lion_steps,
    "Adam": adam_steps,
    "Muon": muon_steps,
    "sign descent": np.sign,
    "greedy coordinate descent": greedy_steps,
    "steepest descent": each(steepest, "l_3"),
    "spectral descent": each(steepest, "spectral"),
    "Polyak step": lambda g: g / (g**2).sum((1, 2), keepdims=True),
    "mirror descent": lambda g: g / (np.abs(g) ** 3).sum((1, 2), keepdims=True) ** (1 / 3),
    "Schatten mirror descent": None,
}
"""What each step is a multiple of, at the learning rate or the scale of that step."""
TRUE_SIZE = {"gradient descent", "momentum"}


def wanted(name, W, gradients):
    """Weights after every step, by a plain loop in float64."""
    if name == "Schatten mirror descent":
        U, s, V = np.linalg.svd(W, full_matrices=False)
        Y, path = U * s**0.5 @ V, []
        for eta, G in zip(ETA, gradients, strict=True):
            Y = Y - eta * G / (np.linalg.svd(G, compute_uv=False) ** 3).sum() ** (1 / 3)
            U, s, V = np.linalg.svd(Y, full_matrices=False)
            path.append(U * s**2 @ V)
        return np.array(path)
    lengths = ETA[:, None, None] * FORMULAS[name](gradients)
    if name == "mirror descent":
        Y = np.sign(W) * np.sqrt(np.abs(W)) - np.cumsum(lengths, 0)
        return np.sign(Y) * Y**2
    return W - np.cumsum(lengths, 0)


def log_norm(q):
    def log(G):
        return mpmath.log(mpmath.fsum(mpmath.mpf(abs(x)) ** q for x in G.ravel().tolist())) / q

    return log


def singular(q):
    return lambda G: log_norm(q)(np.linalg.svd(G, compute_uv=False))


OF_FACTORS = {"composed spectral descent"}
"""Optimizers of keys and queries, which have tests of their own."""
LOG_SIZES = {
    "gradient descent": lambda G: 0,
    "normalized gradient descent": log_norm(2),
    "Polyak step": lambda G: 2 * log_norm(2)(G),
    "sign descent": log_norm(1),
    "greedy coordinate descent": lambda G: mpmath.log(np.abs(G).max()),
    "steepest descent": log_norm(mpmath.mpf(3) / 2),
    "spectral descent": singular(1),
    "mirror descent": log_norm(3),
    "Schatten mirror descent": singular(3),
}
"""Logarithms of what a gradient is divided by; the others have no equivalent raw time."""


def test_every_optimizer_has_a_formula_here():
    of_matrices = {entry.name for entry in optimizers.registered_optimizers()} - OF_FACTORS
    assert of_matrices == {*FORMULAS}


@pytest.mark.parametrize("name", FORMULAS)
def test_steps_are_those_of_a_plain_loop_near_and_far(name):
    rng = np.random.default_rng(5)
    W, gradients = rng.normal(size=(3, 4)), rng.normal(size=(STEPS, 3, 4))
    (entry,) = (one for one in optimizers.registered_optimizers() if one.name == name)
    first = "learning_rate" if entry.takes_learning_rate else "scale"
    fixed = {"geometry": "l_3"} if "geometry" in entry.settings else {}
    optimizer = entry.maker(**{first: power_decay(RATE, POWER, OFFSET)}, **fixed)

    @jax.jit
    def follow(log_scale):
        shape = (3, 4) if optimizer.by_entry else ()
        further = {"log_excess": log_scale} if optimizer.needs else {}

        def one(carry, G):
            parameters, memory = carry
            gradient = {"W": Scaled(G, jnp.full(shape, log_scale))}
            now = optimizer.at_step(memory)
            timed = now.log_time_step
            time = jnp.nan if timed is None else timed(gradient, **further)
            parameters, memory = optimizer.step(gradient, memory, parameters, **further)
            return (parameters, memory), (parameters["W"], time)

        start = {"W": jnp.asarray(W)}
        return jax.lax.scan(one, (start, optimizer.init(start)), jnp.asarray(gradients))

    (_, memory), (near, times) = follow(0.0)
    assert memory.step == STEPS
    expected = wanted(name, W, gradients)
    np.testing.assert_allclose(near, expected, rtol=1e-9, atol=1e-11)
    (_, memory), (far, far_times) = follow(FAR)
    if name in TRUE_SIZE:
        np.testing.assert_array_equal(far, np.broadcast_to(W, far.shape))
    else:
        np.testing.assert_allclose(far, near, rtol=1e-8, atol=1e-9)
    if size := LOG_SIZES.get(name):
        exact = [mpmath.log(eta) - size(G) for eta, G in zip(ETA, gradients, strict=True)]
        np.testing.assert_allclose(times, [float(one) for one in exact], rtol=1e-12, atol=1e-13)
        moved = 0 if name == "gradient descent" else FAR
        np.testing.assert_allclose(far_times, times - moved, rtol=1e-14)
    else:
        assert np.isnan(times).all()


@pytest.fixture(scope="module")
def data():
    return drawn(USUAL)


def ngd(*numbers, **settings):
    rate = power_decay(*numbers) if len(numbers) > 1 else numbers[0]
    return at.normalized_gradient_descent(rate, **settings)


@pytest.mark.long
def test_rates_and_exponents_side_by_side_compile_once(data, compiled, tmp_path):
    tokens, head = data
    settings = {"steps": 12, "seeds": 2, "record": range(13)}
    together = at.train(tokens, head, ngd([0.1, 0.3], [0.0, 0.5]), **settings)
    assert together.hyperparameters == ("learning_rate", "learning_rate_exponent")
    assert sum("_advance" in name for name in compiled()) == 1
    count = len(compiled())
    for rate, power in ((0.1, 0.0), (0.3, 0.5)):
        alone = at.train(tokens, head, ngd(rate, power), **settings)
        chosen = together.sel(learning_rate=rate, learning_rate_exponent=power)
        assert chosen.data.identical(alone.data) and chosen.settings == alone.settings
    assert len(compiled()) == count
    # The time of a step is its rate over the size of its gradient.
    sizes = np.exp(alone.data["log_gradient_norm"].values[..., :-1])
    found = alone.data["log_time"].values[..., 1:]
    times = np.cumsum(0.3 * np.arange(1, 13) ** -0.5 / sizes, -1)
    np.testing.assert_allclose(found, np.log(times), rtol=1e-12)
    # A rate that does not change has the bits of a number.
    number = at.train(tokens, head, ngd(0.3), **settings)
    assert together.sel(learning_rate=0.3, learning_rate_exponent=0.0).data.identical(number.data)
    constant = at.train(tokens, head, ngd(optax.constant_schedule(0.3)), **settings)
    assert constant.data.identical(number.data)
    together.save(tmp_path / "run.nc")
    loaded = Trajectory.load(tmp_path / "run.nc")
    assert loaded.data.identical(together.data) and loaded.settings == together.settings


@pytest.mark.long
def test_weight_decay_ends_at_a_step(data, compiled):
    tokens, head = data

    def run(decay, steps=20, initial=None):
        step = ngd(0.3, per_factor=True, weight_decay=decay)
        settings = {"parameterization": "KQ", "initial": initial, "record": range(steps + 1)}
        return at.train(tokens, head, step, steps=steps, **settings)

    together = run(until([0, 8, 100], [0.0, 0.5]))
    assert together.hyperparameters == ("weight_decay", "weight_decay_steps")
    count = len(compiled())
    ended = run(until(8, 0.5))
    assert len(compiled()) == count
    chosen = together.sel(weight_decay=0.5, weight_decay_steps=8)
    assert chosen.data.identical(ended.data) and chosen.settings == ended.settings
    # What was decayed in some of its steps has no equivalent raw time.
    assert np.isnan(together.data["log_time"]).all()
    close = {"rtol": 1e-9, "atol": 1e-12}
    plain = run(0.0)
    for never in ((0.0, 8), (0.5, 0)):
        same = together.sel(**dict(zip(together.hyperparameters, never, strict=True)))
        np.testing.assert_allclose(same.W(20), plain.W(20), **close)
    start = {name: ended.data[name].values[:, :, 8] for name in ("K", "Q")}
    np.testing.assert_allclose(run(0.0, 12, start).W(12), ended.W(20), **close)
    always = together.sel(weight_decay=0.5, weight_decay_steps=100)
    assert np.abs(always.W(8) - ended.W(8)).max() == 0 < np.abs(always.W(20) - ended.W(20)).min()


def test_a_weight_decay_that_has_ended_is_zero_beside_any_gradient():
    optimizer = ngd(0.5, weight_decay=until(1, 0.1))
    W, gradient = jnp.asarray([[3.0, 4.0]]), Scaled(jnp.asarray([[1.0, 0.0]]), jnp.asarray(FAR))
    memory = optimizer.init(W)
    decayed, memory = optimizer.step(gradient, memory, W)
    np.testing.assert_allclose(decayed, [[2.7, 3.6]], rtol=1e-15)
    moved, _ = optimizer.step(gradient, memory, decayed)
    np.testing.assert_array_equal(moved - decayed, [[-0.5, 0.0]])
    plain = jnp.asarray([[1.0, 0.0]])  # in a loop of one's own
    updates, memory = optimizer.update(plain, optimizer.init(W), W)
    np.testing.assert_allclose(updates, -0.5 * np.array([[1.3, 0.4]]) / np.hypot(1.3, 0.4))
    np.testing.assert_array_equal(optimizer.update(plain, memory, W)[0], [[-0.5, 0.0]])


COSINE, POLYNOMIAL = optax.cosine_decay_schedule(0.1, 20), optax.polynomial_schedule(0.1, 0, 2, 20)


def in_double(schedule):
    """A schedule as a loop of optax has it in double precision: optax itself counts in int32."""
    return lambda count: schedule(count.astype(jnp.int64))


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (at.adam(COSINE, eps=1e-8), optax.adam(COSINE)),
        (at.momentum(POLYNOMIAL), optax.sgd(in_double(POLYNOMIAL), 0.9)),
        (
            at.declare(optax.sgd, hyperparameters={"learning_rate": COSINE}, geometry=None),
            optax.sgd(COSINE),
        ),
    ],
    ids=["adam", "momentum", "declared"],
)
@pytest.mark.parametrize("dtype", ["float64", "bfloat16"])
def test_schedules_of_optax_are_those_of_optax(ours, theirs, dtype):
    start = jnp.asarray(np.random.default_rng(1).normal(size=(2, 3)), dtype)

    def run(optimizer, W):
        @jax.jit
        def follow(W):
            def one(carry, _):
                W, memory = carry
                updates, memory = optimizer.update(W - 0.5, memory, W)
                return (optax.apply_updates(W, updates), memory), None

            return jax.lax.scan(one, (W, optimizer.init(W)), None, 15)[0][0]

        return np.asarray(follow(W), float)

    found, exact = run(ours, start), run(theirs, start.astype("float64"))
    # Weights are rounded to bfloat16 in each of 15 steps; memories, unlike optax's, are not.
    rounding = 1e-13 if dtype == "float64" else 15 * 2.0**-9
    np.testing.assert_allclose(found, exact, rtol=0, atol=rounding * np.abs(exact).max())


def test_trials_end_where_no_later_step_can_move_them(data):
    W, nothing = jnp.ones((1, 2)), Scaled(jnp.zeros((1, 2)), jnp.asarray(0.0))

    def rests(optimizer, steps=1):
        parameters, memory = W, optimizer.init(W)
        for _ in range(steps):
            before = memory
            parameters, memory = optimizer.step(nothing, memory, parameters)
        return bool(optimizer.at_rest(memory, before))

    assert rests(ngd(0.1)) and rests(ngd(0.1, 0.5)) and rests(ngd(until(1, 0.1)))
    assert not rests(ngd(optax.constant_schedule(0.1)))  # of which nothing is known
    ends = ngd(0.1, weight_decay=until(2, 0.1))
    assert [rests(ends, steps) for steps in (1, 2, 3)] == [False, False, True]
    assert not rests(ngd(0.1, weight_decay=power_decay(0.1, 0.5)))
    # A gradient that rounding swallows, and ever shorter steps.
    tokens, head = data
    slow = at.gradient_descent(power_decay(0.1, 0.5))
    run = at.train(tokens, head, slow, steps=9, initial=np.full((5, 5), 1e18))
    assert (run.data["status"] == TrialStatus.BELOW_ROUNDING).all()
    assert (run.data["steps_taken"] == 0).all()


def test_a_run_goes_on_with_its_schedule(data, tmp_path, monkeypatch):
    tokens, head = data
    real, places = BlockTrainer.train, []

    def interrupted(*arguments):
        for place in real(*arguments):
            yield place
            places.append(place)
            if len(places) == 5:
                raise KeyboardInterrupt

    def run(folder=None):
        step = ngd(0.3, 0.5)
        settings = {"steps": 12, "seeds": 2, "record": range(13), "checkpoint_every": 0}
        return at.train(tokens, head, step, checkpoint=folder, **settings)

    monkeypatch.setattr(BlockTrainer, "train", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path)
    monkeypatch.setattr(BlockTrainer, "train", real)
    assert run(tmp_path).data.identical(run().data)
    with pytest.raises(InvalidInputError, match=r"rate_exponent was 0\.5 and is 0\.25"):
        at.train(
            tokens, head, ngd(0.3, 0.25), steps=12, seeds=2, record=range(13), checkpoint=tmp_path
        )


def test_every_number_may_follow_a_schedule_and_has_a_written_form():
    decay = power_decay(0.1, 0.5)
    assert get_optimizer("signum:learning_rate_exponent=0.5", 0.1) is at.sign_momentum(decay)
    assert named_optimizer("ngd:learning_rate_exponent=0.5,learning_rate_offset=3") is ngd(
        0.1, 0.5, 3
    )
    ends = get_optimizer("ngd:weight_decay=0.01,weight_decay_steps=1e3", 0.1)
    assert ends is ngd(0.1, weight_decay=until(1000, 0.01))
    assert get_optimizer("polyak:scale=1,scale_exponent=0.5") is at.polyak_step(power_decay(1, 0.5))
    assert repr(ends) == (
        "normalized gradient descent(learning_rate=0.1, weight_decay=0.01, weight_decay_steps=1000)"
    )
    slow = at.momentum(0.1, decay=lambda count: 1 - 1.0 / (count + 2))
    W, G, m = jnp.zeros(2), jnp.asarray([1.0, 2.0]), np.zeros(2)
    memory = slow.init(W)
    for count in range(3):
        step, memory = slow.update(G, memory, W)
        m = (1 - 1 / (count + 2)) * m + np.asarray(G)
        np.testing.assert_allclose(step, -0.1 * m, rtol=1e-14)


def test_as_a_function_it_is_one_of_plain_numbers():
    assert [power_decay(1.0, 1, 2)(count) for count in (0, 2, 6)] == [1.0, 0.5, 0.25]
    assert isinstance(power_decay(0.1, 0.5)(3), float)  # as schedulers of PyTorch want it
    with pytest.raises(InvalidInputError, match=r"^exponent: there are 2 values"):
        power_decay(0.1, [0.5, 1.0])(0)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: power_decay(0.1, -0.5), "exponent: -0.5 is not a number >= 0"),
        (lambda: power_decay(0.1, 0.5, 0), "offset: 0 is not a positive"),
        (lambda: power_decay(0.1, [0.5, 0.5]), "exponent: .*names a value twice"),
        (lambda: until(2.5, 0.1), "steps: 2.5 is not whole"),
        (lambda: at.sign_descent(power_decay(0, 0.5)), "learning_rate: 0.0 is not a positive"),
        (lambda: at.momentum(0.1, until(9, 1.0)), "decay: 1.0 is not"),
        (lambda: at.adam(lambda step: "x"), "learning_rate: the schedule .* fails"),
        (lambda: get_optimizer("ngd:weight_decay_steps=9", 0.1), "weight_decay_steps: there is no"),
        (lambda: get_optimizer("ngd:learning_rate_offset=9", 0.1), ".* with offset makes no"),
        (lambda: get_optimizer("ngd:learning_rate_exponent=-1", 0.1), "learning_rate_exponent: -1"),
        (lambda: get_optimizer("md:p_exponent=1", 0.1), "optimizer: .*no setting 'p_exponent'"),
        (
            lambda: at.declare(
                lambda learning_rate, learning_rate_exponent: optax.sgd(learning_rate),
                hyperparameters={
                    "learning_rate": power_decay(0.1, 0.5), "learning_rate_exponent": 2.0,
                },
                geometry=None,
            ),
            "hyperparameters: 'learning_rate_exponent'",
        ),
    ],
)  # fmt: skip
def test_what_is_no_schedule_is_refused(make, words):
    with pytest.raises(InvalidInputError, match=f"^{words}"):
        make()
