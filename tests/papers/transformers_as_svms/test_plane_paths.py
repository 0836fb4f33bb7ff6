"""Training in the plane, and the data it is shown on."""

import numpy as np
import pytest

from attractor.geometry import Frobenius, Nuclear
from attractor.papers import get_figure
from attractor.papers.drawing import compute
from attractor.papers.figure import Request
from attractor.papers.transformers_as_svms.data import two_sequences_of_five, two_sequences_of_three
from attractor.papers.transformers_as_svms.descent import descent
from attractor.papers.transformers_as_svms.plane_paths import plane_paths


def cosine(one, other):
    return (one * other).sum() / np.linalg.norm(one) / np.linalg.norm(other)


def test_solutions_of_the_published_data():
    case = two_sequences_of_three()
    frobenius, nuclear = case.solution(Frobenius()), case.solution(Nuclear())
    assert case.optimal.index.tolist() == [0, 2]
    assert frobenius.value == pytest.approx(8.6857, abs=1e-4)
    assert nuclear.value == pytest.approx(9.7548, abs=1e-4) and nuclear.rank == 1
    assert cosine(frobenius.W, nuclear.W) == pytest.approx(0.8904, abs=1e-4)


def test_the_tokens_on_the_right_are_the_best_of_the_sequences_of_five():
    case = two_sequences_of_five()
    np.testing.assert_array_equal(case.tokens.keys[:, 0], [[1, 0.5], [1, -0.5]])
    assert case.optimal.index.tolist() == [0, 0]
    assert (case.tokens.keys[:, 1:, 0] < 0).all()


@pytest.fixture(scope="module")
def paths():
    request = Request("quick", {"seeds": 2, "steps": 500}, seed=3)
    return plane_paths(two_sequences_of_three(), request)


def test_paths_start_where_no_query_is_moved(paths):
    np.testing.assert_array_equal(paths["path"].sel(step=0), 0)


def test_correlations_on_the_way(paths):
    W = paths["correlation"].sel(kernel="exact", parameterization="W")
    np.testing.assert_allclose(W.sel(step=100), 0.625, atol=1e-3)
    np.testing.assert_allclose(W.sel(step=500), 0.9941, atol=1e-4)
    KQ = paths["correlation"].sel(kernel="exact", parameterization="KQ")
    assert (KQ.sel(step=100) > 0.9).all() and (KQ.sel(step=500) > 0.997).all()


def test_keys_and_queries_start_anew_with_every_seed(paths):
    first, second = paths["path"].sel(kernel="exact", parameterization="KQ", step=5)
    assert not np.allclose(first, second)
    again = Request("quick", {"seeds": 1, "steps": 500}, seed=4)
    alone = plane_paths(two_sequences_of_three(), again)["path"].sel(parameterization="KQ", step=5)
    np.testing.assert_array_equal(alone.squeeze(), second)


def test_a_path_is_where_the_matrix_takes_the_query(paths):
    end = paths.isel(step=-1, kernel=0, start=0).sel(parameterization="W")
    W = np.linalg.solve(paths["queries"].values, end["path"].values).T
    assert np.linalg.norm(W) == pytest.approx(float(end["norm"]))
    correlation = cosine(W, end["solution"].values)
    assert correlation == pytest.approx(float(end["correlation"]), abs=1e-9)
    margins = two_sequences_of_three().solution().problem.margins(W[None])
    ratio = margins.min() / np.linalg.norm(W) * 8.6857350
    assert ratio == pytest.approx(float(end["margin_ratio"]), abs=1e-6)


def test_published_training_differs_in_what_it_says():
    exact, published = descent("KQ"), descent("KQ", as_published=True)
    assert exact["kernel"] == "exact" and published["kernel"] == "plain"
    assert exact["optimizer"].settings["per_factor"] and exact["optimizer"].rule.weight_decay == 0
    assert published["optimizer"].rule.weight_decay == pytest.approx(4.44e-16, rel=1e-3)
    assert descent("W", as_published=True)["optimizer"].rule.weight_decay == 0
    assert descent("W", as_published=True)["optimizer"].settings["eps"] > 0
    assert descent("KQ", decay=True)["kernel"] == "exact"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["paths", "separating-lines"])
def test_published_ends(name):
    data, _ = compute(get_figure(f"transformers-as-svms/{name}"), size="paper", as_published=True)
    ends = data["correlation"].isel(step=-1, start=0)
    assert (ends.sel(parameterization="W") >= 0.9995).all()
    assert (ends.sel(parameterization="KQ") >= 0.999).all()
    norms = data["norm"].isel(step=-1, start=0).sel(parameterization="KQ")
    assert norms.sel(kernel="exact") > 20 * norms.sel(kernel="as published")
