"""Figures go on where they were stopped, and are not computed twice."""

import pytest
import xarray as xr

from attractor.papers import get_figure
from attractor.papers.drawing import compute, draw
from attractor.papers.mirror_descent.figures import key_query

FIGURE = get_figure("mirror-descent/key-query")


def test_an_interrupted_figure_goes_on_and_comes_out_the_same(tmp_path, monkeypatch):
    train, exponents = key_query.train, []

    def stopped(tokens, head, optimizer, **options):
        exponents.append(optimizer.settings["p"])
        if len(exponents) == 2:
            raise KeyboardInterrupt
        return train(tokens, head, optimizer, **options)

    whole, _ = compute(FIGURE, seeds=2)
    monkeypatch.setattr(key_query, "train", stopped)
    with pytest.raises(KeyboardInterrupt):
        draw(FIGURE, tmp_path, seeds=2)
    assert not (tmp_path / "mirror-descent" / "key-query.nc").exists()
    unfinished = tmp_path / "mirror-descent" / ".key-query-unfinished"
    assert any(file.is_file() for file in unfinished.rglob("*"))
    monkeypatch.undo()
    drawn = draw(FIGURE, tmp_path, seeds=2)
    xr.testing.assert_identical(drawn.data, whole)
    assert drawn.computed and not unfinished.exists()
    again = draw(FIGURE, tmp_path, seeds=2)
    xr.testing.assert_identical(again.data, whole)
    assert not again.computed
