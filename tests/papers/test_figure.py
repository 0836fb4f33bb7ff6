"""Captions take their numbers from readings, and from what is shown beside them."""

import numpy as np
import pytest
import xarray as xr
from matplotlib.figure import Figure

from attractor.papers import Reading
from attractor.papers.figure import Artifact, Figures, Readings, at_least, at_most, close_to
from attractor.results.paper import MAX_MARGIN
from attractor.support.errors import InvalidInputError

NORMS = xr.DataArray(
    [[31.0, 4.0], [7.0, 5.0]],
    {"kernel": ["exact", "as published"], "p": [1.75, 2.0]},
    ("kernel", "p"),
)
DATA = xr.Dataset({"norm": NORMS}, {"step": [0, 10, 2000]}, {"entropy": np.float64(0.25)})


def readings(data):
    norms = data["norm"].sel(kernel="exact")
    return Readings(
        at_least("largest norm", norms.max(), 30, "largest"),
        at_most("least norm", norms.min(), 3),
        norm=data["norm"],
        mean=norms.mean(),
        words="from zero",
    )


def figure(caption, artifact=None):
    return Figures(MAX_MARGIN).figure(
        "norms",
        "norms of runs",
        statement="none: norms for a test",
        published="none",
        sizes={size: {"seeds": 1} for size in ("quick", "small", "paper")},
        compute=lambda request: DATA,
        draw=lambda data: Figure(),
        readings=readings,
        caption=caption,
        artifact=artifact,
    )


@pytest.mark.parametrize(
    ("template", "caption"),
    [
        ("Norms up to {largest:.1f}.", "Norms up to 31.0."),
        ("Runs {words}: {mean:.2f} on average.", "Runs from zero: 17.50 on average."),
        ("{norm[exact][1.75]:.0f} and {norm[as published][2.0]:.0f}", "31 and 5"),
        ("{last[step]:,} steps, {sizes[p]} exponents", "2,000 steps, 2 exponents"),
        ("Entropy {attrs[entropy]:.3f}", "Entropy 0.250"),
    ],
)
def test_captions_name_numbers_by_their_keys(template, caption):
    assert figure(template).caption(DATA) == caption


def test_what_captions_name_besides_is_not_among_the_readings():
    found = figure("").readings(DATA)
    assert [reading.text for reading in found] == ["largest norm", "least norm"]
    assert [reading.agrees for reading in found] == [True, False]


def test_the_artifact_is_described_where_it_is_drawn():
    artifact = Artifact("runs stop", "As published: they stop at {norm[as published][1.75]:.0f}.")
    drawn = figure("They go on to {largest:.0f}.", artifact)
    assert drawn.artifact == "runs stop"
    assert drawn.caption(DATA) == "They go on to 31. As published: they stop at 7."
    assert drawn.caption(DATA.sel(kernel=["exact"])) == "They go on to 31."


def test_figures_are_named_after_their_paper_or_the_one_they_stand_beside():
    assert figure("").name == "max-margin/norms"
    beside = Figures(MAX_MARGIN, "next-token").figure(
        "norms", "", statement="", published="", sizes={}, compute=lambda request: DATA,
        draw=lambda data: Figure(), readings=readings, caption="",
    )  # fmt: skip
    assert beside.name == "next-token/norms" and beside.paper is MAX_MARGIN


def test_two_numbers_of_one_key_are_refused():
    with pytest.raises(InvalidInputError, match="key: 'norm' is that of two numbers"):
        Readings(at_least("norm", 1.0, 0.5, "norm"), at_least("the same", 2.0, 0.5, "norm"))
    with pytest.raises(InvalidInputError, match="key: 'norm' is that of two numbers"):
        Readings(at_least("norm", 1.0, 0.5, "norm"), norm=1.0)


def test_readings_need_no_key():
    assert Reading("norm", 2.0, ">= 1", True) == at_least("norm", 2.0, 1)
    assert close_to("norm", 2.0, 2.1, 0.2).expected == "2.1 to within 0.2"
