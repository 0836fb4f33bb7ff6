"""A norm of the user's own, from the first training to a report made again."""

from pathlib import Path

import pytest

from attractor.cli.session import ExitCode

OPTIMIZER = """

def rows():
    from attractor.training import steepest_descent

    return steepest_descent(0.1, geometry=RowSums())
"""


@pytest.mark.long
def test_a_run_in_a_norm_of_one_s_own_is_verified_compared_and_reproduced(
    run, run_json, file, tmp_path, blank_pictures
):
    def refused(*words):
        found, result = run_json(*words)
        assert result.exit_code == ExitCode.BAD_INPUT and found["error"]["argument"] == "norm"
        return found["error"]["message"]

    own = Path(__file__).parents[1] / "margin" / "own_geometry.py"
    # Registered, it would be known to what this process does next, as to no other process.
    text = own.read_text().replace("@register_geometry\n", "")
    (tmp_path / "own_rows.py").write_text(text + OPTIMIZER)
    train = ("train", file, "--optimizer", "own_rows:rows", "--seeds", "2", "--steps", "20")
    assert "a.nc --norm own_rows:RowSums" in run(*train, "--out", "a.nc").stdout
    assert "Give your own as --norm module:name" in refused("verify", "a.nc")
    found, result = run_json("compare", "a.nc", "a.nc")
    assert found["error"]["argument"] == "FIRST" and "row_sums" in found["error"]["message"]

    result = run("verify", "a.nc", "--norm", "own_rows:RowSums", "--out", "report")
    assert "--optimizer MODULE:FACTORY" in result.stdout and "was chosen" not in result.stdout
    page = ("reproduce", "report/report.html", "--data", "a.nc")
    assert "a file is never trusted to name" in refused(*page)
    assert "in this order" in refused(*page, "--norm", "x:A", "--norm", "y:B")
    found, result = run_json(*page, "--norm", "own_rows:RowSums")
    assert found["same"] and found["compared"] > 20, result.stderr
    found, result = run_json("compare", "report", "report")
    assert result.exit_code == 0 and {one["second_is"] for one in found["numbers"]} == {"the same"}
