"""``Explorer``: what a page shows, and what the library says of it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from attractor.explorer import answers, reading
from attractor.explorer.page import embedded, page_of
from attractor.explorer.state import PARAMETERIZATIONS, State, check_state
from attractor.support.checks import check_count, check_path, check_text
from attractor.support.storage import OutputFile, check_paths, write_file

if TYPE_CHECKING:
    from attractor.attention import LinearHead
    from attractor.margin import Solution
    from attractor.tokens import Tokens
    from attractor.training import Optimizer, Trajectory


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
        return reading.tokens_of(self.state)

    @property
    def head(self) -> LinearHead:
        """The head: the number one, as values are scores; where it is trained, where it starts."""
        return reading.head_of(self.state)

    @property
    def optimizer(self) -> Optimizer:
        """The optimizer; of two trainings that of the first."""
        return self.optimizers[0]

    @property
    def optimizers(self) -> list[Optimizer]:
        """The optimizer of every training."""
        return [reading.optimizer_of(training) for training in self.state["trainings"]]

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
