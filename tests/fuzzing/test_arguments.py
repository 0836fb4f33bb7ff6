import random

import numpy as np
import pytest

from attractor.support.errors import InvalidInputError
from fuzzing.arguments import public
from fuzzing.arguments.calls import CALLS
from fuzzing.arguments.exempt import SLOW
from fuzzing.arguments.judge import GOOD, Outcome, judge, within
from fuzzing.arguments.run import EVERY, pairs_of, run
from fuzzing.arguments.same_numbers import WAYS
from fuzzing.arguments.table import Call

NUMBERS = np.array([[1.5, 2.5], [3.5, -4.5]])
ROOMS = ("tokens", "selection", "margin", "attention")


def test_every_public_callable_is_in_the_table():
    assert set(public.public_callables()) == set(CALLS)


def test_every_parameter_that_has_no_default_has_a_valid_value():
    for call in CALLS.values():
        missing = [name for name in call.required if name not in call.valid]
        assert missing == [], call.name


@pytest.mark.long
def test_a_sample_of_hostile_arguments_is_named_or_answered(tmp_path):
    """One parameter of each callable with one value, of those that need no training."""
    assert found_bad(lambda pair: True, str(tmp_path)) == []


def test_a_sample_of_arrays_held_otherwise_gives_the_same(tmp_path):
    """One array of each callable in one byte order, layout or type; or with a mask of NumPy."""
    ways = {way.name for way in WAYS} - {"PyTorch"} | {"masked array"}
    assert found_bad(lambda pair: pair[2] in ways, str(tmp_path), packages=ROOMS) == []


def found_bad(wanted, folder, packages=None):
    """What is a finding of one pair for each callable, drawn from those wanted."""
    draw, bad = random.Random(8), []
    with within(folder):
        for name, call in sorted(CALLS.items()):
            if name in SLOW or not (packages is None or call.package in packages):
                continue
            pairs = list(filter(wanted, pairs_of([name])))
            if not pairs:
                continue
            pair = draw.choice(pairs)
            outcome = judge(call, pair[1], EVERY[pair[2]])
            if not outcome.good:
                bad.append((*pair, *outcome))
    return bad


def doubled(W, kind="right"):
    """The numbers times two; wrong in one way or another."""
    if kind == "bytes":
        return 2 * np.frombuffer(W.tobytes()).reshape(W.shape)
    if kind == "writes":
        np.multiply(W, 2, out=W)
        return W.copy()
    if kind == "refuses" and not W.flags.c_contiguous:
        raise InvalidInputError("W", "it lies otherwise", "Copy it")
    return W * W.dtype.type(1.001) if kind == "narrow" else 2 * np.asarray(W, np.float64)


@pytest.mark.parametrize(
    ("kind", "way", "outcome"),
    [
        ("right", "Fortran order", "the same answer"),
        ("bytes", "big-endian", "another answer"),
        ("writes", "with gaps", "written to"),
        ("writes", "read-only", "wrong class of error"),
        ("refuses", "Fortran order", "refused in vain"),
        ("narrow", "small types", "another answer"),
    ],
)
def test_what_depends_on_how_numbers_are_held_is_found(kind, way, outcome):
    call = Call(doubled, W=NUMBERS, kind=kind, takes={"W": "array"})
    found = judge(call, "W", EVERY[way])
    assert isinstance(found, Outcome) and found.kind == outcome


@pytest.mark.slow
def test_every_hostile_argument_is_named_or_answered():
    assert [row for row in run(pairs_of(sorted(CALLS))) if row[3] not in GOOD] == []
