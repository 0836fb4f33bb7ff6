"""``Plotted``: results with a picture of their own."""

from __future__ import annotations

import abc
import importlib
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Plotted(abc.ABC):
    """A result that can be drawn."""

    _plots: ClassVar[str] = "attractor.plots"
    """Where the function lies that draws it: results know no more of drawing than this name."""

    def plot(self, **options: Any) -> Figure:
        """Draws it with the function of its room's ``plots``.

        A notebook shows the figure; ``figure.savefig`` writes it. The functions that draw into axes
        of your own are there, too.

        Args:
            **options: Options of that function.

        Returns:
            The figure.

        Raises:
            InvalidInputError: If there is nothing to draw.
        """
        function, given = self._picture()
        figure = getattr(importlib.import_module(self._plots), function)(given, **options)
        figure.description = self._seen()
        return figure

    @abc.abstractmethod
    def _picture(self) -> tuple[str, Any]:
        """Name of the function that draws it, and what it draws."""

    def _seen(self) -> str:
        """What is seen in the picture, in numbers, for those who cannot see it."""
        return ""
