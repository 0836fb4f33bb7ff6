"""The blocks of code in Markdown, each with what a comment before it says of how it is run."""

import re
from dataclasses import dataclass

_BLOCK = re.compile(
    r"(?:^<!-- (?P<mark>not run|needs|with): (?P<words>.*?) -->\n)?"
    r"^```python\n(?P<code>.*?)^```$"
    r"(?:\n\n^```text\n(?P<output>.*?)^```$)?",
    re.M | re.S,
)
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?")
_SEVERAL_SPACES = re.compile(r" +|[│┃━─┏┳┓┡╇┩├┼┤└┴┘╈]+")


@dataclass(frozen=True)
class Snippet:
    """A block of Python.

    Attributes:
        line: Number of its first line in the file.
        code: The code.
        output: What the file shows as printed; None where it shows nothing.
        not_run: Why it is not run; empty where it is.
        needs: The package that it needs; empty where there is none.
        before: The command that makes the files that it reads; empty where there is none.
    """

    line: int
    code: str
    output: str | None
    not_run: str = ""
    needs: str = ""
    before: str = ""


def snippets(text):
    """Every block of Python of a text, in order."""
    names = {"not run": "not_run", "needs": "needs", "with": "before"}
    found = []
    for match in _BLOCK.finditer(text):
        line = text.count("\n", 0, match.start("code")) + 1
        marks = {names[match["mark"]]: match["words"]} if match["mark"] else {}
        found.append(Snippet(line, match["code"], match["output"], **marks))
    return found


def same_output(shown, printed):
    """Whether words are the same and numbers agree to 2 %, or lie below 1e-6 both.

    The last digits of numbers, and rounding errors altogether, depend on the processor.
    """
    if _words(shown) != _words(printed):
        return False
    pairs = zip(_numbers(shown), _numbers(printed), strict=True)
    return all(abs(a - b) <= max(0.02 * abs(a), 1e-6) for a, b in pairs)


def _words(text):
    return _SEVERAL_SPACES.sub(" ", _NUMBER.sub("#", text)).split()


def _numbers(text):
    return [float(one) for one in _NUMBER.findall(text)]
