import json
import re
from pathlib import Path

import numpy as np
import pytest
from made_audit import made_audit, made_control, made_curves, with_margins
from made_checkpoints import made_checkpoint_audit

from attractor.heads import planted_heads
from attractor.heads.audit.result import BEATS_NULLS, by_clearness, load_audit
from attractor.heads.page import write_audit_report
from attractor.support.errors import InvalidInputError


@pytest.fixture(scope="module")
def captured():
    return planted_heads(12)


@pytest.fixture(autouse=True)
def curves(monkeypatch):
    """The heads whose curves were asked for; nothing is learned here."""
    asked = []

    def made(captured, audit, heads, progress):
        asked.extend(heads)
        found = made_curves([(3, 6, 12)] * len(heads))
        return found.assign_coords({axis: ("curve", [pair[n] for pair in heads])
            for n, axis in enumerate(("layer", "head"))})  # fmt: skip

    monkeypatch.setattr("attractor.heads.page.learning_curves", made)
    return asked


@pytest.mark.long
def test_a_report_has_everything(tmp_path, captured, curves):
    audit = made_audit(3, 4)
    out = tmp_path / "audit"
    numbers = write_audit_report(out, audit, captured, source="made up")
    assert {path.name for path in out.iterdir()} == {
        "index.html", "audit.json", "audit.nc", "curves.nc", "tokens.nc", "tokens_least_clear.nc",
        *(f"{name}.{ending}" for name in
          ("map", "accuracy", "tokens", "tokens_least_clear", "curves")
          for ending in ("png", "svg")),
    }  # fmt: skip
    page = (out / "index.html").read_text()
    titles = re.findall(r"<h2[^>]*>(.*?)</h2>", page)
    beat = sum(one["learnable"] in BEATS_NULLS for one in numbers["heads"])
    assert titles == [
        "The heads", "Heads that were told apart", f"The {12 - beat} other heads",
        "Attention on texts", "Accuracy against the nulls", "Learning curves",
        "How long prompts must be", "What was not asked, and why", "What the words mean",
    ]  # fmt: skip
    folded = re.findall(r"<details><summary><h2[^>]*>(.*?)</h2>", page)
    assert folded == titles[2:]  # the answer, the map and the heads told apart are what shows
    assert page.count("<figure>") == 5 and "http" not in page.split("<body>")[1].split("base64")[0]
    assert "It is a randomization model, not sampling of heads." in page
    assert "a property of these texts" in page
    stored = json.loads((out / "audit.json").read_text())
    assert stored == json.loads(json.dumps(numbers)) and len(stored["heads"]) == 12
    assert stored["sentence"].split(";")[0] in page
    clearest = [one for one in by_clearness(stored["heads"]) if one["accuracy"] is not None]
    assert curves == [(one["layer"], one["head"]) for one in clearest[:5] + clearest[-5:]]
    assert "Above all of their 9 draws: " in page and "of rotation was taken for the" in page
    of_curves = stored["learning_curves"]
    assert [(one["layer"], one["head"]) for one in of_curves] == curves
    assert of_curves[0]["documents"] == [3, 6, 12] and of_curves[0]["accuracy"][1] == 0.8
    assert all(0.2 < one < 0.4 for one in of_curves[0]["largest_draw"])
    assert set(stored["calibration"]) == {"rotation", "pairing", "signs"}
    assert load_audit(out / "audit.nc").data["accuracy"].equals(audit.data["accuracy"])


@pytest.mark.long
def test_what_was_asked_comes_first(tmp_path, captured, blank_pictures):
    audit, control = with_margins(made_audit(3, 4)), made_control()
    audit.data["prompt"][:] = "no limit in reach"
    out = tmp_path / "audit"
    moved = made_checkpoint_audit(1, 3, 4)
    asked = {"control": control, "checkpoints": moved}
    numbers = write_audit_report(out, audit, captured, source="made up", **asked)
    page = (out / "index.html").read_text()
    titles = re.findall(r"<h[23][^>]*>(.*?)</h[23]>", page)
    assert titles[:4] == [
        "The heads", "Margin solutions", "Seen from margin solutions: the other heads",
        "Which way heads move",
    ]  # fmt: skip
    there = page.split(">Margin solutions</h2>")[1].split("</table>")[0]
    assert there.count("<tr>") == 2 and ">0.0</th>" in there  # of 12, the one at its solution
    directions = page.split(">Which way heads move</h2>")[1].split("</table>")[0]
    assert directions.count("<tr>") == 13
    assert (
        directions.index(">toward<") < directions.index(">away<") < directions.index(">elsewhere<")
    )
    assert ">The positive control</h2>" in page
    assert "Whether heads are at a margin solution was not asked" not in page
    assert "1 at the margin solution (nuclear)" in numbers["sentence"]
    assert any("23 of 24 heads (K and Q, trained to" in line for line in numbers["findings"])
    assert numbers["control"][1]["as it should be"] == "23"
    assert numbers["heads"][0]["margin_ratio"] == {"frobenius": 0.7, "nuclear": 0.98}
    assert {"control.nc", "control.png", "control.svg"} <= {path.name for path in out.iterdir()}
    # no length brings any head near its limit: nothing of it but why
    assert not any("rompt" in line for line in numbers["findings"])
    assert ">How long prompts must be</h2>" not in page and "never in practice" not in page
    assert "near their limit: their keys and values are" in page


@pytest.mark.long
def test_what_was_not_asked_is_said(tmp_path, captured, blank_pictures):
    audit = made_audit(3, 4, prompts=False)
    audit.data["learnable"][0, 0], audit.data["capture"][0, 0] = "not asked", "not bilinear"
    write_audit_report(tmp_path / "audit", audit, captured, source="made up")
    page = (tmp_path / "audit" / "index.html").read_text()
    asked = page.split("What was not asked, and why")[1]
    assert "0.0: not asked: not bilinear." in asked and "2.3: too few queries." in asked
    assert "Whether heads are at a margin solution was not asked." in asked
    assert "Too few nulls for false discovery rates: no p of 99 draws is below 1 %" in asked
    assert "199 draws" in asked
    assert "How long prompts must be" not in page


def test_without_any_test_there_still_is_a_report(tmp_path, captured, blank_pictures, curves):
    audit = made_audit(1, 2)
    left = ["accuracy", "accuracy_low", "accuracy_high", "accuracy_null", "p", "p_together", "q"]
    bare = type(audit)(audit.data.drop_vars(left))
    bare.data["learnable"][:] = "too few queries"
    write_audit_report(tmp_path / "audit", bare, captured, source="made up")
    page = (tmp_path / "audit" / "index.html").read_text()
    assert "None of 2 heads could be tested (too few queries)" in page
    assert "Accuracy against the nulls" not in page and "Learning curves" not in page
    assert "learest" not in page.split("What the words mean</h2>")[0] and curves == []
    assert ">Some heads</h3>" in page and "none of which was tested" in page
    assert {path.name for path in (tmp_path / "audit").iterdir()} >= {"map.png", "tokens.png"}


@pytest.mark.long
def test_what_was_captured_is_put_in(tmp_path, captured, blank_pictures):
    files = [tmp_path / name for name in ("checkpoint_0.nc", "heads.nc")]
    for file in files:
        file.write_text(file.name)
    write_audit_report(tmp_path / "audit", made_audit(3, 4), captured, source="", captures=files)
    for file in files:
        assert (tmp_path / "audit" / "capture" / file.name).read_text() == file.name


@pytest.mark.long
def test_folders_of_others_stay(tmp_path, captured, blank_pictures):
    site = tmp_path / "site"
    site.mkdir()
    (site / "index.html").write_text("mine")
    audit = made_audit(1, 2)
    with pytest.raises(InvalidInputError, match="out"):
        write_audit_report(site, audit, captured, source="made up")
    assert [path.name for path in site.iterdir()] == ["index.html"]
    out: Path = tmp_path / "audit"
    for _ in range(2):
        write_audit_report(out, audit, captured, source="made up")
    assert np.isfinite(load_audit(out / "audit.nc").data["accuracy"]).all()
