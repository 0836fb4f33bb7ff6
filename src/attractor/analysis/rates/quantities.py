"""The quantities of a training run whose rates are known laws, and what each is held against."""

from __future__ import annotations

from dataclasses import dataclass

_ERROR = {
    "step": "power",
    "time": "power of the logarithm",
    "logarithmic_time": "power of the logarithm",
    "log_time": "power of the logarithm",
    "norm": "power",
    "radius": "power",
}
_NORM = {
    "step": "power",
    "time": "logarithm",
    "logarithmic_time": "logarithm",
    "log_time": "logarithm",
}
_LOSS = {
    "step": "power",
    "time": "power",
    "logarithmic_time": "power",
    "log_time": "power",
    "norm": "exponential",
    "radius": "exponential",
}
_SATURATION = _LOSS | {"step": "exponential"}


@dataclass(frozen=True)
class Quantity:
    """One curve of a verdict, and the law it follows against each abscissa.

    Attributes:
        variable: Its name in the data.
        words: What it is called.
        laws: Names of the laws by abscissa.
        is_shortfall: Whether one minus the variable is meant.
        is_log: Whether the variable is a logarithm.
        relative_to: Against these abscissas, the variable of the trial it is divided by.
        relative_words: What it is called then.
    """

    variable: str
    words: str
    laws: dict[str, str]
    is_shortfall: bool = False
    is_log: bool = False
    relative_to: str | None = None
    relative_words: str = ""


QUANTITIES = (
    Quantity("margin_ratio", "1 - margin ratio", _ERROR, is_shortfall=True),
    Quantity("correlation", "1 - correlation", _ERROR, is_shortfall=True),
    Quantity("directional_bregman_divergence", "Bregman divergence", _ERROR),
    Quantity(
        "norm", "norm", _NORM, relative_to="solution_norm", relative_words="norm / solution's"
    ),
    Quantity("loss", "loss", _LOSS),
    Quantity("log_excess_loss", "excess loss", _SATURATION, is_log=True),
    Quantity("log_unselected_probability", "attention elsewhere", _SATURATION, is_log=True),
)
"""Direction errors, norm, and what falls with the loss, in the order of a table."""

ABSCISSA_WORDS = {
    "step": "step",
    "time": "t",
    "logarithmic_time": "t",
    "log_time": "k",
    "norm": "norm",
    "radius": "R",
}
"""Names in formulas: ``log_time`` is the logarithm of k, an equivalent number of raw steps."""
LOGARITHMS = ("logarithmic_time", "log_time")
"""The abscissas that are logarithms already."""
