import importlib
import sys

import pytest

from attractor.support.loaded import is_of_loaded, leave_out, let_in

UNUSED = "wave"
"""A module that nothing here loads."""


@pytest.fixture
def unused(monkeypatch):
    monkeypatch.delitem(sys.modules, UNUSED, raising=False)
    yield UNUSED
    let_in(UNUSED)


def test_what_is_left_out_counts_as_not_installed_until_it_is_let_in(unused):
    leave_out(unused)
    assert importlib.util.find_spec(unused) is None
    assert not is_of_loaded(1.0, unused, "Wave_read")
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module(unused)
    let_in(unused)
    assert importlib.import_module(unused).Wave_read


def test_what_is_loaded_stays(unused):
    module = importlib.import_module(unused)
    leave_out(unused)
    let_in(unused)
    assert sys.modules[unused] is module


def test_what_was_never_left_out_can_be_let_in(unused):
    let_in(unused)
    assert unused not in sys.modules
