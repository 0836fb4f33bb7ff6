import json
import warnings

import numpy as np
import pytest
import runs
from runs import STEP
from sizes import USUAL, drawn

import attractor as at


@pytest.fixture
def data():
    return drawn(USUAL)


@pytest.fixture
def run():
    return runs.trajectory()


def predicted(tokens, head):
    return at.solve(at.MarginProblem.from_selection(tokens, at.optimal_tokens(tokens, head)))


def test_the_measures_agree_with_their_definition(data, run):
    verdict = at.verify(run)
    trial = {"instance": 2, "seed": 1}
    W = run.W()[1, 0]
    tokens = data[0][1]
    problem = at.MarginProblem.from_selection(tokens, at.attended_tokens(tokens, W))
    solution = at.solve(problem)
    margins = np.einsum("md,de,me->m", problem.left, W, problem.right)
    ratio = margins.min() / np.linalg.norm(W) * np.linalg.norm(solution.W)
    assert float(verdict.margin_ratio.sel(trial)) == pytest.approx(ratio, rel=1e-8)
    cosine = np.sum(W * solution.W) / np.linalg.norm(W) / np.linalg.norm(solution.W)
    assert float(verdict.correlation.sel(trial)) == pytest.approx(cosine, rel=1e-10)
    scores = tokens.scores(W)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    mass = (weights.max(-1) / weights.sum(-1)).mean()
    assert float(verdict.selected_probability.sel(trial)) == pytest.approx(mass, rel=1e-10)


def test_every_trial_and_step_is_there(data, run):
    verdict = at.verify(run)
    assert verdict.margin_ratio.shape == (2, 2)
    assert verdict.data["margin_ratio"].sizes == {"instance": 2, "seed": 2, "step": len(run.steps)}
    assert not verdict.impossible.any()
    assert verdict.errors == []
    medians = verdict.data["margin_ratio"].median(("instance", "seed"))
    assert 0.7 < float(medians[-1]) <= 1
    assert float(medians[-1]) > float(medians.sel(step=100, method="nearest"))


def test_curves_that_rates_are_fitted_to(data, run):
    verdict = at.verify(run)
    curves = verdict.data
    shortfall = 1 - verdict.correlation.values
    divergence = curves["directional_bregman_divergence"].isel(step=-1).values
    np.testing.assert_allclose(divergence, shortfall, rtol=1e-9)
    np.testing.assert_array_equal(curves["log_time"], run.data["log_time"])
    tokens, W = data[0][1], run.W()[1, 0]
    problem = at.MarginProblem.from_selection(tokens, at.attended_tokens(tokens, W))
    own = {"instance": 2, "seed": 1}
    assert float(curves["solution_norm"].sel(own)) == pytest.approx(at.solve(problem).value)
    assert verdict.rate("norm", "log_time").trials == 4
    assert verdict.rate().quantity == "1 - correlation"


def test_selection_predicted_and_reached(data, run):
    tokens, head = data
    verdict = at.verify(run)
    best = at.optimal_tokens(tokens, head).index
    reached = at.attended_tokens(tokens, np.moveaxis(run.W(), 1, 0)).index.swapaxes(0, 1)
    assert np.array_equal(verdict.data["predicted"].values[..., 0], best)
    assert np.array_equal(verdict.data["reached"].values[..., 0], reached)
    expected = (reached == best[:, None]).mean(-1)
    np.testing.assert_allclose(verdict.selection_agreement, expected)


def test_a_given_solution_is_held_against_every_seed(data, run):
    solution = predicted(*data)
    verdict = at.verify(run, solution)
    W = run.W()[0, 1]
    cosine = np.sum(W * solution.W[0]) / np.linalg.norm(W) / np.linalg.norm(solution.W[0])
    assert float(verdict.correlation[0, 1]) == pytest.approx(cosine)
    same = at.verify(run, selection=at.optimal_tokens(*data))
    np.testing.assert_allclose(same.correlation, verdict.correlation, rtol=1e-10)


def test_one_data_set_needs_no_axis_of_instances(data):
    tokens, head = data[0][1], at.LinearHead(data[1].weight[1])
    run = at.train(tokens, head, STEP, steps=50, seeds=3)
    verdict = at.verify(run, predicted(tokens, head))
    assert verdict.margin_ratio.shape == (1, 3)


@pytest.mark.parametrize("selection", ["reached at end", "reached at step"])
@pytest.mark.parametrize("geometry", ["l_inf", at.Schatten(3)])
def test_the_norm_may_be_chosen(run, geometry, selection):
    named = geometry if isinstance(geometry, str) else geometry.name
    chosen = at.verify(run, geometry=geometry, selection=selection)
    own = at.verify(at.Trajectory(**(vars(run) | {"geometry": named})), selection=selection)
    assert chosen.data.identical(own.data)
    assert chosen.solution.geometry.name == chosen.summary()["geometry"] == named
    assert chosen.trajectory.geometry == "frobenius"
    text = f"The norm, {named}, was chosen; the one that training descended is frobenius."
    assert chosen.why == f"{own.why} {text}"
    assert not chosen.errors


@pytest.mark.long
def test_the_norm_may_be_chosen_for_an_optimizer_without_one(data):
    run = at.train(*data, at.adam(0.1), steps=30, parameterization="KQ")
    with pytest.raises(at.InvalidInputError, match=r"^geometry: .*not known"):
        at.verify(run)
    verdict = at.verify(run, geometry="l_inf")
    assert verdict.solution.geometry == at.Lp(np.inf)
    assert verdict.why.endswith("the one that training descended is not known.")
    assert np.isfinite(verdict.margin_ratio).any()


@pytest.mark.long
def test_the_norm_may_be_chosen_for_a_path():
    verdict = at.verify(runs.path(), geometry="l_1")
    assert verdict.axis == "radius" and verdict.solution.geometry.name == "l_1"
    np.testing.assert_array_less(verdict.margin_ratio, runs.verdict(runs.path).margin_ratio)


def test_a_norm_beside_a_solution_is_refused(data, run):
    with pytest.raises(at.InvalidInputError, match=r"^geometry: a solution was given as well"):
        at.verify(run, predicted(*data), geometry="frobenius")
    with pytest.raises(at.InvalidInputError, match=r"^geometry: none is called 'round'"):
        at.verify(run, geometry="round")


def test_the_selection_may_be_read_at_each_step(data, run):
    at_end, at_step = at.verify(run), at.verify(run, selection="reached at step")
    np.testing.assert_allclose(at_end.margin_ratio, at_step.margin_ratio)
    early = {"step": 1}
    attended = at_step.data["margin_ratio"].sel(early) >= 0
    assert attended.where(at_step.data["margin_ratio"].sel(early).notnull(), True).all()
    assert not (at_end.data["margin_ratio"].sel(early) >= 0).all()


def test_a_ratio_above_one_is_an_error(data, run):
    solution = predicted(*data)
    good = at.verify(run, solution)
    run_W = run.data["W"].copy(deep=True)
    run_W[:] = solution.W[:, None, None]
    exact = at.Trajectory(**(vars(run) | {"data": run.data.assign(W=run_W)}))
    verdict = at.verify(exact, solution)
    np.testing.assert_allclose(verdict.margin_ratio, 1, rtol=1e-9)
    assert verdict.errors == []
    verdict.data["margin_ratio"][:] = 1.001
    assert "above 1" in verdict.errors[0]
    assert "ERROR" in str(verdict)
    assert "ERROR" not in str(good)


def test_last_weights_alone_still_give_a_verdict(data):
    verdict = at.verify(at.train(*data, STEP, steps=300, seeds=2, seed=1, weights="last"))
    assert verdict.data.sizes["step"] == 1
    np.testing.assert_array_equal(verdict.margin_ratio, runs.verdict(runs.trajectory).margin_ratio)


def test_infeasible_references_are_counted():
    tokens = at.Tokens([[[1.0], [-1.0]], [[1.0], [-1.0]]], [[1.0], [1.0]], [1, -1])
    head = at.LinearHead([1.0])
    run = at.train(tokens, head, STEP, steps=5)
    solution = predicted(tokens, head)
    verdict = at.verify(run, solution)
    assert verdict.summary()["feasible"] == 0
    assert np.isnan(verdict.margin_ratio).all()
    assert "0 of 1" in str(verdict)


def test_tables_and_files(run, tmp_path):
    verdict = at.verify(run)
    text = str(verdict)
    assert "margin ratio" in text
    assert max(map(len, text.splitlines())) <= 80
    verdict.to_json(tmp_path / "verdict.json")
    summary = json.loads((tmp_path / "verdict.json").read_text())
    assert summary["trials"] == 4
    assert summary["margin_ratio"]["median"] == pytest.approx(float(verdict.margin_ratio.median()))
    verdict.to_csv(tmp_path / "verdict.csv")
    lines = (tmp_path / "verdict.csv").read_text().splitlines()
    assert len(lines) == 5
    assert lines[0].startswith("instance,seed,")
    assert "<table" in verdict._repr_html_()
    assert set(verdict.to_xarray()["margin_ratio"].dims) == {"instance", "seed", "step"}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"selection": "reached"}, "reached at end"),
        ({"selection": at.Selection(np.ones((2, 1, 4), bool), np.zeros((2, 1), bool))}, "mask"),
    ],
)
def test_bad_selections_are_refused(run, arguments, words):
    with pytest.raises(at.InvalidInputError, match=words):
        at.verify(run, **arguments)


def test_a_solution_that_does_not_fit_is_refused(run, data):
    other, head = drawn(USUAL._replace(d=6))
    with pytest.raises(at.InvalidInputError, match="solution"):
        at.verify(run, predicted(other, head))
    with pytest.raises(at.InvalidInputError, match="Give the one or the other"):
        at.verify(run, predicted(*data), selection="reached at step")


def test_zero_start_has_no_direction_at_step_zero(data):
    run = at.train(*data, STEP, steps=20, initial=np.zeros((5, 5)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        verdict = at.verify(run, selection="reached at step")
    assert np.isnan(verdict.data["margin_ratio"].isel(step=0)).all()
    assert np.isfinite(verdict.margin_ratio).all()


def test_a_solution_of_other_data_is_refused(run, data):
    tokens, head = data
    solution = predicted(*data)
    other = predicted(*drawn(USUAL, seed=3))
    assert other.W.shape == solution.W.shape
    scaled = at.Tokens(2 * tokens.keys, tokens.queries, tokens.labels)
    for wrong in (other, solution[[1, 0]], solution[0], predicted(scaled, head)):
        with pytest.raises(at.InvalidInputError, match=r"^solution: it is one of other data"):
            at.verify(run, wrong)
    at.verify(run, solution)


def test_rows_made_by_hand_must_name_their_tokens(run, data):
    problem = predicted(*data).problem
    rows = (problem.left, problem.right, problem.bounds, problem.equality, problem.present)
    by_hand = at.MarginProblem(*rows, selection=problem.selection)
    with pytest.raises(at.InvalidInputError, match="do not say which tokens they are about"):
        at.verify(run, at.solve(by_hand))
    places = {name: getattr(problem, name) for name in ("sequence", "query", "token")}
    named = at.MarginProblem(*rows, selection=problem.selection, **places)
    assert "about the tokens of this run" in at.verify(run, at.solve(named)).why


def with_matrices(run, W):
    return at.Trajectory(**(vars(run) | {"data": run.data.assign(W=run.data["W"] * 0 + W)}))


def test_undefined_weights_are_no_infeasible_problem(run):
    with pytest.raises(at.InvalidInputError, match=r"^trajectory: .*finite.*trained: 4"):
        at.verify(with_matrices(run, np.nan))
    some = run.data["W"].copy(deep=True)
    some[0, 0] = np.nan
    verdict = at.verify(at.Trajectory(**(vars(run) | {"data": run.data.assign(W=some)})))
    counts = verdict.summary()["comparison"]
    assert counts == {"compared": 3, "the matrix is not finite": 1}
    assert "1 of 4: the matrix is not finite" in " ".join(str(verdict).split())


def test_a_matrix_of_zeros_is_no_infeasible_problem(run, data):
    zero = with_matrices(run, 0.0)
    assert at.verify(zero).summary()["comparison"] == {"no direction is predicted": 4}
    assert "Train for longer" in at.verify(zero).why
    held = at.verify(zero, predicted(*data))
    assert held.summary()["comparison"] == {"the matrix is zero": 4}


def test_matrices_and_keys_whose_squares_overflow_are_measured(run, data):
    tokens, _ = data
    usual = at.verify(run)
    for size in (1e-200, 1e200):
        W = run.data["W"] * size
        verdict = at.verify(at.Trajectory(**(vars(run) | {"data": run.data.assign(W=W)})))
        np.testing.assert_allclose(verdict.margin_ratio, usual.margin_ratio, rtol=1e-9)
        np.testing.assert_allclose(verdict.correlation, usual.correlation, rtol=1e-9)
        np.testing.assert_allclose(verdict.kkt_residual, usual.kkt_residual, rtol=1e-6)
    large = at.Tokens(1e200 * tokens.keys, tokens.queries, tokens.labels, values=tokens.keys)
    verdict = at.verify(at.Trajectory(**(vars(run) | {"tokens": large})))
    np.testing.assert_allclose(verdict.margin_ratio, usual.margin_ratio, rtol=1e-9)
    np.testing.assert_allclose(verdict.correlation, usual.correlation, rtol=1e-9)
