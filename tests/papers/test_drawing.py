"""Figures go on where they were stopped, and are not computed twice."""

import dataclasses

import numpy as np
import pytest
import xarray as xr
from matplotlib.figure import Figure

from attractor.papers.drawing import compute, draw
from attractor.papers.figure import PaperFigure, at_least
from attractor.papers.ledger.packs import get_figure
from attractor.papers.max_margin.data import joint_training
from attractor.results.paper import MAX_MARGIN
from attractor.results.provenance import embed, read_provenance
from attractor.support.errors import InvalidInputError
from attractor.training import normalized_gradient_descent, train

TRAINED = []
"""Learning rates of the runs begun."""


def two_runs(request):
    case = joint_training(all_labels_support=True)
    request.uses("data", case.tokens, case.head)
    norms = []
    for rate in (0.1, 0.2):
        TRAINED.append(rate)
        run = train(
            case.tokens,
            case.head,
            normalized_gradient_descent(rate),
            steps=request.settings["steps"],
            seeds=request.seeds,
            seed=request.seed,
            checkpoint=request.checkpoint(f"{rate:g}"),
        )
        norms.append(run.data["norm"].values[0, :, -1])
    return xr.Dataset({"norm": (("rate", "seed"), np.array(norms))})


FIGURE = PaperFigure(
    name="max-margin/two-runs",
    paper=MAX_MARGIN,
    statement="none: two runs for a test",
    summary="norms of two runs",
    published="nothing",
    sizes={size: {"seeds": 2, "steps": 50} for size in ("quick", "small", "paper")},
    compute=two_runs,
    draw=lambda data: Figure(),
    caption=lambda data: "Norms.",
    readings=lambda data: [at_least("norm", data["norm"].min(), 0.0)],
)


@pytest.mark.long
def test_an_interrupted_figure_goes_on_and_comes_out_the_same(tmp_path, monkeypatch):
    whole, _ = compute(FIGURE)
    folder = tmp_path / "max-margin"

    uninterrupted = train

    def interrupted(tokens, head, optimizer, **options):
        if len(TRAINED) == 2:
            raise KeyboardInterrupt
        return uninterrupted(tokens, head, optimizer, **options)

    TRAINED.clear()
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setitem(two_runs.__globals__, "train", interrupted)
        draw(FIGURE, tmp_path)
    assert not (folder / "two-runs.nc").exists()
    assert any(file.is_file() for file in (folder / ".two-runs-unfinished").rglob("*"))
    drawn = draw(FIGURE, tmp_path)
    xr.testing.assert_identical(drawn.data, whole)
    assert drawn.computed and not (folder / ".two-runs-unfinished").exists()


def test_a_finished_figure_is_not_computed_again_unless_other_things_are_asked(tmp_path):
    drawn = draw(FIGURE, tmp_path)
    TRAINED.clear()
    again = draw(FIGURE, tmp_path)
    xr.testing.assert_identical(again.data, drawn.data)
    assert not again.computed and not TRAINED
    assert draw(FIGURE, tmp_path, seed=1).computed and TRAINED


def test_data_of_the_user_are_refused_where_they_are_not_taken(tmp_path):
    with pytest.raises(InvalidInputError, match="data: max-margin/two-runs is made of no data"):
        draw(FIGURE, tmp_path, source=tmp_path)
    taking = dataclasses.replace(FIGURE, takes="a folder of texts")
    with pytest.raises(InvalidInputError, match="Give a folder of texts"):
        draw(taking, tmp_path, source=tmp_path / "nowhere")


def test_a_figure_of_other_data_is_computed_anew(tmp_path):
    asked = []

    def lengths(request):
        asked.append(request.source)
        return xr.Dataset({"length": ((), len(str(request.source)))})

    taking = dataclasses.replace(
        FIGURE, takes="anything", compute=lengths,
        readings=lambda data: [at_least("length", data["length"], 0.0)],
    )  # fmt: skip
    for source in (None, tmp_path, tmp_path, tmp_path.parent):
        drawn = draw(taking, tmp_path / "out", source=source)
    assert asked == [None, tmp_path, tmp_path.parent]
    again, made = compute(taking, **drawn.provenance.arguments)
    assert again.equals(drawn.data) and made == drawn.provenance


def test_data_of_another_version_are_computed_again(tmp_path):
    figure = get_figure("max-margin/global-and-local")
    drawn = draw(figure, tmp_path)
    stored = drawn.files["nc"]
    embed(stored, dataclasses.replace(drawn.provenance, version="0.0.1"))
    assert draw(figure, tmp_path).computed
    assert read_provenance(stored) == drawn.provenance
