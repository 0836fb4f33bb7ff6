import sysconfig

import pytest

from attractor.datasets import docstring_sentences
from attractor.support.errors import InvalidInputError

SOURCE = '''
"""A module. It says: hello, World!

>>> not prose
- one item  of a list
- see https://example.org or call open(file) again
"""

class Thing:
    """Things don't end e.g. here."""

    def method(self):
        """Single."""

async def wait():
    """Waits
    over lines."""
'''


@pytest.fixture
def library(tmp_path, monkeypatch):
    monkeypatch.setattr(sysconfig, "get_paths", lambda: {"stdlib": str(tmp_path)})
    (tmp_path / "module.py").write_text(SOURCE)
    (tmp_path / "package" / "test").mkdir(parents=True)
    (tmp_path / "package" / "test" / "a.py").write_text('"""No prose here."""')
    (tmp_path / "package" / "__init__.py").write_text('"""Comes after the module."""')
    (tmp_path / "broken.py").write_text('"""Never read.""" )')
    return tmp_path


def test_sentences_end_where_it_is_said(library):
    assert [" ".join(sentence) for sentence in docstring_sentences()] == [
        "a module",
        "it says",
        "hello world",
        "one item of a list",
        "see or call again",
        "things don't end e g",
        "waits over lines",
        "comes after the module",
    ]


def test_modules_are_chosen_by_name(library):
    assert docstring_sentences(["package"]) == [["comes", "after", "the", "module"]]
    with pytest.raises(InvalidInputError, match="modules"):
        docstring_sentences(["broken"])


def test_the_library_of_this_python():
    found = docstring_sentences(["json"])
    assert found == docstring_sentences(["json"]) and len(found) > 50
