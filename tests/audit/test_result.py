import pytest
from made_audit import made_audit

from attractor.audit.heads import by_clearness, heads, name
from attractor.audit.result import load_audit
from attractor.audit.words import sentence
from attractor.errors import FileFormatError


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
