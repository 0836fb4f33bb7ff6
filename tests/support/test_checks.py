"""What is accepted as a count, a number, a flag, a text; and what is said of the rest."""

import math
from fractions import Fraction
from pathlib import Path

import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

from attractor.support import checks
from attractor.support.errors import InvalidInputError

NO_NUMBERS = [None, True, np.True_, "0.1", np.str_("0.1"), np.array("1"), [0.1], 1j, np.array(1j),
              math.nan, object(), np.array([0.1]), 10**400]  # fmt: skip


@pytest.mark.parametrize("value", [3, np.int32(3), np.uint8(3)])
def test_counts(value):
    found = checks.check_count("n", value)
    assert found == 3 and type(found) is int


NO_COUNTS = [True, 3.0, "3", None, 0, -1, [3], np.array(3), 10**30, 10**6000]


@pytest.mark.parametrize("value", NO_COUNTS, ids=range(len(NO_COUNTS)))
def test_what_is_no_count(value):
    with pytest.raises(InvalidInputError, match=r"^n: ") as error:
        checks.check_count("n", value)
    assert error.value.argument == "n" and len(str(error.value)) < 200


def test_steps_that_no_run_can_take():
    assert checks.check_steps("steps", 10**12) == 10**12
    with pytest.raises(InvalidInputError, match=r"steps: 118.* is too many. Give at most 9007"):
        checks.check_steps("steps", 2**70)


@pytest.mark.parametrize(
    "value", [1, 1.0, np.float32(1), np.int8(1), Fraction(1), np.array(1.0), jnp.ones(())]
)
def test_numbers(value):
    found = checks.check_number("rate", value, above=0)
    assert found == 1.0 and type(found) is float


@pytest.mark.parametrize("value", NO_NUMBERS, ids=range(len(NO_NUMBERS)))
def test_what_is_no_number(value):
    with pytest.raises(InvalidInputError, match=r"^rate: .* is not a positive number. Give one"):
        checks.check_number("rate", value, above=0, example=0.1)


@pytest.mark.parametrize(
    ("bounds", "words"),
    [
        ({"least": 0}, "a number >= 0"),
        ({"above": 1}, "a number > 1"),
        ({"least": 0, "below": 1}, r"a number in \[0, 1\)"),
        ({"above": 0, "most": 1}, r"a number in \(0, 1\]"),
        ({"below": 0}, "a number < 0"),
        ({"most": 0}, "a number <= 0"),
        ({}, "a finite number"),
    ],
)
def test_bounds_are_named(bounds, words):
    with pytest.raises(InvalidInputError, match=f"is not {words}\\."):
        checks.check_number("rate", math.nan, **bounds)


def test_infinity_is_called_what_it_is():
    with pytest.raises(InvalidInputError, match=r"inf is not a finite number"):
        checks.check_number("rate", math.inf, above=0)


def test_bounds_are_kept():
    assert checks.check_number("rate", 0, least=0, below=1) == 0
    for value in (1, -1e-300, math.inf):
        with pytest.raises(InvalidInputError):
            checks.check_number("rate", value, least=0, below=1)


def test_flags_texts_and_kinds():
    assert checks.check_flag("on", np.True_) is True
    assert checks.check_text("name", "a") == "a"
    for check, value in ((checks.check_flag, 1), (checks.check_text, ""), (checks.check_text, 3)):
        with pytest.raises(InvalidInputError, match=r"^argument: "):
            check("argument", value)
    with pytest.raises(InvalidInputError, match=r"tokens: it is None. Give some"):
        checks.check_kind("tokens", None, int, "Give some")
    with pytest.raises(InvalidInputError, match=r"tokens: str is not int. Give some"):
        checks.check_kind("tokens", "", int, "Give some")


def test_choices_suggest_near_ones():
    choices = ("explicit", "implicit", "auto")
    assert checks.check_choice("solver", "auto", choices) == "auto"
    with pytest.raises(InvalidInputError, match=r"Did you mean explicit.*Give one of 'explicit'"):
        checks.check_choice("solver", "explicitly", choices)
    for value in (None, ["auto"], np.array(["auto"])):
        with pytest.raises(InvalidInputError, match=r"is not known. Give one of 'explicit'"):
            checks.check_choice("solver", value, choices)


def test_capitals_and_hyphens_do_not_hide_a_near_name():
    assert checks.near_names("Large_Promt", ["max-margin", "large-prompt"])[0] == "large-prompt"
    assert checks.near_names(None, ["a"]) == []


def test_long_values_are_cut_in_messages():
    class Loud:
        def __repr__(self):
            raise RuntimeError

    assert checks.shown(np.zeros((1000, 3))) == "an array of float64 with the shape (1000, 3)"
    assert len(checks.shown("x" * 10**6)) < 100
    assert "\n" not in checks.shown("a\nb\n" * 3)
    assert checks.shown(Loud()).startswith(("a value of the type", "<Loud instance"))


@pytest.mark.parametrize(
    ("check", "said"),
    [
        (lambda: checks.check_kinds(a=(1, str)), "a: 1 is not str. Give str."),
        (lambda: checks.check_kinds(a=(None, str)), "a: it is None. Give str."),
        (lambda: checks.check_kinds(a=(1, str | None)), "a: 1 is not str or None. Give str or"),
        (lambda: checks.check_flags(a=True, b="yes"), "b: 'yes' is neither True nor False"),
        (lambda: checks.check_items("a", "text", str), "a: 'text' is no sequence"),
        (lambda: checks.check_items("a", {1: 2}, int), "a: {1: 2} is no sequence"),
        (lambda: checks.check_items("a", [1, True], int), r"a\[1\]: True is not int"),
        (lambda: checks.check_items("a", [], int, 1), "a: it has 0 items. Give at least 1"),
        (lambda: checks.check_items("a", np.broadcast_to(0, 10**9), int), "a: it is an array"),
        (lambda: checks.one_or_several("a", [], int), r"a: \[\] is not int, nor a list of them"),
        (lambda: checks.one_or_several("a", [1, "2"], int), "nor a list of them"),
        (lambda: checks.check_path("a", b"x"), "a: b'x' is not a path"),
        (lambda: checks.check_path("a", ""), "a: '' is not a path"),
    ],
)
def test_what_is_of_a_wrong_kind_is_named(check, said):
    with pytest.raises(InvalidInputError, match=said.replace("{1: 2}", r"\{1: 2\}")):
        check()


def test_what_is_of_the_right_kind_passes():
    checks.check_kinds(a=("text", str), b=(None, str | None))
    assert checks.check_items("a", np.array([1, 2]), int | np.integer) == [1, 2]
    assert checks.one_or_several("a", 1, int) == ([1], False)
    assert checks.one_or_several("a", [1], int) == ([1], True)
    assert checks.check_path("a", "folder/file") == Path("folder/file")


@pytest.mark.parametrize("dtype", [">f8", ">i8", "<f2", "u1", ml_dtypes.bfloat16])
def test_a_number_may_be_an_array_without_axes_of_any_type(dtype):
    assert checks.check_number("rate", np.array(2).astype(dtype)) == 2
    with pytest.raises(InvalidInputError, match="rate"):
        checks.check_number("rate", np.array(True))
