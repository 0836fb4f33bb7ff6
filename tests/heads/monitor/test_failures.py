"""What goes wrong while heads are watched, in loops that must not notice."""

import json
import random
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import attractor as at
from attractor.heads import HeadMonitor, RecordStatus, WatchedHead, load_records
from attractor.heads.monitor import watch
from attractor.support.errors import AttractorWarning, InvalidInputError

TOKENS = at.Tokens(*(np.random.default_rng(0).normal(size=shape) for shape in [(4, 5, 6), (4, 6)]))
MATRICES = np.random.default_rng(1).normal(size=(6, 6, 6))
FAIL_AT = 2
FAILURES = {
    "an exception": ValueError("it is broken"),
    "memory": MemoryError(),
    "an index": IndexError("index 7 is out of range"),
    "a lookup": KeyError("W"),
    "a refusal of ours": InvalidInputError("x", "it is bad", "Give a good one"),
    "an assertion": AssertionError(),
}


def watched(monitor, states=MATRICES, call="step"):
    """A loop of six steps, whose warnings of the monitor are returned."""
    state = {}
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        if call == "hook":
            state["now"] = states[0]
            hook = monitor.hook(state, first=0)
        for step, now in enumerate(states):
            state["now"] = now
            if call == "hook":
                hook()
            else:
                (monitor if call == "step" else monitor.record)(step, state)
    return [str(one.message) for one in given if issubclass(one.category, AttractorWarning)]


def failing(error, at_step=FAIL_AT, places=("matrix",)):
    """A head beside one that is well; its functions raise at a step and the one after it."""

    def of(place):
        def function(state):
            late = np.array_equal(state["now"], MATRICES[at_step]) or np.array_equal(
                state["now"], MATRICES[at_step + 1]
            )
            if place in places and late:
                raise error
            return {"matrix": state["now"], "tokens": TOKENS, "reading": state}[place]

        return function

    return [
        WatchedHead("0.0", of("matrix"), of("tokens"), reading=of("reading")),
        WatchedHead("0.1", lambda state: state["now"], TOKENS),
    ]


@pytest.mark.parametrize("call", ["step", "record", "hook"])
@pytest.mark.parametrize("place", ["matrix", "tokens", "reading"])
@pytest.mark.parametrize("error", FAILURES.values(), ids=FAILURES)
def test_a_function_that_raises_is_a_status_and_one_warning(call, place, error):
    monitor = HeadMonitor(failing(error, places=[place]), every=1, budget=None)
    said = watched(monitor, call=call)
    found = monitor.to_xarray()
    status = ["optimal"] * 6
    assert found["status"].sel(head="0.1").values.tolist() == status
    status[FAIL_AT : FAIL_AT + 2] = ["could not be read"] * 2
    assert found["status"].sel(head="0.0").values.tolist() == status
    assert len(said) == 1 and "head '0.0', step 2: could not be read" in said[0]
    ours = isinstance(error, InvalidInputError)
    name = "x: it is bad" if ours else f"{place}: that of head '0.0' raised {type(error).__name__}"
    assert name in said[0]
    assert [name in one for one in found["problem"].sel(head="0.0").values].count(True) == 2
    assert (found["problem"].sel(head="0.1") == "").all()


def test_what_failed_is_in_table_file_and_json(tmp_path):
    heads = failing(FAILURES["an exception"])
    monitor = HeadMonitor(heads, every=1, budget=None)
    watched(monitor, MATRICES[: FAIL_AT + 1])
    problem = "matrix: that of head '0.0' raised ValueError: it is broken"
    text = " ".join(str(monitor).split())
    assert "could not be read: What tells matrix and tokens failed" in text
    assert f"0.0: {problem}" in text
    assert "0.0: matrix" in monitor._repr_html_()
    monitor.save(tmp_path / "heads.nc")
    stored = load_records(tmp_path / "heads.nc")
    assert stored["status"].sel(step=FAIL_AT, head="0.0") == "could not be read"
    assert problem in str(stored["problem"].sel(step=FAIL_AT, head="0.0").item())
    assert problem in json.dumps(monitor.to_xarray()[["problem"]].to_dict())
    assert monitor.records["0.0"][-1].status.message


def test_a_function_that_heads_share_fails_once_a_record():
    calls = []

    def reading(state):
        calls.append(state)
        raise RuntimeError(f"at step {len(calls)}")

    heads = [WatchedHead(f"0.{i}", lambda W: W, TOKENS, reading=reading) for i in range(5)]
    monitor = HeadMonitor(heads, every=1, budget=None)
    assert len(watched(monitor)) == 1 and len(calls) == 6
    assert (monitor.to_xarray()["status"] == "could not be read").all()
    assert "0.0 and 4 more: reading" in " ".join(str(monitor).split())


def test_different_causes_are_said_each():
    def matrix(state):
        step = [np.array_equal(state["now"], one) for one in MATRICES].index(True)
        raise (ValueError if step < 3 else TypeError)(f"{step} of {id(state):#x}")

    monitor = HeadMonitor(WatchedHead("a", matrix, TOKENS), every=1, budget=None)
    said = watched(monitor)
    assert ["ValueError" in one for one in said] == [True, False]
    assert ["TypeError" in one for one in said] == [False, True]


@pytest.mark.parametrize("error", [MemoryError("no room"), np.linalg.LinAlgError("no")])
def test_a_solver_that_fails_leaves_all_that_needs_no_solution(monkeypatch, error):
    solved = watch.solve

    def solve(problem, *args, **kwargs):
        if len(monitor.records["0.1"]) == FAIL_AT:
            raise error
        return solved(problem, *args, **kwargs)

    monkeypatch.setattr(watch, "solve", solve)
    heads = [WatchedHead(name, lambda state: state["now"], TOKENS) for name in ("0.0", "0.1")]
    monitor = HeadMonitor(heads, every=1, budget=None)
    assert len(watched(monitor)) == 1
    found = monitor.to_xarray()
    status = ["optimal"] * FAIL_AT + ["could not be solved"] + ["optimal"] * 3
    assert found["status"].sel(head="0.1").values.tolist() == status
    at_step = found.sel(head="0.1", step=FAIL_AT)
    assert type(error).__name__ in str(at_step["problem"].item())
    assert float(at_step["frobenius_norm"]) == pytest.approx(np.linalg.norm(MATRICES[FAIL_AT]))
    assert (at_step["selected"] >= 0).all() and np.isnan(at_step["margin_ratio"])


def test_too_many_constraints_are_refused_before_training():
    keys = np.random.default_rng(0).normal(size=(16, 64, 3))
    causal = np.tril(np.ones((64, 64), bool))[None].repeat(16, 0)
    words = r"'0.0' makes 32,256 constraints.*\(rows=\), or max_constraints=32256"
    with pytest.raises(InvalidInputError, match=words):
        HeadMonitor(WatchedHead("0.0", lambda W: W, (keys, keys, causal)))
    later = WatchedHead("0.0", lambda W: W, lambda W: (keys, keys, causal))
    for refuse in (HeadMonitor.hook, HeadMonitor.check):
        with pytest.raises(InvalidInputError, match=words):
            refuse(HeadMonitor(later), np.eye(3))
    HeadMonitor(later, max_constraints=32256).check(np.eye(3))


def test_too_many_constraints_later_are_a_status_beside_the_numbers():
    def tokens(state):
        large = np.array_equal(state["now"], MATRICES[FAIL_AT])
        return (np.tile(TOKENS.keys, (10, 1, 1)), np.tile(TOKENS.queries, (10, 1, 1))) * large or (
            TOKENS.keys,
            TOKENS.queries,
        )

    head = WatchedHead("a", lambda state: state["now"], tokens)
    monitor = HeadMonitor(head, every=1, budget=None, max_constraints=100)
    said = watched(monitor, call="hook")
    found = monitor.to_xarray().isel(head=0)
    assert found["status"].values[FAIL_AT] == "too many constraints"
    assert (found["status"].values == "optimal").sum() == 5
    assert len(said) == 1 and "160 constraints, and max_constraints is 100" in said[0]
    assert found["constraints"].values[FAIL_AT] == 160
    assert np.isfinite(found["frobenius_norm"].values).all()


def test_shapes_that_change_midway_do_no_harm():
    def tokens(state):
        width = len(state["now"])
        rng = np.random.default_rng(width)
        return rng.normal(size=(width, width + 1, width)), rng.normal(size=(width, width))

    words = [["a"] * 7] * 6
    heads = [
        WatchedHead("moves", lambda state: state["now"], tokens, words=words),
        WatchedHead("stays", lambda state: state["now"], TOKENS, words=[["b"] * 5] * 4),
    ]
    states = [np.eye(width) for width in (6, 6, 4, 8, 6, 8)]
    monitor = HeadMonitor(heads, every=1, budget=None)
    said = watched(monitor, states)
    found = monitor.to_xarray()
    assert (found["status"].sel(head="moves") == "optimal").all()
    status = found["status"].sel(head="stays").values
    assert (status == "could not be read").tolist() == [False, False, True, True, False, True]
    assert len(said) == 1 and "it has shape (4, 4)" in said[0]
    assert "Give (6, 6)" in str(monitor)


@pytest.mark.parametrize("broken", [np.nan, np.inf, 1e300, "deleted", None, "text"])
@pytest.mark.parametrize("budget", [None, 0.03])
def test_weights_of_any_kind_raise_nothing(broken, budget):
    states = list(MATRICES)
    states[3] = np.full((6, 6), broken) if isinstance(broken, float) else broken
    if broken == "deleted":  # as a step does with arrays that are donated to it
        states[3] = jnp.ones((6, 6))
        states[3].delete()
    head = WatchedHead("a", lambda state: state["now"], TOKENS)
    monitor = HeadMonitor(head, every=1, budget=budget)
    watched(monitor, states)
    status = monitor.to_xarray()["status"].values[:, 0].tolist()
    assert status[:3] == [*status[4:], "optimal"] == ["optimal"] * 3
    wanted = {np.nan: "not finite", np.inf: "not finite", 1e300: "optimal"}
    assert status[3] == wanted.get(broken, "could not be read")


def test_a_clock_that_stops_ends_no_training():
    def clock():
        ticks.append(0)
        if len(ticks) > 20:
            raise OSError("no time")
        return float(len(ticks))

    ticks = []
    head = WatchedHead("a", lambda state: state["now"], TOKENS)
    monitor = HeadMonitor(head, every=1, clock=clock)
    said = watched(monitor)
    assert said and all("OSError: no time" in one for one in said)
    assert monitor.to_xarray()["status"].values[0, 0] == "optimal"


@pytest.mark.parametrize("place", ["matrix", "reading", "solve"])
def test_an_interruption_passes_and_the_loop_may_go_on(monkeypatch, place):
    solved, heads = watch.solve, failing(KeyboardInterrupt(), places=[place])
    if place == "solve":

        def solve(*args, **kwargs):
            if len(monitor.records["0.1"]) == FAIL_AT and not interrupted:
                interrupted.append(True)
                raise KeyboardInterrupt
            return solved(*args, **kwargs)

        interrupted = []
        monkeypatch.setattr(watch, "solve", solve)
    monitor = HeadMonitor(heads, every=1, budget=None)
    before = generators()
    with pytest.raises(KeyboardInterrupt):
        watched(monitor)
    assert same(before, generators())
    for step in (4, 5):
        monitor(step, {"now": MATRICES[step]})
    found = monitor.to_xarray()
    assert (found["status"].sel(step=[0, 1, 4, 5]) == "optimal").all()


def generators():
    return random.getstate(), np.random.get_state()


def same(one, other):
    return jax.tree.all(jax.tree.map(np.array_equal, one, other))


def drawing(state):
    random.random(), np.random.normal()
    return state["now"] + 0.1 * np.random.normal(size=(6, 6)) * random.random()


@pytest.mark.parametrize("fails", [False, True])
def test_what_is_drawn_moves_no_generator_of_the_loop(fails):
    def tokens(state):
        keys = np.random.normal(size=(4, 5, 6))
        if fails:
            raise RuntimeError
        return keys, np.random.normal(size=(4, 6))

    heads = [WatchedHead(name, drawing, tokens) for name in "abc"]
    random.seed(3), np.random.seed(3), np.random.normal()
    monitor, before = HeadMonitor(heads, every=1, budget=None), generators()
    watched(monitor, MATRICES[[0, 1, 0]])
    assert same(before, generators())
    if not fails:  # a probe that is drawn is the same every time, whatever runs beside it
        found = monitor.to_xarray()
        norms = found["frobenius_norm"].values
        np.testing.assert_array_equal(norms[0], norms[2])
        alone = HeadMonitor(WatchedHead("c", drawing, tokens), every=1, budget=None)
        np.random.seed(9)
        watched(alone, MATRICES[:1])
        assert alone.to_xarray()["frobenius_norm"].values[0, 0] == norms[0, 2]


def test_every_status_has_a_sentence():
    assert all(status.message.endswith(".") for status in RecordStatus)
