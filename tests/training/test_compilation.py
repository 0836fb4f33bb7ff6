"""However the step is compiled, it is the same step."""

import collections
import contextlib
import gc
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sizes import CROWDED, ONE_ROW, SMALLEST, USUAL, drawn

import attractor as at
from attractor.attention.losses import get_loss
from attractor.attention.multi_head import get_parameterization
from attractor.training import release_compiled
from attractor.training.attention_training import AttentionTraining
from attractor.training.programs import compilation


def step(objective, condition, matrices):
    """Something with short rows, a product and a reduction."""
    scores = jnp.einsum("bij,bkj->bik", matrices, matrices)
    return objective * jax.nn.softmax(scores).sum(-2)


@pytest.mark.parametrize(
    ("size", "side_by_side"), [(3, False), (10, True), (20, False), (24, True)]
)
def test_numbers_are_those_of_the_plain_compiler(size, side_by_side):
    matrices = jnp.asarray(np.random.default_rng(size).normal(size=(5, size, size)), jnp.float32)
    program = compilation.compiled_for(step, (2.0, None), matrices, side_by_side=side_by_side)
    assert np.allclose(program(matrices), step(2.0, None, matrices), rtol=1e-5)


@pytest.mark.parametrize(
    ("optimizer", "fill"),
    [
        (at.schatten_mirror_descent(0.1), True),
        (at.schatten_mirror_descent(0.1, p=3), False),
        (at.steepest_descent(0.1, "schatten_1.5"), True),
        (at.spectral_descent([0.1, 0.2]), True),
        (at.joined(at.spectral_descent(at.power_decay(0.1, 0.5))), True),
        (at.muon(0.1, method="exact"), True),
        (at.muon(0.1), False),
        (at.by_parameter({"K": at.muon(0.1, method="exact")}, default=at.adam(0.1)), True),
        (at.gradient_descent(0.1), False),
    ],
    ids=str,
)
def test_steps_by_powers_of_singular_values_fill_wide_registers(optimizer, fill):
    parameterization, loss = get_parameterization("W"), get_loss("logistic")
    assert AttentionTraining(parameterization, loss, optimizer).side_by_side == fill


def test_the_same_size_compiles_once():
    traces = []

    def traced(objective, condition, matrices):
        traces.append(matrices.shape)
        return matrices + objective

    matrices = jnp.ones((2, 4, 4))
    for _ in range(3):
        compilation.compiled_for(traced, (1.0, None), matrices)(matrices)
    assert traces == [(2, 4, 4)]


def test_options_that_the_installed_xla_lacks_are_left_out(monkeypatch):
    gone = compilation._ON_CPU | {"xla_cpu_of_a_version_long_gone": True}
    monkeypatch.setattr(compilation, "_ON_CPU", gone)
    matrices = jnp.ones((2, 40, 40))
    found = compilation.compiled_for(step, (1.0, None), matrices)(matrices)
    assert np.allclose(found, step(1.0, None, matrices))


def test_the_options_still_mean_something_to_the_installed_xla():
    options = [*compilation._SMALL_ON_CPU.items(), *compilation._SIDE_BY_SIDE_ON_CPU.items()]
    assert all(compilation._accepted(option) for option in options)


def test_no_option_brings_optimizations_back_that_the_user_left_out(monkeypatch):
    monkeypatch.setattr(compilation, "kept_program", lambda *arguments: arguments[-1])
    given = jax.config.read("jax_disable_most_optimizations")
    levels = []
    for left_out in (False, True):
        jax.config.update("jax_disable_most_optimizations", left_out)
        options = compilation.compiled_for(step, (2.0, None), jnp.ones((2, 4, 4)), brief=True)
        levels.append(options.get("xla_backend_optimization_level"))
    jax.config.update("jax_disable_most_optimizations", given)
    assert levels == [1, None]


@pytest.mark.usefixtures("optimized")  # before others have programs to lose
def test_what_was_released_compiles_again_to_the_same_numbers():
    tokens, head = drawn(USUAL)
    before = at.train(tokens, head, at.gradient_descent(0.1), steps=5)
    release_compiled()
    again = at.train(tokens, head, at.gradient_descent(0.1), steps=5)
    assert again.data.identical(before.data)


@pytest.fixture
def two_kept(monkeypatch):
    """Only two programs are kept, none from before, and no other is about to be let go."""
    gc.freeze()  # to collect all that a worker has by now takes seconds
    monkeypatch.setattr(compilation, "_kept", collections.OrderedDict())
    monkeypatch.setattr(compilation, "_MOST_KEPT", 2)


def scaled(factor, nothing, matrices):
    return factor * matrices


def test_the_programs_used_last_are_kept_and_the_others_go(two_kept):
    matrices = jnp.ones((2, 3, 3))
    client = jax.local_devices()[0].client
    first, second = (compilation.compiled_for(scaled, (n, None), matrices) for n in (1.0, 2.0))
    before = len(client.live_executables())
    assert np.asarray(first(matrices)).max() == 1 and np.asarray(second(matrices)).max() == 2
    assert len(client.live_executables()) == before + 2
    assert compilation.compiled_for(scaled, (1.0, None), matrices) is first
    compilation.compiled_for(scaled, (3.0, None), matrices)
    assert compilation.compiled_for(scaled, (1.0, None), matrices) is first
    again = compilation.compiled_for(scaled, (2.0, None), matrices)
    assert again is not second  # it was used least
    del again, second
    gc.collect()
    assert len(client.live_executables()) == before + 1
    assert np.asarray(first(matrices)).max() == 1


def test_a_program_in_use_is_not_released_under_its_user(two_kept):
    matrices = jnp.ones((2, 3, 3))
    held = compilation.compiled_for(scaled, (1.0, None), matrices)
    held(matrices)
    with compiles_nothing():
        for number in range(2, 6):
            compilation.compiled_for(scaled, (float(number), None), matrices)
        assert np.asarray(held(matrices)).max() == 1


@contextlib.contextmanager
def compiles_nothing():
    """Fails if JAX compiles inside the block."""
    compiled = []
    jax.monitoring.register_event_duration_secs_listener(listen := lambda name, *_, **__: (
        compiled.append(name) if "backend_compile" in name else None
    ))  # fmt: skip
    try:
        yield
    finally:
        jax.monitoring.unregister_event_duration_listener(listen)
    assert compiled == []


@pytest.mark.long
def test_runs_whose_programs_were_let_go_in_between_have_the_same_bits(two_kept):
    runs = []
    for size in (USUAL, ONE_ROW, SMALLEST, USUAL):
        tokens, head = drawn(size)
        runs.append(at.train(tokens, head, at.gradient_descent(0.1), steps=5))
    assert runs[0].data.identical(runs[3].data)


def test_programs_level_off_over_shapes_of_data(monkeypatch):
    monkeypatch.setattr(compilation, "_kept", collections.OrderedDict())
    monkeypatch.setattr(compilation, "_MOST_KEPT", 4)  # those of one run
    client, counts = jax.local_devices()[0].client, []
    for size in (USUAL, ONE_ROW, CROWDED):
        tokens, head = drawn(size)
        at.train(tokens, head, at.normalized_gradient_descent(0.1), steps=2)
        counts.append(len(client.live_executables()))
    assert max(counts) == counts[0] and len(compilation._kept) == 4


SHAPES = """
import itertools, sys
import attractor as at

for n, T, d in itertools.islice(itertools.product(range(1, 6), range(2, 6), range(2, 7)), 100):
    tokens, head = unit_tokens(n, T, d, seeds=range(2))
    run = at.train(tokens, head, at.normalized_gradient_descent(0.1), steps=20, seeds=2)
    at.verify(run)
with open("/proc/self/statm") as file:
    print(int(file.read().split()[1]) * 4096 / 2**20)
"""


@pytest.mark.slow
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory is read from /proc")
def test_a_hundred_shapes_stay_below_a_bound_of_memory():
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", SHAPES], capture_output=True, text=True, check=True
    )
    assert float(done.stdout) < 1000


@pytest.mark.usefixtures("optimized")  # as above
def test_a_trial_is_begun_by_the_program_of_a_block_and_random_starts_share_one(compiled):
    release_compiled()
    for size in (USUAL, CROWDED):
        tokens, head = drawn(size)
        at.train(tokens, head, at.gradient_descent(0.1), steps=1)
    names = [name for name in compiled() if "_started" in name or "_moved" in name]
    assert sorted(names) == ["jit(_moved)", "jit(_started)", "jit(_started)"]
