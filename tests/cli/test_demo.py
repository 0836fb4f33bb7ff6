import pytest

import attractor.cli.commands.demo


@pytest.mark.usefixtures("optimized")
def test_digits(run_json, tmp_path, monkeypatch):
    """The smallest and the largest data sets of the demo, at its own settings."""
    monkeypatch.setattr(attractor.cli.commands.demo, "SIZES", (6, 24))
    found, result = run_json("demo", "--out", tmp_path / "report")
    assert result.exit_code == 0
    small, large = found["sizes"]
    assert small["feasible"] == small["data_sets"] == large["data_sets"] == 40
    assert 0 < large["feasible"] < 40
    for size in (small, large):
        assert size["kept_as_predicted"] > 3 * size["chance"]
        assert size["whole_selection_as_predicted"] < 10
        assert size["largest_gap"] <= 1e-9
    assert small["correlation_median"] >= 0.999
    (finding,) = found["findings"]
    assert (
        finding in result.stderr.replace("\n", " ").replace("  ", " ")
        and "blind chance gives 6.25 %" in finding
    )
    assert "Report:" in result.stderr
    page = (tmp_path / "report" / "report.html").read_text()
    assert page.count("data:image/svg+xml;base64,") == 1 and finding[:30] in page
    for name in ("patches.png", "patches.svg", "measures_n6.nc", "trajectory_n24.nc"):
        assert (tmp_path / "report" / name).is_file()
