import importlib.util
import json
import sys
import types

import pytest
from made_checkpoints import moved_along_the_solution

from attractor.cli.session import LONG, ExitCode
from attractor.heads import load_captured, load_checkpoint_audit, planted_heads
from attractor.heads.audit.result import load_audit
from attractor.heads.command import expected_work, parse_heads, parse_layers
from attractor.results.provenance import read_provenance
from attractor.support.errors import InvalidInputError

FEW = ("--heads", "1.0,1.1", "--draws", 19)


@pytest.fixture(scope="module")
def content(tmp_path_factory, optimized):
    path = tmp_path_factory.mktemp("heads") / "heads.nc"
    planted_heads(115).save(path)
    return path.read_bytes()


@pytest.fixture
def heads(tmp_path, content):
    path = tmp_path / "heads.nc"
    path.write_bytes(content)
    return path


def test_says_which_heads_are_more_than_chance(run_json, heads):
    found, result = run_json("audit", heads, *FEW)
    assert result.exit_code == found["exit_code"] == 0, result.stderr
    assert found["counts"] == {"learnable": 1, "not told apart": 1}
    assert [(one["layer"], one["head"], one["learnable"]) for one in found["heads"]] == [
        (1, 0, "learnable"),
        (1, 1, "not told apart"),
    ]
    assert found["heads"][0]["accuracy"] > 0.7 and found["heads"][0]["p"] == 0.05
    words = " ".join(result.stderr.split())
    assert words.startswith("1 of 2 heads pairs keys with queries in a way that 19 random pairings")
    assert words.count("What heads select:") == 1


def test_a_report_and_the_same_again(run_json, heads, tmp_path, blank_pictures):
    found, result = run_json("audit", heads, *FEW, "--out", "report", "--seed", 3)
    assert result.exit_code == 0, result.stderr
    assert found["report"] == str(tmp_path / "report" / "index.html")
    folder = tmp_path / "report"
    stored = json.loads((folder / "audit.json").read_text())
    assert stored["sentence"] == found["sentence"] and stored["settings"]["seed"] == 3
    for name in ("index.html", "audit.json", "audit.nc", "map.png", "map.svg", "tokens.svg",
                 "curves.png", "curves.svg", "curves.nc"):  # fmt: skip
        provenance = read_provenance(folder / name)
        assert provenance.name == "audit" and provenance.arguments["heads"] == "1.0,1.1"
    assert provenance.settings["captured model"] == "planted heads"
    assert load_audit(folder / "audit.nc").counts == found["counts"]
    assert len(stored["learning_curves"]) == 2 and len(stored["calibration"]) == 3
    assert not (folder / "capture").exists()
    result = run_json("reproduce", "report/audit.json")[1]
    assert result.exit_code == ExitCode.BAD_INPUT
    assert "its command takes model; 0 are given" in " ".join(result.stderr.split())
    again, result = run_json("reproduce", "report/map.svg", "--data", heads)
    assert result.exit_code == 0, result.stderr
    assert again["same"] and not again["changed"] and again["name"] == "audit"
    planted_heads(115, seed=1).save(tmp_path / "other.nc")
    again, result = run_json("reproduce", "report/audit.nc", "--data", "other.nc")
    assert not again["same"] and any("data" in words for words in again["changed"])


def test_training_texts_are_asked_for_margin_solutions(run_json, heads, monkeypatch):
    from made_audit import made_control

    monkeypatch.setattr("attractor.heads.positive_control", lambda sizes, **options: made_control())
    monkeypatch.setattr("attractor.heads.audit.margin_solution.MOST_QUERIES", 16)
    asked = ("--heads", "0.0,1.1", "--draws", 19, "--training-texts", "--norm", "nuclear")
    found, result = run_json("audit", heads, *asked, "--control")
    assert result.exit_code == 0, result.stderr
    assert [one["margin"] for one in found["heads"]] == ["elsewhere"] * 2
    assert set(found["heads"][0]["margin_ratio"]) == {"frobenius", "nuclear"}
    assert "none is at a margin solution" in found["sentence"]
    assert found["findings"][-1].startswith("Positive control: 24 of 24 heads")


@pytest.fixture
def checkpoints(tmp_path):
    """Heads that moved away from the margin solution of what they select, at both ends."""
    paths = [tmp_path / name for name in ("first.nc", "last.nc")]
    for captured, path in zip(moved_along_the_solution(-0.6), paths, strict=True):
        captured.save(path)
    return paths


@pytest.mark.long
def test_which_way_heads_move(run_json, checkpoints, tmp_path, blank_pictures):
    first, last = checkpoints
    given = ("--draws", 39, "--checkpoints", first, "--out", "report", "--store", "store")
    found, result = run_json("audit", last, *given)
    assert result.exit_code == 0, result.stderr
    heads = found["checkpoints"]["heads"]
    assert [one["direction"] for one in heads] == ["away", "away"]
    assert "From 0 to 1, directions of 2 heads" in " ".join(result.stderr.split())
    assert {path.name for path in (tmp_path / "store").glob("*.nc")} == {
        "head_0_0.nc", "head_0_1.nc", "moved_0_0_from_0.nc", "moved_0_1_from_0.nc",
    }  # fmt: skip
    folder = tmp_path / "report"
    kept = load_checkpoint_audit(folder / "checkpoints.nc").data
    assert kept["direction"].values.tolist() == [[["away", "away"]]]
    page = (folder / "index.html").read_text()
    assert "Which way heads move" in page and "checkpoints 0 first.nc, 1 last.nc" in page
    assert "checkpoints of training were not compared" not in page
    again, result = run_json(
        "reproduce", folder / "checkpoints.png", "--data", last, "--checkpoints", first
    )
    assert result.exit_code == 0 and again["same"] and not again["changed"], result.stderr
    result = run_json("reproduce", folder / "audit.json", "--data", last)[1]
    assert result.exit_code == ExitCode.BAD_INPUT
    assert "its command takes heads; 0 are given" in " ".join(result.stderr.split())
    result = run_json("audit", last, "--checkpoints", tmp_path)[1]
    assert "is no .nc file, as MODEL is" in " ".join(result.stderr.split())


def test_a_store_holds_what_is_done(run_json, heads, tmp_path):
    first = run_json("audit", heads, *FEW, "--store", "store")[0]
    assert list((tmp_path / "store").iterdir())
    assert run_json("audit", heads, *FEW, "--store", "store")[0] == first
    result = run_json("audit", heads, *FEW, "--store", "store", "--seed", 1)[1]
    assert result.exit_code == ExitCode.BAD_INPUT


@pytest.fixture
def fake_torch(monkeypatch, content):
    """A stand-in for the room that runs models: it captures what was planted."""
    calls = []

    def capture_heads(model, tokenizer, texts, *, path, **options):
        calls.append((model, tokenizer, texts, options))
        path.write_bytes(content)

    room = types.ModuleType("attractor.heads.capture")
    room.capture_heads = capture_heads
    monkeypatch.setitem(sys.modules, "attractor.heads.capture", room)
    known, find_spec = ("torch", "transformers"), importlib.util.find_spec

    def found(name, *rest):
        return name if name in known else find_spec(name, *rest)

    monkeypatch.setattr(importlib.util, "find_spec", found)
    return calls


@pytest.fixture
def model(tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    return folder


@pytest.mark.parametrize(
    ("option", "value", "named"),
    [
        ("--layers", "1,6", "layers: there is no layer 6. Give some of 0 to 5."),
        ("--heads", "0.3,9.3", "heads: there is no layer 9. Give some of 0 to 5."),
        ("--heads", "1.12", "heads: layer 1 has no head 12. Give heads from 0 to 11."),
    ],
)
def test_what_a_model_does_not_have_is_refused_before_it_is_loaded(
    run_json, model, tmp_path, fake_torch, option, value, named
):
    (tmp_path / "texts.txt").write_text("one two\nthree\n")
    (model / "config.json").write_text('{"num_hidden_layers": 6, "num_attention_heads": 12}')
    result = run_json("audit", model, "texts.txt", option, value)[1]
    assert result.exit_code == ExitCode.BAD_INPUT and fake_torch == []
    assert named in " ".join(result.stderr.split())
    (model / "config.json").write_text("{")
    result = run_json("audit", model, "texts.txt", option, value)[1]
    assert result.exit_code == ExitCode.BAD_INPUT and "config.json" in result.stderr


@pytest.mark.parametrize("option, value", [("--layers", "1,2"), ("--heads", "1.0")])
def test_layers_without_heads_are_refused_before_a_model_is_loaded(
    run_json, model, tmp_path, fake_torch, option, value
):
    (tmp_path / "texts.txt").write_text("one two\nthree\n")
    kinds = ["conv", "linear_attention", "full_attention", "mamba", "sliding_attention"]
    shape = {"num_hidden_layers": 5, "num_attention_heads": 4, "layer_types": kinds}
    (model / "config.json").write_text(json.dumps(shape))
    result = run_json("audit", model, "texts.txt", option, value)[1]
    assert result.exit_code == ExitCode.BAD_INPUT and fake_torch == []
    words = f"{option[2:]}: layer 1 has no attention heads. Give some of 2, 4."
    assert words in " ".join(result.stderr.split())


def test_the_time_said_is_that_of_what_is_asked():
    what, seconds = expected_work(72, 200, 64, 99)
    assert (what, seconds) == ("Capture and audit of 72 heads", pytest.approx(120))
    assert expected_work(None, 200, 64, 99) == ("Capture and audit of a model of 72 heads", seconds)
    what, few = expected_work(1, 200, 64, 99)
    assert what == "Capture and audit of 1 head" and few < LONG  # and nothing is said
    assert expected_work(12, 400, 64, 99)[1] == 2 * expected_work(12, 200, 64, 99)[1]


def test_checkpoints_are_captured_with_the_same_texts(run_json, model, tmp_path, fake_torch):
    (tmp_path / "texts.txt").write_text("one two\nthree\n")
    earlier = tmp_path / "earlier"
    earlier.mkdir()
    result = run_json("audit", model, "texts.txt", *FEW, "--checkpoints", earlier)[1]
    assert result.exit_code == ExitCode.BAD_INPUT
    assert "is no folder of a model, as MODEL is" in " ".join(result.stderr.split())
    (earlier / "config.json").write_text("{}")
    found, result = run_json("audit", model, "texts.txt", *FEW, "--checkpoints", earlier)
    assert result.exit_code == 0, result.stderr
    assert [call[0] for call in fake_torch] == [earlier, model]
    assert fake_torch[0][2:] == fake_torch[1][2:]
    assert {one["direction"] for one in found["checkpoints"]["heads"]} == {
        "not asked: no linear projections"
    }


def test_a_model_is_captured_and_kept(run_json, model, tmp_path, fake_torch, blank_pictures):
    (tmp_path / "texts.txt").write_text("one  two\n\n three \n", encoding="utf-8-sig")
    given = ("--documents", 7, "--length", 33, "--seed", 2)
    _, result = run_json("audit", model, "texts.txt", *FEW, *given, "--out", "report")
    assert result.exit_code == 0, result.stderr
    ((path, tokenizer, texts, options),) = fake_torch
    assert path == model and tokenizer is None and texts == ["one two", "three"]
    assert options == {
        "documents": 7, "length": 33, "layers": [1], "sink_positions": None, "seed": 2,
        "progress": True,
    }  # fmt: skip
    kept = tmp_path / "report" / "capture" / "heads.nc"
    assert load_captured(kept).layers == [0, 1, 2]
    assert "model on texts.txt: 3 layers, 115 documents" in (
        (tmp_path / "report" / "index.html").read_text()
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model", "report", "texts.txt"]
    again, result = run_json("reproduce", "report/index.html", "--data", kept)
    assert result.exit_code == 0 and again["same"] and not again["changed"]


def test_without_a_report_nothing_is_left(run_json, model, tmp_path, fake_torch):
    folder = tmp_path / "texts"
    folder.mkdir()
    for name in ("b.txt", "a.txt", "c.csv"):
        (folder / name).write_text(f"text of\n{name}")
    assert run_json("audit", model, folder, *FEW)[1].exit_code == 0
    assert fake_torch[0][2] == ["text of a.txt", "text of b.txt"]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model", "texts"]


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("bert-base-uncased",), "no folder; names of a hub are not looked up, as nothing is down"),
        (("missing.nc",), "Run `attractor example heads heads.nc`"),
        (("texts.txt",), "texts.txt is a file of another kind"),
        (("empty", "texts.txt"), "the folder empty has no config.json"),
        (("model",), "TEXTS: a model needs texts"),
        (("model", "empty"), "TEXTS: the folder empty has no .txt file"),
        (("model", "missing.txt"), "TEXTS: there is no file missing.txt"),
        (("model", "texts.txt"), "pip install 'attractor[transformers]'"),
        (("heads.nc", "texts.txt"), "TEXTS: heads.nc holds heads that are captured already"),
        (("heads.nc", "--length", 20), "length: heads.nc holds heads that are captured already"),
        (("heads.nc", "--alpha", 2), "alpha: "),
        (("heads.nc", "--draws", 5), "draws: of 5 no p-value can be below"),
        (("heads.nc", "--norm", "nuclear"), "norm: margin solutions are not asked for"),
        (("heads.nc", "--layers", "0", "--heads", "1.0"), "heads: layers are given, too"),
        (("heads.nc", "--layers", "7"), "layer 7 was not captured"),
        (("heads.nc", "--heads", "1.4"), "layer 1 has no head 4"),
        (("heads.nc", "--heads", "1-4"), "heads: '1-4' is no list of heads"),
    ],
)
def test_bad_input_ends_in_a_message_and_leaves_nothing(
    run, heads, model, tmp_path, monkeypatch, arguments, named
):
    monkeypatch.setattr("attractor.heads.command.importlib.util.find_spec", lambda name: None)
    (tmp_path / "empty").mkdir()
    (tmp_path / "texts.txt").write_text("a text\n")
    result = run("audit", *arguments, "--out", "report")
    assert result.exit_code == ExitCode.BAD_INPUT, result.output
    assert named in " ".join(result.stderr.split())
    assert result.stdout == "" and not (tmp_path / "report").exists()


def test_texts_that_are_none(run, model, tmp_path, fake_torch):
    for content, named in ((b"\n \n", "has no text"), (b"\xff\xfe", "UTF-8"), (b"a\0b", "UTF-8")):
        (tmp_path / "texts.txt").write_bytes(content)
        result = run("audit", model, "texts.txt")
        assert result.exit_code == ExitCode.BAD_INPUT and named in result.stderr


def test_lists_of_layers_and_heads():
    assert parse_layers("0, 3-5,4") == [0, 3, 4, 5]
    assert parse_heads("3.1, 2.8,2.8") == [(2, 8), (3, 1)]
    for text in ("", "a", "3-1", "1,,2", "-1", "0-99999"):
        with pytest.raises(InvalidInputError, match="layers"):
            parse_layers(text)
    for text in ("", "2", "2.8.1", "2.8;3.1"):
        with pytest.raises(InvalidInputError, match="heads"):
            parse_heads(text)


def test_the_example_says_what_comes_next(run_json, tmp_path):
    found, result = run_json("example", "heads", "heads.nc", "--documents", 5, "--seed", 4)
    assert result.exit_code == 0 and found["seed"] == 4
    assert load_captured(tmp_path / "heads.nc").layers == [0, 1, 2]
    assert "1.0  subject of the verb" in result.stderr
    assert "attractor audit heads.nc --out audit-report" in " ".join(result.stderr.split())
    assert run_json("example", "heads", "heads.npz")[1].exit_code == ExitCode.BAD_INPUT
