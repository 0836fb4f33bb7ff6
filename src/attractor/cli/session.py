"""The common part of all commands: where they print, how they fail, which code they end with."""

from __future__ import annotations

import contextlib
import enum
import shlex
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.segment import Segment
from rich.text import Text

from attractor.cli import answer, interruption, streams
from attractor.cli.application import called
from attractor.results.visible import visible
from attractor.support.errors import (
    AttractorError,
    AttractorWarning,
    ClusterLostError,
    InvalidInputError,
)
from attractor.support.machine import use_compilation_cache
from attractor.support.progress import time_in_words

if TYPE_CHECKING:
    from attractor.results import Printed

_OPTIONS = {"learning_rate": "lr", "geometry": "norm"}
"""Options of commands by the arguments of the functions that refuse what they are given."""
LONG = 20
"""Seconds of work that are said beforehand."""


class ExitCode(enum.IntEnum):
    """The codes that commands end with."""

    DONE = 0
    """The command did what it was asked, whatever the outcome."""
    FAULT = 1
    """An error in Attractor itself, which a traceback shows."""
    BAD_INPUT = 2
    """An argument or a file is not as it has to be; the message says what would be right."""
    INFEASIBLE = 3
    """No matrix satisfies every constraint of the margin problem."""
    SOME_FAILED = 4
    """Some chunks of a sweep failed or are damaged."""
    CLUSTER_LOST = 5
    """The scheduler of a sweep or all of its workers are gone; the same command goes on."""
    INTERRUPTED = 130
    """Stopped by Ctrl-C."""
    TERMINATED = 143
    """Stopped by a signal to terminate."""


class _Console(Console):
    """One that words from files cannot steer."""

    def render(self, *arguments: Any, **named: Any) -> Iterable[Segment]:
        """What is printed, in which characters that do not show are written out."""
        for part in super().render(*arguments, **named):
            yield part if part.control else part._replace(text=visible(part.text))


class Session:
    """The output of a command: text for people, and one JSON object at its end.

    Attributes:
        exit_code: What the command ends with; commands may set it.
        progress: Whether to show progress: bars on a terminal, a line now and then in a log.
    """

    def __init__(self, command: str, *, as_json: bool, quiet: bool) -> None:
        """Opens a session for a command of that name."""
        self.exit_code = ExitCode.DONE
        self.progress = not quiet
        self._command, self._json, self._quiet = command, as_json, quiet
        self._errors = _Console(stderr=True, soft_wrap=True)
        self._console = _Console(stderr=as_json)
        self._result: dict[str, Any] = {}

    def say(self, *parts: RenderableType) -> None:
        """Prints for people: to standard output, or to standard error beside JSON."""
        if not self._quiet:
            for part in parts:
                self._console.print(part, markup=False, highlight=False)

    def show(self, *results: Printed) -> None:
        """Prints results as wide as the terminal is."""
        if not self._quiet:
            for result in results:
                result.print_to(self._console)

    def say_lines(self, lines: Iterable[str]) -> None:
        """Prints lines as they are, however narrow the terminal is."""
        if not self._quiet:
            for line in lines:
                self._console.print(line, markup=False, highlight=False, soft_wrap=True)

    def list_names(self, lines: Mapping[str, str]) -> None:
        """Prints names with what they are: a line each, or two where a terminal is too narrow."""
        width = max(map(len, lines), default=0)
        listed = [f"{name:<{width}}  {line}" for name, line in lines.items()]
        if self._console.is_terminal and max(map(len, listed), default=0) > self._console.width:
            for name, line in lines.items():
                self.say_lines([name])
                self.say(Padding(Text(line), (0, 0, 0, 4), expand=False))
            return
        self.say_lines(listed)

    def complain(self, kind: str, message: str) -> None:
        """Prints a warning or an error, on standard error."""
        style = "bold red" if kind == "error" else "bold yellow"
        self._errors.print(Text.assemble((f"{kind}: ", style), message), highlight=False)

    def result(self, **values: Any) -> None:
        """Adds to the JSON object."""
        self._result.update(values)

    def wrote(self, what: str, path: Path, /, **values: Any) -> None:
        """Prints where a file was written, and adds that and values to the JSON object."""
        self.result(**{what: str(path.absolute())}, **values)
        self.say(f"{what.capitalize()}: {path.absolute()}")

    def takes(self, what: str, seconds: float, out: Path | None) -> None:
        """Says before long work how long it takes on two cores, and whether a report is written."""
        if seconds >= LONG:
            unwritten = "" if out is not None else " No report is written without --out."
            self.say(f"{what}: about {time_in_words(round(seconds, -1))}.{unwritten}")

    def unwritten(self, what: str = "A report with pictures") -> None:
        """Says, last of all, by which command what was not asked for is written."""
        self.say_lines([f"{what}: {self.again(out=f'{self._command}-report')}"])

    @contextlib.contextmanager
    def going_on(
        self, kept: Path | None, so_far: Callable[[], None] = lambda: None
    ) -> Iterator[None]:
        """Where a signal ends the block, shows what is done, and says how to go on.

        Args:
            kept: The folder that keeps what is done; None where nothing is kept.
            so_far: Shows what is done; a second signal ends it at once.
        """
        try:
            yield
        except BaseException as error:
            if interruption.behind(error) is not None:
                with contextlib.suppress(AttractorError):
                    so_far()
                if kept is None:
                    with_out = self.again(out=f"{self._command}-report")
                    said = f"nothing is kept without --out; to be able to go on: {with_out}"
                else:
                    said = f"what is done is kept; the same command goes on: {self.again(False)}"
                self.complain("unfinished", said)
            raise

    def suggest(self, command: str, why: str = "") -> None:
        """Prints the next command to try, to be copied, and adds it to the JSON object."""
        self._result.setdefault("next", []).append(command)
        self.say_lines([f"Next, {why}: {command}" if why else f"Next: {command}"])

    def again(self, elsewhere: bool = True, /, **options: Any) -> str:
        """The command line as it was given, with other values of some options.

        Args:
            elsewhere: Whether a report goes to another folder, so that the one written stays.
            options: Values by name; ``max_steps=5`` is ``--max-steps 5``, True an option alone.
        """
        words = ["attractor", *called]
        if elsewhere and (out := _given("--out", words)) is not None:
            name, _, number = out.rstrip("/").rpartition("-")
            counted = name and number.isdigit()
            options["out"] = f"{name}-{int(number) + 1}" if counted else f"{out.rstrip('/')}-2"
        for name, value in options.items():
            option = f"--{name.replace('_', '-')}"
            while option in words:
                place = words.index(option)
                del words[place : place + (1 if value is True else 2)]
            words = [word for word in words if not word.startswith(f"{option}=")]
            words += [option] if value is True else [option, str(value)]
        return shlex.join(words)

    def close(self) -> None:
        """Prints the JSON object, if requested."""
        if self._json:
            sys.stdout.write(answer.answer_line(self._command, self.exit_code, self._result))
            answer.printed = True
            sys.stdout.flush()


def _given(option: str, words: Sequence[str]) -> str | None:
    """The last value of an option in a command line, or None."""
    pairs = zip(words, [*words[1:], ""], strict=True)
    values = [
        after if word == option else word.partition("=")[2]
        for word, after in pairs
        if word == option or word.startswith(f"{option}=")
    ]
    return values[-1] if values else None


@contextlib.contextmanager
def session(
    command: str, *, as_json: bool, quiet: bool, out: Sequence[Path | None] | None = None
) -> Iterator[Session]:
    """Runs a command: bad input ends in a message and code 2, Ctrl-C in code 130.

    A lost cluster ends it in code 5, SIGTERM in code 143. A command that another one calls hands
    signals on to it.

    Args:
        command: Its name.
        as_json: Whether to print the JSON object.
        quiet: Whether to print nothing else.
        out: Outputs of a command that only prints where none is requested.

    Raises:
        InvalidInputError: Inside the block, if nothing would be printed or written.
    """
    current = Session(command, as_json=as_json, quiet=quiet)
    use_compilation_cache()
    with warnings.catch_warnings():
        warnings.simplefilter("always", AttractorWarning)
        show_others = warnings.showwarning

        def show(message: Warning | str, category: type[Warning], *args: Any, **named: Any) -> None:
            if issubclass(category, AttractorWarning):
                current.complain("warning", str(message))
            else:
                show_others(message, category, *args, **named)

        warnings.showwarning = show
        inner = interruption.is_working()
        try:
            with interruption.interruptible():
                if as_json and streams.failure:
                    raise InvalidInputError(
                        "json",
                        f"standard output: {streams.failure}",
                        "Leave it open, or leave --json out",
                    )
                if quiet and not as_json and out is not None and not any(out):
                    raise InvalidInputError(
                        "quiet",
                        "nothing is printed with it, and nothing is written without --out",
                        "Give --out or --json with it, or leave it out",
                    )
                yield current
        except BaseException as error:
            signal = interruption.behind(error)
            if signal is not None and not inner:
                word = interruption.WORDS[signal]
                current.exit_code = ExitCode(128 + signal)
                current.complain("error", f"{word}; nothing is left half-written")
                current.result(**answer.failure(word))
            # OSError: something that cannot be read or printed to
            elif signal is None and isinstance(error, AttractorError | OSError):
                _fail(current, error)
            else:
                if isinstance(error, Exception) and not isinstance(error, typer.Exit):
                    current.exit_code = ExitCode.FAULT
                    current.result(**answer.failure(f"{type(error).__name__}: {error}"))
                    current.close()
                raise
    current.close()
    if current.exit_code:
        raise typer.Exit(int(current.exit_code))


def _fail(current: Session, error: Exception) -> None:
    lost = isinstance(error, ClusterLostError)
    current.exit_code = ExitCode.CLUSTER_LOST if lost else ExitCode.BAD_INPUT
    if isinstance(error, InvalidInputError) and error.argument in _OPTIONS:
        error = InvalidInputError(_OPTIONS[error.argument], error.problem, error.remedy)
    current.complain("error", str(error))
    blamed = {}
    if isinstance(error, InvalidInputError):
        blamed = {"argument": error.argument, "problem": error.problem, "remedy": error.remedy}
    current.result(**answer.failure(str(error), **blamed))
