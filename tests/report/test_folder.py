import pytest

from attractor.report.folder import report_folder
from attractor.support.errors import InvalidInputError
from attractor.support.storage.markers import written_by


def test_a_report_is_replaced_by_one_of_the_same_command_alone(tmp_path):
    folder = tmp_path / "out"
    for words in ("first", "second"):
        with report_folder(folder, words, "", {}, "check"):
            pass
    assert "second" in (folder / "report.html").read_text()
    assert written_by(folder) == "check"
    with (
        pytest.raises(InvalidInputError, match="holds a report of `attractor check`"),
        report_folder(folder, "third", "", {}, "demo"),
    ):
        pytest.fail("the work has begun")
    assert "second" in (folder / "report.html").read_text()


def test_pages_of_others_say_nothing(tmp_path):
    for name, text in {
        "a.html": "<html>",
        "b.html": '<head><script type="application/json" id="provenance">[]</script></head>',
        "c.html": '<head><script type="application/json" id="provenance">{"kind"',
        "d.html": '<meta name="generator" content="attractor \x1b[2J">',
    }.items():
        (tmp_path / name).write_text(text)
    assert written_by(tmp_path) is None
