import io
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from rich.console import Console
from rich.table import Table
from rich.text import Text

import attractor as at
from attractor.results import Printed, Summary
from attractor.support.errors import InvalidInputError


class Wide(Summary):
    def _summary(self):
        return "Title <1>", [("name", "[bold]" + 200 * "x"), ("  longer", "one   two  three")]


class Drawn(Printed):
    width = 30

    def _print(self, console):
        console.print("[bold]words[/bold] " * 9)


def test_rows_are_aligned_and_as_long_as_they_are():
    lines = str(Wide()).splitlines()
    assert lines == [
        "Title <1>",
        "  name      [bold]" + 200 * "x",
        "    longer  one   two  three",
    ]
    assert repr(Wide()) == str(Wide())


def test_a_console_prints_what_text_shows():
    stream = io.StringIO()
    Wide().print_to(Console(file=stream, width=40))
    assert stream.getvalue().rstrip() == str(Wide())


def test_text_is_plain_in_a_notebook_that_asks_for_colors(monkeypatch):
    plain = str(Drawn())
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert str(Drawn()) == plain != ""


def test_what_is_no_console_is_refused():
    for result in (Wide(), Drawn()):
        with pytest.raises(InvalidInputError, match=r"^console: "):
            result.print_to(3)


class Tables(Printed):
    def _print(self, console):
        table = Table(title="Title <2>", caption="why [bold]this[/bold]")
        table.add_column("name")
        table.add_column("number", justify="right")
        table.add_column("second", justify="right")
        table.add_row("[red]A[/red]", "1", "2 < 3")
        table.add_section()
        table.add_row("  within", "words for the whole row")
        table.add_row("", Text("no", "bold red"), "4")
        console.print("a [line]", markup=False)
        console.print(table)


class Inner(HTMLParser):
    """Whether every element is closed in turn."""

    def __init__(self, page):
        super().__init__()
        self.open, self.seen = [], []
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.seen.append((tag, dict(attrs)))
        if tag not in ("br", "img"):
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def test_html_is_escaped_and_has_no_columns_of_spaces():
    page = Wide()._repr_html_()
    Inner(page)
    assert "<caption>Title &lt;1&gt;</caption>" in page
    assert '<th scope="row" class="within">longer</th><td>one; two; three</td>' in page
    assert "[bold]xx" in page  # no markup


def test_tables_that_are_printed_are_tables_of_html():
    page = Tables()._repr_html_()
    found = Inner(page)
    assert "<p>a [line]</p>" in page
    assert "<caption>Title &lt;2&gt;</caption>" in page
    assert "<p>why <strong>this</strong></p>" in page
    assert '<th scope="col" class="number">number</th>' in page
    assert '<td class="number">2 &lt; 3</td>' in page
    assert '<td colspan="2">words for the whole row</td>' in page
    assert '<td class="number"><strong>no</strong></td>' in page
    rows = [attrs for tag, attrs in found.seen if tag == "th" and attrs.get("scope") == "row"]
    assert len(rows) == 2  # none for the row without a name
    assert [tag for tag, _ in found.seen].count("tbody") == 2


def test_html_names_no_color_but_gray():
    """What is written in the color of the page shows on white and on black."""
    page = Tables()._repr_html_() + Wide()._repr_html_()
    colors = set(re.findall(r"[^-]color: *([^;]+);|(#[0-9a-f]{3,6})|(rgba\([^)]*\))", page))
    named = {color for found in colors for color in found if color}
    assert named <= {"inherit", "rgba(128, 128, 128, .3)", "rgba(128, 128, 128, .5)", "#fff"}


def test_what_describes_itself_keeps_its_text():
    tokens = at.Tokens(np.ones((2, 3, 4)) * np.arange(3)[:, None], np.ones((2, 5)), [1, -1])
    selection = at.attended_tokens(tokens, np.ones((4, 5)))
    problem = at.MarginProblem.from_selection(tokens, selection)
    assert str(tokens).startswith("Tokens(2 sequences x 3 tokens")
    for shown, words in (
        (tokens, "1 of -1, 1 of 1"), (selection, "2 (2)"), (problem, "4, 0 of them equalities"),
    ):  # fmt: skip
        page = shown._repr_html_()
        Inner(page)
        assert words in page
        assert page.count("<table") == 1


def test_what_prints_itself_keeps_its_width():
    assert max(map(len, str(Drawn()).splitlines())) <= 30
    assert "<p>words words" in Drawn()._repr_html_()


def test_on_a_narrow_terminal_values_go_on_below_themselves():
    class Long(Summary):
        def _summary(self):
            return "Title", [("name", 12 * "word "), ("  longer", "one   two  three")]

    stream = io.StringIO()
    Long().print_to(Console(file=stream, width=40, force_terminal=True))
    assert stream.getvalue().splitlines() == [
        "Title",
        "  name      word word word word word",
        "            word word word word word",
        "            word word",
        "    longer  one; two; three",
    ]
