"""Rates: slopes fitted to curves, with intervals over trials, or word that there is none yet."""

from attractor.analysis.rates.fit import fit_rate
from attractor.analysis.rates.laws import LAWS, Law
from attractor.analysis.rates.rate import Rate
from attractor.analysis.rates.several import Rates, fit_rates
from attractor.analysis.rates.slopes import Slope
from attractor.support.settings import all_in_own_settings

__all__ = ["LAWS", "Law", "Rate", "Rates", "Slope", "fit_rate", "fit_rates"]

all_in_own_settings(__name__)
