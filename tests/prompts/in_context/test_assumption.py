"""The assumption of the general theorem, decided on tasks that meet it and on tasks that do not."""

import math

import mpmath
import numpy as np
import pytest

from attractor.prompts.in_context import (
    KnownLaw,
    State,
    built_in,
    check_assumption,
    decay,
    negative_controls,
    tail_of,
)
from attractor.prompts.in_context.assumption import decay_finding, moments_finding
from attractor.support.errors import InvalidInputError

GOOD, BAD = built_in(3), negative_controls(3)


@pytest.mark.parametrize("proven", [True, False])
@pytest.mark.parametrize("name", GOOD)
def test_families_meet_it(name, proven):
    found = check_assumption(GOOD[name], proven=proven, draws=2**10 if proven else 2**16)
    assert found.state is State.MET, str(found)


@pytest.mark.parametrize("proven", [True, False])
@pytest.mark.parametrize(
    ("name", "broken"),
    [
        ("Cauchy weights", {"moments", "decay"}),
        ("Student weights", {"moments", "decay"}),
        ("Laplace inputs", {"tilted moments"}),
        ("Student inputs", {"tilted moments"}),
    ],
)
def test_negative_controls_do_not(name, broken, proven):
    found = check_assumption(BAD[name], proven=proven, draws=2**10 if proven else 2**18)
    assert found.state is State.NOT_MET
    unmet = {each.name for each in found.findings if each.state is State.NOT_MET}
    assert broken <= unmet
    assert not unmet & {"loss", "queries"}


@pytest.mark.parametrize("seed", range(5))
def test_the_index_of_a_power_is_found_and_that_of_other_tails_is_not_settled(seed):
    random = np.random.default_rng(seed)
    power = tail_of(random.pareto(3.0, 2**17) + 1)
    assert power.low <= 3.0 <= power.high and power.power
    log_normal = np.exp(random.standard_normal(2**18))
    assert not tail_of(log_normal).power  # every moment is finite
    assert moments_finding(log_normal).state is State.NOT_SETTLED
    assert decay_finding(log_normal).state is State.NOT_SETTLED
    few = random.pareto(9.0, 2**12) + 1
    assert decay_finding(few).state is State.NOT_SETTLED
    assert tail_of(np.full(1000, 1.5)).low == math.inf


SIGMAS = {
    "exponential": (lambda random, n: 1 + random.exponential(size=n), math.inf),
    "gamma": (lambda random, n: random.gamma(0.5, size=n) + 0.01, math.inf),
    "normal": (lambda random, n: 1 + np.abs(random.normal(size=n)), math.inf),
    "uniform": (lambda random, n: 1 + random.random(n), math.inf),
    "Weibull": (lambda random, n: random.weibull(1.5, size=n), math.inf),
    "log-normal, .2": (lambda random, n: np.exp(0.2 * random.normal(size=n)), math.inf),
    "log-normal, 1": (lambda random, n: np.exp(random.normal(size=n)), math.inf),
    "log-normal, 2": (lambda random, n: np.exp(2 * random.normal(size=n)), math.inf),
    **{
        f"{shift} + Pareto({index})": (
            lambda random, n, shift=shift, index=index: shift + 1 + random.pareto(index, size=n),
            index,
        )
        for shift in (-0.9, -0.5, 0, 0.5, 3, 10, 100)
        for index in (1, 3, 5, 7, 7.9, 8.1, 10, 14, 30)
    },
    "Student(5)": (lambda random, n: np.abs(random.standard_t(5, size=n)) + 1, 5),
}
SETTLED = {"exponential", "normal", "uniform", "Weibull", "0 + Pareto(30)", "10 + Pareto(30)"}
NOT_MET = {"0 + Pareto(3)", "0 + Pareto(5)", "10 + Pareto(1)", "100 + Pareto(3)", "3 + Pareto(3)"}


@pytest.mark.parametrize("name", SIGMAS)
def test_no_tail_is_judged_wrongly_wherever_it_begins(name):
    draw, index = SIGMAS[name]
    states = [decay_finding(draw(np.random.default_rng(seed), 2**18)).state for seed in range(6)]
    wrong = State.NOT_MET if index > 8 else State.MET
    assert wrong not in states
    if name in SETTLED:
        assert set(states) == {State.MET}
    if name in NOT_MET:
        assert set(states) == {State.NOT_MET}


def test_the_decay_is_that_of_the_integral_and_its_threshold_an_index_of_eight():
    """The average of L^(-c/t^2) of density k t^(-k-1) is an incomplete gamma function."""
    random, k, c = np.random.default_rng(0), 6.0, 0.7
    lengths = np.array([10.0, 1e3, 1e6])
    found, errors = decay(random.pareto(k, 2**18) + 1, lengths, c)
    for length, value, error in zip(lengths, found, errors, strict=True):
        scale = c * math.log(length)
        exact = k / 2 * mpmath.gammainc(k / 2, 0, scale) / scale ** (k / 2)
        assert value == pytest.approx(float(exact) * math.log(length) ** 4, abs=5 * error)
    for index, state in ((7.9, State.NOT_MET), (8.0, State.NOT_MET), (8.1, State.MET)):
        law = KnownLaw(index, True, 1.0, "made up")
        assert decay_finding(np.ones(200), law).state is state
        assert moments_finding(np.ones(200), law).state is State.NOT_MET


def test_long_queries_are_not_admitted():
    from attractor.prompts.in_context import LinearRegression
    from attractor.prompts.regression import RegressionTask

    task = LinearRegression(RegressionTask(np.eye(2), 4 * np.eye(2)))
    for proven in (True, False):
        found = check_assumption(task, proven=proven, draws=2**12)
        assert found.findings[-1].state is State.NOT_MET


def test_too_few_draws_are_refused():
    with pytest.raises(InvalidInputError, match="draws"):
        check_assumption(GOOD["linear"], draws=100)
    with pytest.raises(InvalidInputError, match="values"):
        tail_of(np.r_[np.ones(200), 0.0])
