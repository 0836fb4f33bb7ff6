"""The page itself: what can be folded away, named, linked to, and shown to those who cannot see."""

import re

import numpy as np
import pytest
import xarray as xr
from matplotlib.figure import Figure

from attractor.plots import save_figure, style
from attractor.report.page import FigureFile, Folded, Link, Section, Table, render_page
from attractor.report.seen import course, runs


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    with style():
        save_figure(Figure(figsize=(3, 1)), folder, "one")
    sections = [
        Section("A & b", ["text"], Table(("x", "y"), [(Link("1", "c/d"), "2")], caption="cap")),
        Section("Rest", table=Table(("x",), [("3",)]), fold="closed", parts=[Section("c/d")]),
        Section("Drawn", figure=FigureFile("one", "A line.", "It <rises>.")),
    ]
    findings = [("1 fails: ", Link("c/d")), Folded("more", ["other"])]
    return render_page("T", "s", findings, sections, figures=folder, command="demo", footer="f")


def test_links_lead_to_headings_of_the_page(page):
    targets = re.findall(r'href="#([^"]*)"', page)
    assert len(targets) == 2 and set(targets) <= set(re.findall(r' id="([^"]*)"', page))
    assert "<li>1 fails: <a href=" in page


def test_tables_and_columns_have_names(page):
    assert page.count('<th scope="col">') == 3 and page.count('<th scope="row">') == 2
    assert "<caption>cap</caption>" in page
    named = re.findall(r'<table aria-labelledby="([^"]*)"', page)
    assert named == ["rest"] and 'id="rest"' in page


def test_neither_intervals_nor_numbers_are_parted(tmp_path):
    rows = [
        ("gd, step 10", "0.5 [-0.1, inf]", "1.7e-06", "5 %"),
        ("a name of " + 20 * "x", "y", "z", 46 * "w"),
    ]
    sections = [Section("A", table=Table(("n", "a", "b", "c"), rows))]
    page = render_page("T", "s", [], sections, figures=tmp_path, footer="f", command="check")
    assert '<td>0.5 <span class="whole">[-0.1, inf]</span></td>' in page
    assert '<td><span class="whole">1.7e-06</span></td><td>5\N{NO-BREAK SPACE}%</td>' in page
    assert '<th scope="row">gd,\N{NO-BREAK SPACE}step\N{NO-BREAK SPACE}10</th>' in page
    assert '<th scope="row" class="long">a name' in page and '<td class="long">www' in page


def test_what_weighs_less_is_folded_away(page):
    assert "<details><summary>more</summary><ul><li>other</li></ul></details>" in page
    closed = page[page.index("<details><summary><h2") : page.index("Drawn")]
    assert closed.index("<h3") < closed.index("</details>")
    assert "<script" not in page


def test_a_picture_says_what_is_seen_and_fits_its_column(page):
    assert 'alt="It &lt;rises&gt;."' in page and "<figcaption>A line. <a" in page
    assert "width: 403px; min-width: 288px" in page  # 3 inches, and 1.4 times as much


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ([0.2, 0.5, 0.99], "rises from 0.2 to 0.99"),
        ([3.0, np.nan, 1.0], "falls from 3 to 1"),
        ([1.0, 1.001, 1.0], "stays near 1"),
        ([1.0, 5.0, 2.0], "rises from 1 to 2, with 5 at most between"),
        ([2.0, -3.0, 1.0], "falls from 2 to 1, with -3 at least between"),
        ([np.nan], "has no value"),
        ([1e-30, 1e-28], "is zero to rounding"),
    ],
)
def test_the_course_of_a_curve(values, words):
    assert course(np.array(values)) == words


def test_medians_of_trials_in_words():
    values = xr.DataArray(
        [[0.0, 1.0], [np.nan, 3.0], [1.0, 2.0]],
        dims=("seed", "step"),
        coords={"step": [0, 10]},
    )
    said = runs({"n = 3": xr.Dataset({"loss": values})}, {"loss": "loss", "norm": "norm"})
    assert said == "Medians over trials. n = 3: loss rises from 0.5 to 2 (iteration 0 to 10)."
