"""``Plotted``: results with a picture of their own."""

from __future__ import annotations

import abc
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Plotted(abc.ABC):
    """A result that can be drawn."""

    def plot(self, **options: Any) -> Figure:
        """Draws it with a function of ``attractor.plots``.

        A notebook shows the figure; ``figure.savefig`` writes it. The functions that draw into axes
        of your own are in ``attractor.plots``, too.

        Args:
            **options: Options of that function.

        Returns:
            The figure.

        Raises:
            InvalidInputError: If there is nothing to draw.
        """
        from attractor import plots  # of a room below: results know no more of it than a name

        function, given = self._picture()
        figure = getattr(plots, function)(given, **options)
        figure.description = self._seen()
        return figure

    @abc.abstractmethod
    def _picture(self) -> tuple[str, Any]:
        """Name of the function of ``attractor.plots``, and what it draws."""

    def _seen(self) -> str:
        """What is seen in the picture, in numbers, for those who cannot see it."""
        return ""
