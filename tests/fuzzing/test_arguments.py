import random

import pytest

from fuzzing.arguments import public
from fuzzing.arguments.calls import CALLS
from fuzzing.arguments.exempt import SLOW
from fuzzing.arguments.hostile import VALUES
from fuzzing.arguments.judge import judge, within
from fuzzing.arguments.run import pairs_of, run

BY_NAME = {value.name: value for value in VALUES}


def test_every_public_callable_is_in_the_table():
    assert set(public.public_callables()) == set(CALLS)


def test_every_parameter_that_has_no_default_has_a_valid_value():
    for call in CALLS.values():
        missing = [name for name in call.required if name not in call.valid]
        assert missing == [], call.name


def test_a_sample_of_hostile_arguments_is_named_or_answered(tmp_path):
    """One parameter of each callable with one value, of those that need no training."""
    draw = random.Random(8)
    bad = []
    with within(str(tmp_path)):
        for name, call in sorted(CALLS.items()):
            if name in SLOW:
                continue
            pair = draw.choice(pairs_of([name]) or [None])
            if pair is None:
                continue
            outcome = judge(call, pair[1], BY_NAME[pair[2]])
            if not outcome.good:
                bad.append((*pair, *outcome))
    assert bad == []


@pytest.mark.slow
def test_every_hostile_argument_is_named_or_answered():
    good = ("refused", "file refused", "answered")
    assert [row for row in run(pairs_of(sorted(CALLS))) if row[3] not in good] == []
