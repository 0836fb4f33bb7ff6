import json

import numpy as np
import pytest
import xarray as xr

from attractor.analysis import verify
from attractor.geometry import Frobenius, Lp
from attractor.maps.bias import BiasMatrix, Method, bias_matrix, standard_methods, which_norm
from attractor.margin import MarginProblem, solve
from attractor.margin.selection import Selection
from attractor.support.errors import FileFormatError, InvalidInputError
from attractor.tokens import Tokens
from attractor.training import normalized_gradient_descent, train


@pytest.mark.long
def test_own_norm_ratios_are_those_of_the_verdict(data, methods, matrix):
    for method in methods:
        steps = method.steps or 400
        run = train(*data, method.optimizer, steps=steps, parameterization=method.parameterization)
        own = matrix.data["margin_ratio"].sel(optimizer=method.name, norm=run.geometry)
        assert matrix.own_norm(method.name) == run.geometry
        np.testing.assert_allclose(own, verify(run).margin_ratio.values[:, 0], rtol=1e-8)


def test_ratios_by_hand(data, matrix):
    tokens, head = data
    W = train(tokens, head, normalized_gradient_descent(0.3), steps=400).W()[5, 0]
    scores = tokens.scores(W[None])[5]
    chosen = scores.argmax(-1)
    margins = np.take_along_axis(scores, chosen[..., None], -1) - scores
    smallest = np.sort(margins, axis=-1)[..., 1].min()
    one = Tokens(tokens.keys[5], tokens.queries[5])
    problem = MarginProblem.from_selection(one, Selection.from_index(one, chosen[:, 0]))
    for geometry in (Frobenius(), Lp(np.inf), Lp(1.75)):
        expected = smallest / geometry.norm(W) * solve(problem, geometry).value
        found = matrix.data["margin_ratio"].sel(optimizer="normalized GD", norm=geometry.name)
        assert float(found[5]) == pytest.approx(expected, rel=1e-8)


def test_the_own_norm_wins_and_no_ratio_exceeds_one(matrix):
    ratios = matrix.data["margin_ratio"]
    assert float(ratios.max()) <= 1 + 1e-9
    for name, norm in (("normalized GD", "frobenius"), ("signs", "l_inf")):
        assert matrix.best(name).norm == norm
        assert matrix.highest(name)[norm] == 8
        assert matrix.answer(name).norm == norm


def test_curves_end_at_the_ratios_and_pass_halfway(matrix):
    data = matrix.data
    np.testing.assert_array_equal(data["margin_ratio_curve"].isel(record=-1), data["margin_ratio"])
    steps = data["step"].sel(optimizer="signs").values
    assert steps[-1] == 3200 and 1600 in steps
    middle = data["margin_ratio_curve"].sel(optimizer="signs").values[..., steps == 1600]
    halfway = data["margin_ratio_halfway"].sel(optimizer="signs").values
    np.testing.assert_array_equal(middle[..., 0], halfway)
    assert np.isnan(data["margin_ratio_curve"].values[..., np.isnan(steps)][2]).all()


def test_a_method_is_compared_in_its_own_norm_besides(data, methods):
    found = bias_matrix(*data, methods=methods[1:], norms=[Frobenius()], steps=50)
    assert found.columns == ["frobenius"]
    assert found.compared("signs") == ["frobenius", "l_inf"]
    assert found.compared("keys and queries") == ["frobenius", "nuclear"]
    assert np.isfinite(found.data["margin_ratio"]).all()


def test_matched_starts_end_on_the_same_tokens(data, methods, matrix):
    matched = bias_matrix(*data, methods=methods[:2], steps=400, matched=True)
    assert matched.same_selection == 8
    assert matched.data.attrs["start"].startswith("5 times")
    assert matched.best("normalized GD").norm == "frobenius"
    assert matrix.same_selection < 8


def test_saved_and_read_back(matrix, tmp_path):
    for name in ("matrix.nc", "matrix.csv", "matrix.json"):
        matrix.save(tmp_path / name)
    again = BiasMatrix.load(tmp_path / "matrix.nc")
    xr.testing.assert_identical(again.data, matrix.data)
    assert again.summary() == matrix.summary()
    assert json.loads((tmp_path / "matrix.json").read_text()) == matrix.summary()
    lines = (tmp_path / "matrix.csv").read_text().splitlines()
    assert len(lines) == 1 + 3 * 7 * 8
    with pytest.raises(InvalidInputError, match="path"):
        matrix.save(tmp_path / "matrix.txt")
    for content in (b"nothing", None):
        if content is None:
            xr.Dataset({"a": 1}).to_netcdf(tmp_path / "other.nc", engine="h5netcdf")
        else:
            (tmp_path / "other.nc").write_bytes(content)
        with pytest.raises(FileFormatError, match="other"):
            BiasMatrix.load(tmp_path / "other.nc")


def test_it_prints_in_a_terminal(matrix):
    text = str(matrix)
    assert max(len(line) for line in text.splitlines()) <= 80
    for words in ("normalized GD", "l_1.75", "maximizes the frobenius margin", "* its own norm"):
        assert words in text
    assert "maximizes" in matrix._repr_html_()


def test_which_norm_asks_about_one_optimizer(data, matrix):
    found = which_norm(*data, normalized_gradient_descent(0.3), steps=400)
    (method,) = found.methods
    assert found.answer(method).norm == "frobenius"
    np.testing.assert_array_equal(
        found.data["margin_ratio"][0], matrix.data["margin_ratio"].sel(optimizer="normalized GD")
    )


def test_raw_steps_that_came_to_rest_are_no_answer(data):
    import optax

    found = which_norm(*data, optax.sgd(1e6), steps=100)
    assert found.answer("the optimizer").outcome == "not settled"
    assert "terminated or diverged" in found.answer("the optimizer").reason


def test_bad_input_is_refused_before_training(data, methods):
    tokens, head = data
    single = Tokens(tokens.keys[0], tokens.queries[0], tokens.labels[0])
    cases = [
        ((single, head), {}, "tokens"),
        (data, {"methods": []}, "methods"),
        (data, {"methods": [methods[0]] * 2}, "methods"),
        (data, {"methods": [Method("p", normalized_gradient_descent(1), "p")]}, "parameterization"),
        (data, {"steps": 0}, "steps"),
        (data, {"seed": -1}, "seed"),
    ]
    for nouns, options, argument in cases:
        with pytest.raises(InvalidInputError, match=argument):
            bias_matrix(*nouns, **{"methods": methods, **options})
    with pytest.raises(InvalidInputError, match="size"):
        standard_methods("large")


def test_step_sizes_are_fixed_beforehand():
    found = {method.name: method for method in standard_methods("paper", 6000)}
    rates = {name: method.optimizer.settings.get("learning_rate") for name, method in found.items()}
    assert rates["normalized GD"] == rates["spectral descent"] == rates["greedy coordinate"] == 0.3
    assert rates["sign descent"] == rates["(K, Q) normalized GD"] == 0.1
    assert rates["mirror descent, p = 2"] == 0.3
    assert rates["mirror descent, p = 1.75"] == 0.1
    assert rates["mirror descent, p = 3"] == 100
    assert found["greedy coordinate"].steps == 20_000
    assert len({method.name for method in standard_methods("quick")}) == 7


def test_many_norms_stand_in_tables_below_each_other(matrix):
    names = [f"a_norm_of_{place}" for place in range(9)]
    data = matrix.data.isel(norm=[0] * 9, optimizer=[0]).assign_coords(norm=names)
    data["compared"] = "norm", [True] * 9
    data["own_norm"] = "optimizer", [names[-1]]
    text = str(BiasMatrix(data))
    assert max(map(len, text.splitlines())) <= 80
    assert all(text.count(name) >= 1 for name in names)
    assert text.count("normalized GD ") >= 3 and text.count("*") == 2
