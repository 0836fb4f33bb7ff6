"""The explorer in notebooks: a state that Python and the browser share, and what Python answers."""

from __future__ import annotations

import asyncio
import functools
from typing import Any

from attractor.explorer.answers import report_on
from attractor.explorer.explorer import Explorer
from attractor.explorer.page import script
from attractor.explorer.state import State, check_state
from attractor.support.errors import InvalidInputError

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
