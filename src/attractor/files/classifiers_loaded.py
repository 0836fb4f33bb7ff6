"""What a file of classifier results holds, ready for use."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import xarray as xr


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class LoadedClassifiers:
    """What a file of classifier results holds.

    Attributes:
        data: Accuracies and other numbers over ``optimizer`` and ``seed``.
    """

    data: xr.Dataset

    def __repr__(self) -> str:
        """What it holds, on one line."""
        names = ", ".join(self.data["optimizer"].values.tolist())
        return f"LoadedClassifiers({names}; {self.data.sizes['seed']} seeds)"
