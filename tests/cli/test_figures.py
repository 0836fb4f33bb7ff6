import pytest

from attractor.cli.session import ExitCode

FIGURE = "max-margin/global-and-local"


def test_lists_the_figures(run, run_json):
    found, result = run_json("figures")
    assert result.exit_code == 0
    assert FIGURE in found["figures"]
    assert FIGURE in run("figures").stdout


@pytest.mark.long
def test_draws_a_figure_with_all_its_files_once(run_json, tmp_path):
    found, result = run_json("figures", FIGURE, "--as-published", "--out", "here")
    assert result.exit_code == 0, result.stderr
    assert found["figures"][FIGURE]["agrees"]
    assert "as published" in found["figures"][FIGURE]["caption"]
    names = {path.name for path in (tmp_path / "here" / "max-margin").iterdir()}
    assert names == {f"global-and-local-as-published.{end}" for end in ("nc", "png", "svg", "txt")}
    assert FIGURE in (tmp_path / "here" / "index.html").read_text()
    _, again = run_json("figures", FIGURE, "--as-published", "--out", "here")
    assert "of an earlier run" in again.stderr
    run_json("figures", "next-token/collocations-and-orders", "--out", "here")
    page = (tmp_path / "here" / "index.html").read_text()
    assert page.count("<figure>") == 2 and f"{FIGURE}, as published" in page


@pytest.mark.parametrize(
    ("arguments", "argument"),
    [
        (("max-margin/global-and-lokal",), "name"),
        (("--of", "nobody"), "paper"),
        ((FIGURE, "--size", "huge"), "size"),
        (("max-margin/attention-sparsity", "--as-published"), "as_published"),
        ((FIGURE, "--all"), "NAME"),
        (("--of", "transformers-as-svms", "--data", "nowhere"), "data"),
        (("--data", "nowhere"), "data"),
        (("--seeds", "3"), "seeds"),
    ],
)
def test_bad_input_before_any_work(run_json, arguments, argument, tmp_path):
    found, result = run_json("figures", *arguments)
    assert result.exit_code == ExitCode.BAD_INPUT
    assert found["error"]["argument"] == argument
    assert not (tmp_path / "attractor-figures").exists()
