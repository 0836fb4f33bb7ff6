import numpy as np
from matplotlib.figure import Figure

from attractor import plots
from attractor.analysis import compare_geometries
from attractor.geometry import Frobenius, Lp, Nuclear, Schatten
from attractor.margin import MarginProblem


def test_a_panel_for_each_geometry_and_every_ratio_as_a_number(tmp_path):
    rng = np.random.default_rng(0)
    problem = MarginProblem(rng.normal(size=(3, 4)), rng.normal(size=(3, 4)))
    data = compare_geometries(problem, [Frobenius(), Lp(np.inf), Schatten(1.5)])
    with plots.style():
        figure = plots.geometries_figure(data)
        plots.save_figure(figure, tmp_path, "geometries")
    assert (tmp_path / "geometries.png").stat().st_size > 5000
    *maps, scale = figure.subfigs[0].axes
    assert scale.get_ylim() == (-1, 1)
    titles = [axes.get_title() for axes in maps]
    assert titles == ["Frobenius", r"$\ell_{\infty}$", "Schatten-$1.5$"]
    numbers = {text.get_text() for text in figure.subfigs[1].axes[0].texts}
    assert numbers == {f"{ratio:.2f}" for ratio in data["margin_ratio"].values.ravel()}


def test_a_matrix_of_zeros_is_drawn():
    problem = MarginProblem(np.eye(2), np.eye(2), 0.0)
    with plots.style():
        axes = Figure().subplots()
        image = plots.solution_map(axes, compare_geometries(problem, [Frobenius()])["W"][0])
    assert image.get_clim() == (-1, 1)


def test_norms_are_labeled_as_papers_print_them_and_those_of_the_users_own_as_they_are_called():
    known = [Frobenius(), Nuclear(), Lp(1), Lp(np.inf), Schatten(1.5)]
    assert [plots.geometry_label(geometry.name) for geometry in known] == [
        "Frobenius", "nuclear", r"$\ell_{1}$", r"$\ell_{\infty}$", "Schatten-$1.5$"
    ]  # fmt: skip
    for own in ("max", "row_max", "l_of_mine", "schatten_weighted"):
        assert plots.geometry_label(own) == own
