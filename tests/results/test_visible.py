"""Words from files that hold characters which do not show, or steer what shows them."""

import json
import xml.etree.ElementTree as ElementTree

import matplotlib.figure
import pytest
from rich.table import Table as RichTable

from attractor.cli.session import Session
from attractor.explorer import check_state, scene_named, scene_names
from attractor.explorer.explorer import page_of
from attractor.plots.design.look import panels_on_page, save_figure
from attractor.report.page import Section, Table, render_page
from attractor.results.html import in_notebook, paragraph
from attractor.results.visible import visible
from attractor.support.errors import InvalidInputError

STEERING = "a\x1b[31mb\u202ec\x00\u2067d\x9be"
WRITTEN = "a\\x1b[31mb\\u202ec\\x00\\u2067d\\x9be"


def test_they_are_written_as_python_writes_them():
    assert visible(STEERING) == WRITTEN
    assert visible("λ é 汉 שלום\n\t😀") == "λ é 汉 שלום\n\t😀"
    assert visible("\udcff\r\n") == "\\udcff\\r\n"


def unseen(text):
    return visible(text) != text


def test_reports_and_notebooks_show_them(tmp_path):
    table = Table(["word"], [[STEERING, STEERING]])
    section = Section(STEERING, [STEERING], table, warning=STEERING)
    html = render_page(
        STEERING, STEERING, [STEERING], [section],
        figures=tmp_path, command="corpus", footer=STEERING,
    )  # fmt: skip
    for shown in (html, in_notebook([paragraph(STEERING)])):
        assert not unseen(shown)
        assert WRITTEN in shown


def test_pages_of_the_explorer_show_them():
    state = scene_named(next(iter(scene_names())))
    html = page_of(state, STEERING)
    assert f"<title>{WRITTEN}</title>" in html
    data = html.partition('<script type="application/json">')[2].partition("</script>")[0]
    assert json.loads(data)["title"] == WRITTEN
    with pytest.raises(InvalidInputError, match="which nobody sees"):
        check_state(state | {"title": STEERING})


@pytest.mark.parametrize("styled", [True, False])
def test_figures_are_svg_files_that_show_them(tmp_path, styled):
    figure = panels_on_page(2)[0] if styled else matplotlib.figure.Figure()
    axes = figure.axes[0] if styled else figure.subplots()
    axes.plot([0, 1], [0, 1], label=STEERING)
    axes.legend()
    axes.set_title(STEERING)
    axes.set_xticks([0, 1], [STEERING, "word"], parse_math=False)
    save_figure(figure, tmp_path, "words")
    drawing = (tmp_path / "words.svg").read_text("utf-8")
    ElementTree.fromstring(drawing)
    assert not unseen(drawing)
    assert drawing.count(f"<!-- {WRITTEN} -->") == 3


def test_terminals_are_not_steered(capsys):
    session = Session("corpus", as_json=False, quiet=False)
    table = RichTable("word")
    table.add_row(STEERING)
    session.say(STEERING, table)
    session.say_lines([STEERING])
    session.complain("error", STEERING)
    out, err = capsys.readouterr()
    assert not unseen(out + err)
    assert out.count(WRITTEN) == 2
    assert WRITTEN in err
