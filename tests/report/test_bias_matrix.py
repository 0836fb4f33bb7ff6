import json

import numpy as np
import pytest
import runs

from attractor.maps import BiasMatrix
from attractor.maps.commands import matrix as module
from attractor.maps.commands.matrix import write_bias_report
from attractor.support.errors import InvalidInputError


@pytest.fixture
def matrix():
    """Two rows of the shared one, under a name that has to be escaped."""
    data = runs.bias_matrix().data.isel(optimizer=[0, 2])
    named = data.assign_coords(optimizer=["normalized GD", "signs & more"])
    return BiasMatrix(named.assign(reads=("optimizer", ["directions", ""])))


@pytest.mark.long
def test_the_page_of_several_optimizers(matrix, tmp_path):
    summary = write_bias_report(tmp_path / "out", matrix, title="Who goes where", source="8 sets")
    page = (tmp_path / "out" / "report.html").read_text()
    assert "Who goes where" in page
    assert "signs &amp; more: maximizes the l_inf margin" in page
    assert "directions" in page
    assert f"same tokens in {matrix.same_selection} of 8 data sets" in page
    assert page.count("data:image/svg+xml") == 2
    assert json.loads((tmp_path / "out" / "summary.json").read_text()) == summary
    again = BiasMatrix.load(tmp_path / "out" / "matrix.nc")
    np.testing.assert_array_equal(again.data["W"], matrix.data["W"])


@pytest.mark.long
def test_many_optimizers_are_grouped_by_their_answers(matrix, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_MOST_ANSWERS", 1)
    write_bias_report(tmp_path / "out", matrix, title="", source="")
    page = (tmp_path / "out" / "report.html").read_text()
    assert "<li>Maximizes the l_inf margin: signs &amp; more.</li>" in page
    assert "<summary>Each of them, with its numbers</summary>" in page


@pytest.mark.long
def test_the_page_of_one_optimizer_ranks_the_norms(matrix, tmp_path):
    one = BiasMatrix(matrix.data.isel(optimizer=[1]))
    write_bias_report(tmp_path / "out", one, title="signs", source="8 sets")
    page = (tmp_path / "out" / "report.html").read_text()
    first = page.index(">l_inf</th>")
    assert all(first < page.index(f">{norm}</th>") for norm in ("frobenius", "l_1", "nuclear"))
    assert "same tokens in" not in page
    assert page.count("data:image/svg+xml") == 1


def test_a_folder_of_somebody_else_is_refused(matrix, tmp_path):
    (tmp_path / "thesis.tex").write_text("...")
    with pytest.raises(InvalidInputError, match="did not write"):
        write_bias_report(tmp_path, matrix, title="", source="")
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.tex"]
