import io

import pytest
from rich.console import Console

from attractor.errors import InvalidInputError
from attractor.records import Printed, Summary


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


def test_html_is_escaped_and_has_no_columns_of_spaces():
    page = Wide()._repr_html_()
    assert "<caption>Title &lt;1&gt;</caption>" in page
    assert ">longer</th><td>one; two; three</td>" in page


def test_what_prints_itself_keeps_its_width():
    assert max(map(len, str(Drawn()).splitlines())) <= 30
    assert Drawn()._repr_html_().startswith("<pre>")


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
