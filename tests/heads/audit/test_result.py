import io

import pytest
from made_audit import made_audit, with_margins
from made_checkpoints import made_checkpoint_audit
from rich.console import Console

from attractor.heads.audit.result import by_clearness, heads, load_audit, name
from attractor.heads.audit.words import sentence
from attractor.support.errors import FileFormatError


def test_a_few_heads_print_one_by_one_the_clearest_first():
    audit = made_audit(2, 12)
    lines = str(audit).splitlines()
    assert " ".join(lines).startswith(sentence(audit.data)[:90])
    start = next(row for row, line in enumerate(lines) if line.startswith("head  "))
    assert [line.split()[0] for line in lines[start + 1 :]] == [
        name(one) for one in by_clearness(heads(audit.data))
    ]
    assert all(len(line) <= 100 for line in lines)


def test_many_heads_print_by_layer():
    lines = str(made_audit(3, 12)).splitlines()
    start = next(row for row, line in enumerate(lines) if line.startswith("layer  "))
    assert [line.split()[0] for line in lines[start + 1 :]] == ["0", "1", "2"]


def test_notebooks_show_the_same():
    assert "pairings do not" in made_audit(1, 2)._repr_html_()


def test_pictures_say_what_is_seen_in_them():
    said = made_audit(2, 3).plot().description
    assert said.startswith("1 of 6 heads have a frame: 0.2: accuracy 0.97, ")
    moved = made_checkpoint_audit(1, 1, 3).plot().description
    assert moved.startswith("From 0 to 1, directions of 3 heads, ") and "1 toward" in moved


@pytest.mark.parametrize("made", [made_audit(2, 12), with_margins(made_audit(2, 3))])
def test_a_head_takes_a_line_of_a_narrow_terminal(made):
    console = Console(file=io.StringIO(), width=80)
    made.print_to(console)
    lines = console.file.getvalue().splitlines()
    start = next(row for row, line in enumerate(lines) if line.startswith("head "))
    verdicts = [one.get("margin", "") for one in heads(made.data)]
    wrapped = sum(verdict.startswith(("at the", "on the")) for verdict in verdicts)
    assert len(lines) - start - 1 == len(verdicts) + 2 * wrapped


def test_counts_leave_out_what_was_not_audited():
    audit = made_audit(2, 3)
    audit.data["learnable"][0, 0] = ""
    assert sum(audit.counts.values()) == 5 and audit.counts["positional"] == 1


def test_a_file_gives_the_same(tmp_path):
    audit = made_audit(2, 3)
    audit.save(tmp_path / "audit.nc")
    found = load_audit(tmp_path / "audit.nc")
    assert str(found) == str(audit) and heads(found.data) == heads(audit.data)
    assert found.data.identical(found.to_xarray())
    made_audit(1, 1).data.to_netcdf(tmp_path / "other.nc", engine="h5netcdf")
    with pytest.raises(FileFormatError, match="holds no audit of attention heads"):
        load_audit(tmp_path / "other.nc")
