import json

import numpy as np
import pytest
import xarray as xr
from matplotlib.figure import Figure

from attractor import prompts
from attractor.cli.session import ExitCode
from attractor.prompts import AttentionHead, Gaussian, load_head, save_head
from attractor.prompts.length import required_length
from attractor.results.provenance import read_provenance


@pytest.fixture
def head(tmp_path):
    """Queries of one dimension, whose score deviations are their distance from zero."""
    path = tmp_path / "head.npz"
    save_head(path, AttentionHead(np.eye(1), np.eye(1)), Gaussian.isotropic(1))
    return path


def test_says_how_long_a_prompt_must_be(run_json, head):
    found, result = run_json("prompt-length", head, "--length", 500, "--queries", 40)
    assert result.exit_code == found["exit_code"] == 0
    assert found["command"] == "prompt-length"
    assert found["horizon"] == pytest.approx(1)
    assert [one["error"] for one in found["required"]] == [0.3, 0.1, 0.03]
    least = required_length(np.linspace(0.1, 3, 100), 0.1).min()
    assert found["required"][1]["tokens"]["0.05"] == pytest.approx(least, rel=0.05)
    (at,) = found["at"]
    assert at["length"] == 500 and 0 < at["error"]["0.5"] < 1
    assert found["non_gaussian_defect"]["along"] == 0
    words = result.stderr.replace("\n", " ")
    assert "tokens for 10 %" in words and "none, as the law of the tokens is Gaussian" in words
    again, _ = run_json("prompt-length", head, "--length", 500, "--queries", 40)
    assert again == found


@pytest.mark.long
def test_a_report_has_pictures_and_numbers(run_json, tmp_path):
    run_json("example", "head", "samples.npz", "--samples")
    given = ("--error", 0.05, "--out", "report")
    found, result = run_json("prompt-length", "samples.npz", *given)
    assert result.exit_code == 0, result.stderr
    assert found["queries"] == 300 and found["non_gaussian_defect"]["held_out"] == 5000
    assert [one["error"] for one in found["required"]] == [0.3, 0.1, 0.05, 0.03]
    folder = tmp_path / "report"
    page = (folder / "report.html").read_text()
    assert page.count("<figure>") == page.count("<thead>") == 1
    assert "Non-Gaussian defect: " in page
    for suffix in (".png", ".svg"):
        assert read_provenance(folder / f"error_by_length{suffix}").name == "prompt-length"
    assert "2512.11784" in read_provenance(folder / "summary.json").bibtex[0]
    with xr.open_dataset(folder / "prompt_length.nc", engine="h5netcdf") as data:
        assert data.sizes["query"] == 300 and (data["required_length"] >= 1).all()
    assert json.loads((folder / "summary.json").read_text())["horizon"] == found["horizon"]


def test_a_head_whose_scores_do_not_vary_has_a_report_that_comes_out_the_same(
    run_json, tmp_path, monkeypatch
):
    # What pictures show is looked at above and beside; drawing takes longer than all the rest.
    monkeypatch.setattr(prompts.plots, "error_by_length_figure", lambda *_, **__: Figure())
    save_head("still.npz", AttentionHead(np.zeros((2, 2)), np.eye(2)), Gaussian.isotropic(2))
    found, result = run_json("prompt-length", "still.npz", "--queries", 5, "--out", "report")
    assert result.exit_code == 0, result.stderr
    assert found["required"][0]["tokens"] == {"0.05": None, "0.5": None, "0.95": None}
    again, result = run_json("reproduce", "report/error_by_length.svg", "--data", "still.npz")
    assert result.exit_code == 0, result.stderr
    assert again["same"] and again["name"] == "prompt-length" and not again["changed"]


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("missing.npz",), "there is no file"),
        (("head.npz", "--error", 0), "error: 0 is not above 0"),
        (("head.npz", "--length", 10**13), "lengths: 1e+13 is beyond 1e+12"),
        (("unsaid.npz",), "divide_by_sqrt_head_dimension: unsaid.npz does not say"),
    ],
)
def test_bad_input_ends_in_a_message_and_leaves_nothing(run, head, tmp_path, arguments, named):
    with np.load(head) as stored:
        kept = {name: stored[name] for name in stored if not name.startswith("divide")}
    np.savez(tmp_path / "unsaid.npz", **kept)
    result = run("prompt-length", *arguments, "--out", "report")
    assert result.exit_code == ExitCode.BAD_INPUT
    assert named in result.stderr.replace("\n", " ")
    assert result.stdout == "" and not (tmp_path / "report").exists()


def test_help_shows_what_a_file_may_say(run):
    shown = run("prompt-length", "--help").stdout
    for name in ("W_Q", "W_K", "W_V", "divide_by_sqrt_head_dimension", "covariance", "queries"):
        assert f" {name} " in shown


@pytest.mark.parametrize("suffix", [".npz", ".safetensors"])
@pytest.mark.parametrize("samples", [(), ("--samples",)])
def test_examples_are_valid_files(run_json, suffix, samples):
    found, result = run_json("example", "head", f"a{suffix}", *samples, "--seed", 3)
    assert result.exit_code == 0, result.stderr
    loaded = load_head(found["file"])
    assert loaded.head.score_matrix.shape == (8, 8)
    assert hasattr(loaded.tokens, "points") == bool(samples)
    assert f"attractor prompt-length a{suffix}" in result.stderr.replace("\n", " ")
