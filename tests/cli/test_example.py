import pytest

from attractor.cli.session import ExitCode
from attractor.files import load


@pytest.mark.parametrize("suffix", [".npz", ".safetensors"])
def test_writes_a_valid_file(run_json, tmp_path, suffix):
    found, result = run_json("example", "tokens", f"a{suffix}", "--out", tmp_path / "folder")
    assert result.exit_code == 0
    assert found["file"] == str(tmp_path / "folder" / f"a{suffix}")
    loaded = load(found["file"])
    assert loaded.tokens.keys.shape == (6, 8, 10)
    assert loaded.head is not None


def test_seeds_differ(run, tmp_path):
    for seed in (0, 1):
        run("example", "tokens", tmp_path / f"{seed}.npz", "--seed", seed)
    assert (load(tmp_path / "0.npz").tokens.keys != load(tmp_path / "1.npz").tokens.keys).all()


def test_other_endings(run, tmp_path):
    result = run("example", "tokens", tmp_path / "a.txt")
    assert result.exit_code == ExitCode.BAD_INPUT
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("law", ["gaussian", "mixture", "product", "empirical"])
def test_a_head_of_every_law(run_json, law):
    found, result = run_json("example", "head", "head.npz", "--law", law)
    assert result.exit_code == 0
    assert load(found["file"]).tokens.dimension == 8
    lines = result.stderr.splitlines()
    marks = {"gaussian": "covariance", "mixture": "mixture_means", "product": "coordinate_laws"}
    assert any(line.split()[:1] == [marks.get(law, "weights")] for line in lines)
    refused = run_json("example", "head", "other.npz", "--law", "normal")[1]
    assert refused.exit_code == ExitCode.BAD_INPUT
