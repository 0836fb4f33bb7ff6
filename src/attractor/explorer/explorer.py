"""``Explorer``: what a page shows, in a browser or a notebook, and what the library says of it."""

from __future__ import annotations

import asyncio
import base64
import functools
import hashlib
import html
import json
import os
from collections.abc import Sequence
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any

from attractor.explorer import answers
from attractor.explorer.answers import report_on
from attractor.explorer.building import state_of
from attractor.explorer.state import PARAMETERIZATIONS, State, check_state
from attractor.results.visible import visible
from attractor.support.checks import check_count, check_path, check_text, naming
from attractor.support.errors import InvalidInputError
from attractor.support.storage import OutputFile, check_paths, write_file

if TYPE_CHECKING:
    from attractor.attention import LinearHead, Parameterization
    from attractor.geometry import Geometry
    from attractor.margin import Solution
    from attractor.tokens import Tokens
    from attractor.training import Optimizer, Trajectory


TITLE = "Drag a token, watch the attractor move"

_STYLE = """
:root { color-scheme: SCHEME; }
body { margin: 0; padding: clamp(.6rem, 3vw, 1.8rem); font: 15px/1.5 system-ui, sans-serif;
       background: #fff; color: #1b1b1b; }
@media (prefers-color-scheme: dark) { body { background: #0f1317; color: #e4e6e8; } }
main { max-width: 64rem; margin: auto; }
"""
_DARK = "body { background: #0f1317; color: #e4e6e8; }"
_LIGHT = "body { background: #fff; color: #1b1b1b; }"


@cache
def script() -> str:
    """What a page runs; it leaves ``attractorExplorer``, which notebooks render."""
    folder = resources.files("attractor.explorer")
    return folder.joinpath("static", "explorer.js").read_text("utf-8")


def page_of(state: dict[str, Any], title: str | None = None) -> str:
    """A page that shows a state.

    Its policy lets it run this one script and nothing else, and refuses every request.

    Args:
        state: What it shows.
        title: Its title; default: that of the state.

    Raises:
        InvalidInputError: If it is no state: the page itself would refuse it.
    """
    with naming(**{"state.title": "title"}):
        state = check_state(state if title is None else state | {"title": visible(title)})
    title = str(state.get("title") or TITLE)
    code = "\n" + script().replace("</script", "<\\/script").replace("<!--", "<\\!--") + "\n"
    digest = base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; "
        "img-src data: blob:; worker-src blob:; base-uri 'none'; form-action 'none'"
    )
    theme = str(state["theme"])
    scheme = "light dark" if theme == "auto" else theme
    style = _STYLE.replace("SCHEME", scheme) + {"dark": _DARK, "light": _LIGHT}.get(theme, "")
    return f"""<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="{scheme}">
<link rel="icon" href="data:,">
<title>{html.escape(title)}</title>
<style>{style}</style>
<main>
<div data-attractor-explorer>
<script type="application/json">{embedded(state)}</script>
</div>
</main>
<script>{code}</script>
</html>
"""


def embedded(state: dict[str, Any]) -> str:
    """A state as JSON that may stand within a page."""
    return json.dumps(state, allow_nan=False).replace("<", "\\u003c")


class Explorer:
    """Tokens of a few sequences, where training takes attention, and how to change it.

    ``explore`` returns one that notebooks show. What is seen while something is dragged is computed
    by the browser. When it is let go, Python solves and trains the same problem, and the widget
    says how far the two agree. What is read here is what is then seen.

    Example:
        >>> import attractor as at
        >>> keys = [[[-0.1, 1.0], [1.0, 0.0], [0.0, 0.0]]]
        >>> tokens = at.Tokens.prompt_vector(keys, labels=[1])
        >>> state = at.explorer.state_of(tokens, at.LinearHead([0.5, 1.0]))
        >>> explorer = at.explorer.Explorer(state)
        >>> explorer.solution().W.ravel().round(6)
        array([-0.09901 ,  0.990099])
        >>> explorer.optimizer
        normalized gradient descent(learning_rate=0.1)
    """

    def __init__(self, state: State) -> None:
        """Shows a state.

        Args:
            state: What to show, as ``explorer.state`` of another has it.

        Raises:
            InvalidInputError: If it is no such state.
        """
        self._state = check_state(state)

    @property
    def state(self) -> State:
        """What is shown, as plain JSON; it may be set, and is checked."""
        return self._state

    @state.setter
    def state(self, value: State) -> None:
        self._state = check_state(value)

    def __repr__(self) -> str:
        trained = PARAMETERIZATIONS[self.state["parameterization"]]
        return (
            f"<Explorer of {sum(map(len, self.state['keys']))} tokens, {trained} trained: the last "
            "line of a notebook's cell shows it, .save('page.html') writes a page>"
        )

    def _repr_html_(self) -> str:
        """An element that the script of the explorer fills, where a page loads it."""
        return (
            f'<div data-attractor-explorer><script type="application/json">{embedded(self.state)}'
            "</script><p>In a notebook, <code>attractor.explore(...)</code> shows this.</p></div>"
        )

    @property
    def tokens(self) -> Tokens:
        """The tokens as they now are; unless the head is trained, their values are their scores."""
        return answers.tokens_of(self.state)

    @property
    def head(self) -> LinearHead:
        """The head: the number one, as values are scores; where it is trained, where it starts."""
        return answers.head_of(self.state)

    @property
    def optimizer(self) -> Optimizer:
        """The optimizer; of two trainings that of the first."""
        return self.optimizers[0]

    @property
    def optimizers(self) -> list[Optimizer]:
        """The optimizer of every training."""
        return [answers.optimizer_of(training) for training in self.state["trainings"]]

    def solution(self) -> Solution:
        """The margin solution of the tokens as they now are.

            min ||W||   subject to   (x_i,alpha - x_it)^T W z_i >= 1

        Where a head is trained too, the tokens kept are those that it scores highest in the end,
        unless the state names them.

        Raises:
            InvalidInputError: If no norm is known for what is trained.
        """
        return answers.solution_of(self.state)

    def train(self, number: int = 0) -> Trajectory:
        """Trains from the start as it now is.

        Args:
            number: Which of the trainings, where there are two.

        Raises:
            InvalidInputError: If there is no such training, or it cannot start there.
        """
        count = len(self.state["trainings"])
        return answers.trained(self.state, check_count("number", number, 0, count - 1))

    def save(self, path: str | os.PathLike[str], title: str | None = None) -> None:
        """Writes a page that shows the state as it now is, and needs nothing but a browser.

        Args:
            path: The destination, ending in ``.html``; replaced atomically.
            title: The title of the page.

        Raises:
            InvalidInputError: If it ends in anything else, or cannot be written.
        """
        file = check_path("path", path)
        title = None if title is None else check_text("title", title)
        check_paths([OutputFile("path", file, ".html")])
        write_file(file, page_of(self.state, title))


_PAUSE = 0.02
"""Seconds to wait for further states before one is answered: those that it replaces are not."""


@functools.cache
def widget_class() -> type[Explorer]:
    """The class of explorers that notebooks show.

    Raises:
        InvalidInputError: If anywidget is not installed.
    """
    try:
        import anywidget  # pyright: ignore[reportMissingImports]
        import traitlets  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise InvalidInputError(
            "explore",
            "a notebook shows it by the package anywidget, which cannot be imported "
            f"({str(error).splitlines()[0]})",
            "Run `pip install 'attractor[explorer]'`; explorer_page(...) writes a page without it",
        ) from error

    class ExplorerWidget(Explorer, anywidget.AnyWidget):
        """An explorer that notebooks show."""

        _esm = f"{script()}\nexport default globalThis.attractorExplorer;"
        _repr_html_ = None  # pyright: ignore
        state = traitlets.Dict().tag(sync=True)  # pyright: ignore
        kernel = traitlets.Dict().tag(sync=True)

        def __init__(self, state: State) -> None:
            self._due: asyncio.TimerHandle | None = None
            anywidget.AnyWidget.__init__(self, state=state)
            self._answer_soon()
            self.observe(lambda change: self._answer_soon(), names="state")

        @traitlets.validate("state")
        def _checked(self, proposal: Any) -> State:
            return check_state(proposal["value"])

        def set_state(self, sync_data: dict[str, Any]) -> None:
            """Takes what a browser says, which may be anything: what is no state is answered so."""
            given = dict(sync_data)
            given.pop("kernel", None)
            try:
                if "state" in given:
                    given["state"] = check_state(given["state"])
            except InvalidInputError as error:
                named = given.pop("state")
                name = named.get("id") if isinstance(named, dict) else None
                self.kernel = {"state": name if isinstance(name, str) else "",
                               "message": str(error)}  # fmt: skip
            super().set_state(given)

        def _answer_soon(self) -> None:
            """Answers the state once no other is waiting; at once where there is no event loop."""
            try:
                loop = asyncio.get_running_loop()
            except RuntimeError:
                self._answer()
                return
            if self._due is not None:
                self._due.cancel()
            self._due = loop.call_later(_PAUSE, self._answer)

        def _answer(self) -> None:
            self.kernel = report_on(self.state)

    ExplorerWidget.__name__ = ExplorerWidget.__qualname__ = "Explorer"
    return ExplorerWidget


def explore(
    tokens: Tokens,
    head: LinearHead,
    optimizer: Optimizer | str | Sequence[Optimizer | str] | None = None,
    *,
    parameterization: str | Parameterization | None = None,
    start: Any = None,
    steps: int = 2000,
    loss: str = "logistic",
    norm: Geometry | str | None = None,
    selection: Any = None,
    kernel: str | Sequence[str] = "exact",
    projection: Any = "solutions",
    title: str | None = None,
    theme: str = "auto",
) -> Explorer:
    """Shows tokens in a notebook, to be dragged: the solution, basins and training follow at once.

    The browser computes what is seen. When something is let go, Python solves and trains the same,
    and what it found stands beside it. Jupyter and marimo show it by the package anywidget.

    Tokens of more than two numbers are seen in a plane, with what Python works out for them: the
    solutions of every locally optimal selection where these are few, else of the best one, in
    several norms, and the paths of training. The page says which part of the distances between
    tokens the plane hides.

    Args:
        tokens: One data set with labels -1 and +1, one query a sequence; at most 24 sequences of
            240 tokens together. What is masked is left out.
        head: A linear head: fixed, or where its training starts.
        optimizer: How to train; two are shown side by side. By name, its learning rate is 0.1.
            Default: normalized gradient descent. There are "gradient descent", "normalized
            gradient descent", "mirror descent", "sign descent", "greedy coordinate descent" and
            "spectral descent".
        parameterization: What is trained: ``"p"``, ``"W"``, its factors ``"KQ"``, or ``"(v, p)"``;
            default: ``"p"`` where queries are the number one, else ``"W"``.
        start: Where training starts, as ``initial`` of ``train``; default: zero, for factors a
            tenth of the identity.
        steps: Number of steps, at most 100,000; where the page trains, at most 1,000,000 of all
            tokens and trainings together.
        loss: ``"logistic"``, ``"exponential"`` or ``"linear"``.
        norm: The norm that the margin problem minimizes, or its name; default: the one that the
            first training descends.
        selection: The tokens to keep, one number a sequence; default: those of the highest score.
        kernel: ``"exact"``, or ``"plain"`` for gradients of ordinary floating point; two of them
            are shown side by side.
        projection: Where tokens have more than two numbers, what they are seen in: ``"solutions"``,
            the plane of the solution of the first training and the next one that spans a plane
            with it; ``"principal"``, the two directions in which tokens vary most; or two
            solutions, or their matrices.
        title: What it shows, in words.
        theme: ``"auto"``, which follows the page around it, ``"light"`` or ``"dark"``.

    Raises:
        InvalidInputError: If anywidget is not installed, an argument cannot be used, or a page
            cannot show it.

    Example:
        >>> import attractor as at
        >>> keys = [[[-0.1, 1.0], [1.0, 0.0], [0.0, 0.0]]]
        >>> tokens = at.Tokens.prompt_vector(keys, labels=[1])
        >>> explorer = at.explore(tokens, at.LinearHead([0.5, 1.0]))  # doctest: +SKIP
        >>> explorer.solution().W.ravel().round(6)  # doctest: +SKIP
        array([-0.09901 ,  0.990099])
    """
    given = locals()

    own = widget_class()
    return own(state_of(**given))


def explorer_page(
    tokens: Tokens,
    head: LinearHead,
    optimizer: Optimizer | str | Sequence[Optimizer | str] | None = None,
    *,
    parameterization: str | Parameterization | None = None,
    start: Any = None,
    steps: int = 2000,
    loss: str = "logistic",
    norm: Geometry | str | None = None,
    selection: Any = None,
    kernel: str | Sequence[str] = "exact",
    projection: Any = "solutions",
    title: str | None = None,
    theme: str = "auto",
) -> str:
    """The same as one HTML file, which needs nothing but a browser.

    It holds its own script and data, may run nothing else, and makes no request.

    Args:
        tokens: As for ``explore``.
        head: Likewise.
        optimizer: Likewise.
        parameterization: Likewise.
        start: Likewise.
        steps: Likewise.
        loss: Likewise.
        norm: Likewise.
        selection: Likewise.
        kernel: Likewise.
        projection: Likewise.
        title: The title of the page.
        theme: As for ``explore``.

    Raises:
        InvalidInputError: If an argument cannot be used, or a page cannot show it.

    Example:
        >>> import attractor as at
        >>> keys = [[[-0.1, 1.0], [1.0, 0.0], [0.0, 0.0]]]
        >>> tokens = at.Tokens.prompt_vector(keys, labels=[1])
        >>> page = at.explorer_page(tokens, at.LinearHead([0.5, 1.0]), title="Three tokens")
        >>> "<title>Three tokens</title>" in page
        True
    """
    given = locals()

    return page_of(state_of(**given))
