import numpy as np
import pytest
import runs

import attractor as at
from attractor.heads import HeadMonitor, WatchedHead, load_records
from attractor.heads.monitor.watch import _with_nearest
from attractor.support.errors import FileFormatError, InvalidInputError


class Clock:
    """Seconds that pass only when told to."""

    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


def watch_all(monitor, matrices, steps):
    for step, W in zip(steps, matrices, strict=True):
        monitor(int(step), W)
    return monitor.to_xarray()


def head_of(tokens, name="head", matrix=lambda W: W):
    return WatchedHead(name, matrix, tokens)


def random_tokens(seed=0, n=4, T=5, d=6):
    rng = np.random.default_rng(seed)
    return at.Tokens(rng.normal(size=(n, T, d)), rng.normal(size=(n, d)))


def random_matrices(count, seed=1, d=6):
    return np.random.default_rng(seed).normal(size=(count, d, d))


def slow_down(monkeypatch, clock, seconds):
    """Lets every solution take some time."""
    from attractor.heads.monitor import watch

    solved = watch.solve

    def slow(*args, **kwargs):
        clock.now += seconds
        return solved(*args, **kwargs)

    monkeypatch.setattr(watch, "solve", slow)


def test_records_are_those_of_verify_on_the_same_run():
    run, trial = runs.trajectory(), {"instance": 2, "seed": 1}
    verdict = at.verify(run, selection="reached at step").data.sel(trial)
    matrices = run.data["W"].sel(trial)
    monitor = HeadMonitor(head_of(run.tokens[1]), every=1, budget=None)
    found = watch_all(monitor, matrices.values, matrices["step"].values).isel(head=0)
    assert (found["status"] == "optimal").sum() > 5
    decided = found["status"].values == "optimal"
    for name in ("margin_ratio", "correlation", "log_unselected_probability"):
        expected = verdict[name].values[decided]
        np.testing.assert_allclose(found[name].values[decided], expected, rtol=1e-10, atol=1e-10)
    norms = verdict["norm"].values
    np.testing.assert_allclose(found["norm"].values, norms, rtol=1e-10, atol=1e-14)
    reached = at.attended_tokens(run.tokens[1], matrices.values).index
    np.testing.assert_array_equal(found["selected"].values[..., 0], reached)
    assert np.nanargmax(found["margin_ratio"].values) == len(norms) - 1


@pytest.mark.parametrize("geometry", ["frobenius", "nuclear", "l_3"])
def test_solutions_from_the_ones_before_are_those_from_nothing(geometry):
    tokens, start = random_tokens(n=6, T=8), random_matrices(2)
    matrices = [start[0] + share * start[1] for share in (0, 0, 0.1, 0.3, 1.0)]
    warm = HeadMonitor(head_of(tokens), every=1, geometry=geometry, budget=None)
    found = watch_all(warm, matrices, range(5)).isel(head=0)
    assert found["start"].values[:2].tolist() == ["cold", "reused"]
    assert "warm" in found["start"].values
    for step, W in enumerate(matrices):
        cold = HeadMonitor(head_of(tokens), every=1, geometry=geometry, budget=None)
        fresh = watch_all(cold, [W], [step]).isel(head=0, step=0)
        assert fresh["start"] == "cold"
        at_step = found.sel(step=step)
        assert fresh["status"] == at_step["status"] == "optimal"
        np.testing.assert_allclose(at_step["solution_norm"], fresh["solution_norm"], rtol=2e-9)
        np.testing.assert_allclose(at_step["margin_ratio"], fresh["margin_ratio"], rtol=2e-9)
        assert at_step["gap"] <= 1e-9


def test_tokens_that_move_are_solved_for_again():
    tokens, W = random_tokens(), random_matrices(1)[0]
    moved = at.Tokens(tokens.keys + 0.02, tokens.queries)
    monitor = HeadMonitor(head_of(lambda state: state["tokens"], matrix=lambda s: s["W"]), every=1)
    for step, batch in enumerate((tokens, at.Tokens(tokens.keys, tokens.queries), moved)):
        monitor.record(step, {"W": W, "tokens": batch})
    found = monitor.to_xarray()["start"].values[:, 0].tolist()
    assert found == ["cold", "reused", "warm"]


def test_a_tie_no_matrix_can_keep_is_recorded_as_infeasible():
    # The first two scores differ by less than rounding; kept equal, nothing lifts them off the
    # third. A selection without ties is always feasible: its own matrix makes it.
    keys = np.array([[[1.0, 0.0], [1.0, 1e-17], [1.0, -1.0]]])
    monitor = HeadMonitor(head_of((keys, np.ones((1, 1)))), every=1, budget=None)
    monitor(0, np.array([[1.0], [1.0]]))
    monitor(1, np.array([[1.0], [1.0]]))
    found = monitor.to_xarray().isel(head=0)
    assert found["status"].values.tolist() == ["infeasible", "infeasible"]
    assert found["start"].values.tolist() == ["cold", "reused"]
    assert np.isnan(found["margin_ratio"].values).all()


def test_ties_copies_and_lone_tokens():
    keys = np.array([[[1.0, 0], [1.0, 0], [0, 1.0]], [[0, 1.0], [2.0, 0], [0, 0.5]]])
    mask = np.array([[1, 1, 1], [1, 0, 0]])
    monitor = HeadMonitor(head_of((keys, np.ones((2, 1)), mask)), every=1, budget=None)
    monitor(0, np.array([[1.0], [0.0]]))
    monitor(1, np.zeros((2, 1)))
    monitor(2, np.array([[np.nan], [0.0]]))
    found = monitor.to_xarray().isel(head=0)
    assert found["status"].values.tolist() == ["optimal", "nothing to separate", "not finite"]
    assert found["selected"].values[0, :, 0].tolist() == [-1, 0]
    assert found["ties"].values[:2].tolist() == [1, 1]
    # The copy is no constraint; W* = (1/2, -1/2) separates the rest, and W has margin 1.
    assert float(found["margin_ratio"][0]) == pytest.approx(np.sqrt(0.5), rel=1e-12)
    assert found["selected_probability"].values[0, 1, 0] == 1


def test_factors_and_scale_stand_for_their_product():
    tokens = random_tokens()
    K, Q = np.random.default_rng(3).normal(size=(2, 6, 4))
    heads = [
        WatchedHead("factors", lambda _: (K, Q), tokens, scale=0.5),
        WatchedHead("matrix", lambda _: 0.5 * K @ Q.T, tokens),
    ]
    monitor = HeadMonitor(heads, geometry="nuclear")
    monitor.record(7, None)
    found = monitor.to_xarray().sel(step=7)
    for name in ("margin_ratio", "norm", "nuclear_norm", "stable_rank"):
        assert float(found[name][0]) == pytest.approx(float(found[name][1]), rel=1e-12)
    singular = np.linalg.svd(0.5 * K @ Q.T, compute_uv=False)
    assert float(found["norm"][1]) == pytest.approx(singular.sum(), rel=1e-12)
    assert float(found["frobenius_norm"][1]) == pytest.approx(
        np.linalg.norm(0.5 * K @ Q.T), rel=1e-12
    )


def test_heads_that_share_a_function_share_its_call():
    calls = []

    def tokens(state):
        calls.append(state)
        return random_tokens()

    heads = [head_of(tokens, name) for name in "abc"]
    monitor = HeadMonitor(heads, every=10, budget=None)
    for step in range(11):
        monitor(step, random_matrices(1)[0])
    assert len(calls) == 2


def test_heads_that_share_a_reading_share_its_call():
    calls = []

    def reading(state):
        calls.append(state)
        return None if state is None else {"W": state, "tokens": random_tokens()}

    heads = [
        WatchedHead(name, lambda read: read["W"], lambda read: read["tokens"], reading=reading)
        for name in "ab"
    ]
    plain = HeadMonitor(head_of(random_tokens(), "a"), every=1, budget=None)
    monitor = HeadMonitor(heads, every=1, budget=None)
    for step, W in enumerate(random_matrices(2)):
        monitor(step, W)
        plain(step, W)
    monitor(2, None)
    assert len(calls) == 3
    found = monitor.to_xarray()
    assert (found["status"].sel(step=2) == "not finite").all()
    ratio = plain.to_xarray()["margin_ratio"].sel(head="a")
    for name in "ab":
        np.testing.assert_array_equal(found["margin_ratio"].sel(head=name, step=[0, 1]), ratio)
    with pytest.raises(InvalidInputError, match="reading"):
        WatchedHead("a", lambda read: read, random_tokens(), reading=3)


def test_what_heads_share_is_used_at_once(monkeypatch):
    """Both are read in one call, which a head that waits has to have again."""
    monkeypatch.setattr("attractor.heads.monitor.head_monitor.FREE", 0.0)
    clock, matrices, tokens = Clock(), random_matrices(600), random_tokens()
    slow_down(monkeypatch, clock, 0.3)
    calls = []

    def reading(state):
        calls.append(state)
        clock.now += 1.0
        return state

    heads = [WatchedHead(name, lambda W: W, lambda W: tokens, reading=reading) for name in "abc"]
    monitor = HeadMonitor(heads, every=200, budget=0.05, clock=clock)
    over = []
    for step in range(600):
        monitor(step, matrices[step])
        over.append(monitor._budget.spent - 0.05 * monitor._budget.elapsed)
        clock.now += 0.3
    found = monitor.to_xarray()
    assert int((found["status"] == "optimal").sum()) >= 2 * len(calls)
    assert len(calls) >= 3
    assert 0 < max(over) <= 1.0 + 0.3


def test_short_runs_have_all_their_records_at_the_same_steps(monkeypatch):
    clock, tokens, matrices = Clock(), random_tokens(), random_matrices(60)
    slow_down(monkeypatch, clock, 0.3)
    monitor = HeadMonitor([head_of(tokens, name) for name in "abc"], every=20, clock=clock)
    for step in range(60):  # six seconds of training, and 2.7 of records
        monitor(step, matrices[step])
        clock.now += 0.1
    found = monitor.to_xarray()
    assert found["step"].values.tolist() == [0, 20, 40] and (found["status"] == "optimal").all()
    assert monitor._budget.spent == pytest.approx(2.7)
    for step in range(60, 160):  # and what is free is used up
        monitor(step, matrices[step % 60])
        clock.now += 0.1
    assert (monitor.to_xarray()["status"] == "postponed").any()
    assert monitor._budget.spent <= 5 + 0.03 * monitor._budget.elapsed


def test_records_keep_to_the_budget(monkeypatch):
    monkeypatch.setattr("attractor.heads.monitor.head_monitor.FREE", 0.0)
    clock, tokens = Clock(), random_tokens()
    matrices = random_matrices(400)

    def slow(state):
        clock.now += 0.01
        return state

    slow_down(monkeypatch, clock, 0.5)
    heads = [head_of(tokens, name, slow) for name in "ab"]
    monitor = HeadMonitor(heads, every=20, budget=0.05, clock=clock)
    worst = 0.0
    for step in range(400):
        monitor(step, matrices[step])
        worst = max(worst, monitor._budget.spent - 0.05 * monitor._budget.elapsed)
        clock.now += 0.1
    found = monitor.to_xarray()
    assert worst <= 0.52  # one record, of which nothing was known
    assert monitor.overhead == pytest.approx(0.05, abs=0.52 / 40)
    postponed, optimal = (int((found["status"] == w).sum()) for w in ("postponed", "optimal"))
    assert postponed > 0 and optimal >= 3
    late = (found["due"] >= 0) & (found["due"] < found["step"])
    assert bool((found["status"].values[late.values] == "optimal").any())
    counts = (found["status"] == "optimal").sum("step").values
    assert abs(int(counts[0]) - int(counts[1])) <= 1  # heads take turns
    known = found["selected_probability"].notnull().any(("sequence", "query"))
    assert bool((known | (found["status"] != "optimal")).all())


def test_without_a_budget_nothing_waits():
    tokens, matrices = random_tokens(), random_matrices(30)
    monitor = HeadMonitor(head_of(tokens), every=10, budget=None)
    again = HeadMonitor(head_of(tokens), every=10, budget=None)
    found = watch_all(monitor, matrices, range(30))
    same = watch_all(again, matrices, range(30)).drop_vars("seconds")
    assert found["step"].values.tolist() == [0, 10, 20]
    assert found.drop_vars("seconds").identical(same)
    changes = found["selection_changes"].values[:, 0]
    selected = found["selected"].values[:, 0, :, 0]
    assert np.isnan(changes[0])
    assert changes[1] == (selected[0] != selected[1]).sum() > 0


def test_records_in_files_and_tables(tmp_path):
    monitor = HeadMonitor(head_of(random_tokens(), "block 0, head 1"), every=1, budget=None)
    assert "block 0, head 1" in str(monitor)
    monitor(3, random_matrices(1)[0])
    assert "16 constraints are certified" in str(monitor)
    broken = HeadMonitor(head_of(random_tokens()), every=1, budget=None)
    broken(0, np.full((6, 6), np.nan))
    assert "not finite: The matrix or the tokens hold NaN" in str(broken)
    monitor.save(tmp_path / "heads.nc")
    assert load_records(tmp_path / "heads.nc").identical(monitor.to_xarray())
    with pytest.raises(InvalidInputError, match="nc"):
        monitor.save(tmp_path / "heads.txt")
    (tmp_path / "other.nc").write_bytes(b"nothing")
    with pytest.raises(FileFormatError, match="damaged or is no NetCDF"):
        load_records(tmp_path / "other.nc")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"every": 0}, "every"),
        ({"budget": -1}, "budget"),
        ({"tolerance": 0}, "tolerance"),
        ({"geometry": "none"}, "geometry"),
        ({"max_constraints": True}, "max_constraints"),
    ],
)
def test_settings_are_checked(change, message):
    with pytest.raises(InvalidInputError, match=message):
        HeadMonitor(head_of(random_tokens()), **change)


def test_heads_are_checked():
    tokens = random_tokens()
    with pytest.raises(InvalidInputError, match="share a name"):
        HeadMonitor([head_of(tokens), head_of(tokens)])
    with pytest.raises(InvalidInputError, match="no heads"):
        HeadMonitor([])
    with pytest.raises(InvalidInputError, match="NaN"):
        head_of((np.full((1, 2, 3), np.nan), np.ones((1, 3))))
    with pytest.raises(InvalidInputError, match="instances"):
        head_of(at.Tokens(np.ones((2, 1, 2, 3)), np.ones((2, 1, 3))))
    with pytest.raises(InvalidInputError, match="matrix"):
        WatchedHead("head", np.eye(3), tokens)
    with pytest.raises(InvalidInputError, match=r"Give \(6, 6\)"):
        HeadMonitor(head_of(tokens)).check(np.eye(3))
    words = r"16 constraints.*\(rows=\), or max_constraints=16"
    with pytest.raises(InvalidInputError, match=words):
        HeadMonitor(head_of(tokens), max_constraints=15)


def test_rows_of_padding_are_in_no_number():
    rng = np.random.default_rng(3)
    keys, queries, W = rng.normal(size=(3, 5, 6)), rng.normal(size=(3, 2, 6)), np.eye(6)
    mask, rows = np.ones((3, 2, 5), bool), np.array([[1, 1], [1, 0], [1, 0]], bool)
    mask[1:, :, 3:] = False
    mask[~rows] = False
    padded = HeadMonitor([head_of((keys, queries, mask, rows), "all")])
    padded.record(0, W)
    alone = HeadMonitor([head_of((keys[[0, 0, 1, 2]], queries[rows], mask[rows]), "all")])
    alone.record(0, W)
    found, expected = (one.to_xarray().isel(step=0, head=0) for one in (padded, alone))
    for name in ("margin_ratio", "norm", "constraints", "ties", "log_unselected_probability"):
        assert float(found[name]) == pytest.approx(float(expected[name]), rel=1e-9)
    np.testing.assert_array_equal(found["selected"].values[~rows], -1)
    assert np.isnan(found["selected_probability"].values[~rows]).all()
    for name in ("selected", "selected_probability"):
        same = expected[name].values.ravel()
        np.testing.assert_allclose(found[name].values[rows], same, rtol=1e-12)
    assert "nan" not in str(padded)


def test_a_hook_counts_from_the_step_it_is_told():
    tokens = random_tokens()
    monitor = HeadMonitor(head_of(tokens), every=1, budget=None)
    hook = monitor.hook(random_matrices(1)[0], first=0)
    hook()
    hook()
    assert monitor.to_xarray()["step"].values.tolist() == [0, 1]


@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e200])
def test_norms_and_stable_rank_of_matrices_of_any_size(scale):
    tokens = random_tokens()
    monitor = HeadMonitor(head_of(tokens), every=1, budget=None)
    monitor.record(0, scale * np.diag([3.0, 2.0, 1.0, 0.0, 0.0, 0.0]))
    data = monitor.to_xarray().isel(head=0, step=0)
    assert float(data["stable_rank"]) == pytest.approx(14 / 9)
    assert float(data["frobenius_norm"]) == pytest.approx(scale * 14**0.5)
    assert float(data["nuclear_norm"]) == pytest.approx(scale * 6)


def test_unknown_multipliers_are_guessed_at_the_size_of_the_known_ones():
    left, right = np.eye(3)[:, :2] - 1.0, np.ones((3, 1))
    places = {name: np.arange(3) if name == "sequence" else np.zeros(3, int)
              for name in ("sequence", "query", "token")}  # fmt: skip
    problem = at.MarginProblem(left, right, **places)
    guessed = {
        size: _with_nearest(
            problem, np.array([size, np.nan, np.nan])[:, None, None], np.ones((2, 1))
        )
        for size in (0.0, 1.0, 8.0)
    }
    assert guessed[8.0][0] == 8.0 and guessed[8.0][1:].max() > 0
    np.testing.assert_allclose(guessed[8.0][1:], 8 * guessed[1.0][1:])
    np.testing.assert_array_equal(guessed[0.0][1:], guessed[1.0][1:])
