"""The fuzzer of explorer states, without a browser."""

import json

import pytest

from attractor.explorer import check_state, scene_named
from attractor.explorer.explorer import page_of
from attractor.support.errors import InvalidInputError
from fuzzing import explorer_states
from fuzzing.explorer_states import shared, surprises


@pytest.fixture
def scenes(monkeypatch):
    """Scenes alone: what is trained in more dimensions takes seconds to make."""
    monkeypatch.setattr(explorer_states, "bases", lambda: 2 * ([scene_named("two-basins")],))


def test_states_are_shown_or_refused_and_the_same_again(scenes):
    verdicts = set()
    for number in range(200):
        one = shared(number, 0)
        assert one == shared(number, 0)
        if one.kind not in ("file", "notebook"):
            continue
        try:
            state = check_state(json.loads(one.text))
            assert page_of(state)
            verdicts.add("shown")
        except json.JSONDecodeError:
            verdicts.add("cut")
        except InvalidInputError as error:
            assert error.argument.startswith("state")
            verdicts.add("refused")
    assert verdicts >= {"shown", "refused"}


def test_lines_of_python_are_literals_and_calls_of_the_library():
    assert surprises("import numpy as np\nx = np.array([-1e-3])\nprint(at.Lp(np.inf))") == []
    for code in ("import os", "os.system('id')", "x = [open for _ in 'a']", "at.Lp('os')"):
        assert surprises(code), code
