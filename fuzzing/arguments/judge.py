"""Makes one call with one hostile value and says what came of it."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import io
import os
import re
import signal
import types
import warnings
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from attractor.support.errors import AttractorWarning, FileFormatError, InvalidInputError
from fuzzing.arguments.hostile import SHAPES, Hostile
from fuzzing.arguments.same_numbers import Held, difference
from fuzzing.arguments.table import Call, bound

SECONDS = 10.0
"""The longest that a call may take, of processor time."""
GOOD = ("refused", "file refused", "answered", "the same answer")


class Outcome(NamedTuple):
    """What came of a call: its kind, one of ``GOOD`` or a finding, and what was seen."""

    kind: str
    seen: str = ""

    @property
    def good(self) -> bool:
        """Whether nothing is wrong with it."""
        return self.kind in GOOD


class TookTooLong(BaseException):
    """A call did not return in time."""


def judge(call: Call, parameter: str, hostile: Hostile | Held) -> Outcome:
    """Calls with one hostile value in the place of a valid one."""
    if isinstance(hostile, Held):
        return _judge_held(call, parameter, hostile)
    arguments = call.arguments()
    arguments[parameter] = hostile.make(arguments.get(parameter))
    try:
        result = perform(call, arguments)
    except InvalidInputError as error:
        return _refusal(call, parameter, hostile, error)
    except FileFormatError as error:
        wanted = "path" in call.parameters[parameter] or "text" in call.parameters[parameter]
        return Outcome("file refused" if wanted else "wrong class of error", str(error))
    except TookTooLong:
        return Outcome("took too long", f"more than {SECONDS:g} s")
    except Warning as warning:
        return Outcome("warning", f"{type(warning).__name__}: {warning}")
    except Exception as error:
        return Outcome("wrong class of error", f"{type(error).__name__}: {str(error)[:200]}")
    if not hostile.kinds & call.parameters[parameter]:
        return Outcome("accepted", f"returned {type(result).__name__}")
    if not call.nan and holds_nan(result):
        return Outcome("NaN", f"returned {type(result).__name__}")
    return Outcome("answered")


def _judge_held(call: Call, parameter: str, way: Held) -> Outcome:
    """Whether numbers held otherwise give what a plain array gives, and stay as they were."""
    arguments = call.arguments()
    given, plain = way.pair(arguments[parameter])
    before = copy.deepcopy(given)
    answers = []
    for value in (plain, given):
        try:
            answers.append(perform(call, call.arguments() | {parameter: value}))
        except (InvalidInputError, FileFormatError) as error:
            answers.append(error)
        except TookTooLong:
            return Outcome("took too long", f"more than {SECONDS:g} s")
        except Exception as error:
            of = "" if answers else " of the plain array"
            return Outcome("wrong class of error", f"{type(error).__name__}{of}: {error}"[:300])
    if difference(before, given, 0):
        return Outcome("written to", "the argument changed")
    wanted, found = answers
    if isinstance(found, InvalidInputError):
        if isinstance(wanted, InvalidInputError) or way.may_be_refused:
            return Outcome("refused")
        return Outcome("refused in vain", str(found))
    if isinstance(wanted, InvalidInputError):
        return Outcome("accepted", f"of the plain array: {wanted}")
    apart = difference(found, wanted, way.tolerance)
    return Outcome("another answer", apart) if apart else Outcome("the same answer")


def perform(call: Call, arguments: Mapping[str, Any]) -> Any:
    """Makes a call, in time and without output; reads an iterator to its end."""
    placed, named = bound(call, arguments)
    with _time_limit(), warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", RuntimeWarning)
        warnings.simplefilter("error", np.exceptions.ComplexWarning)
        warnings.simplefilter("ignore", AttractorWarning)
        result = call.function(*placed, **named)
        if isinstance(result, contextlib.AbstractContextManager):
            with result:
                return None
        return list(result) if isinstance(result, types.GeneratorType) else result


def holds_nan(result: Any, depth: int = 3) -> bool:
    """Whether a number somewhere in a result is NaN."""
    if isinstance(result, float | np.floating):
        return bool(np.isnan(result))
    if hasattr(result, "__array__") and not hasattr(result, "data_vars"):
        array = np.asarray(result)
        return array.dtype.kind in "fc" and bool(np.isnan(array).any())
    if depth == 0:
        return False
    if isinstance(result, Mapping):
        return any(holds_nan(value, depth - 1) for value in result.values())
    if isinstance(result, tuple | list):
        return any(holds_nan(value, depth - 1) for value in result)
    if dataclasses.is_dataclass(result) and not isinstance(result, type):
        names = (field.name for field in dataclasses.fields(result))
        return any(holds_nan(getattr(result, name, None), depth - 1) for name in names)
    return False


def _refusal(call: Call, parameter: str, hostile: Hostile, error: InvalidInputError) -> Outcome:
    """Whether an error names the argument and says what would be right."""
    blamed = {parameter} | call.blames.get(parameter, set())
    if hostile.name in SHAPES and parameter in call.arrays():
        blamed |= call.arrays()
    named = re.split(r"[^\w]", error.argument)[0]
    if named not in blamed:
        return Outcome("another argument named", str(error))
    if not error.problem.strip() or not error.remedy.strip():
        return Outcome("nothing said", str(error))
    return Outcome("refused")


@contextlib.contextmanager
def _time_limit() -> Iterator[None]:
    def stop(number: int, frame: Any) -> None:
        raise TookTooLong

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


@contextlib.contextmanager
def within(folder: str) -> Iterator[None]:
    """Works in a folder, where what a call writes does no harm."""
    before = os.getcwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)
