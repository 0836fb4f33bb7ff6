"""Muon, and the largest margin in the spectral norm."""

from __future__ import annotations

from attractor.geometry import Frobenius, Spectral
from attractor_further.folklore.margins import assuming, margin_claim, three, trained_tokens

_MUON = "muon:learning_rate=0.1,momentum=0.9"
_EXACT = f"{_MUON},method=exact"
_STEPS = 5_000
_ASSUMPTIONS = assuming("W", "Muon")

MUON = margin_claim(
    "muon-margin",
    "Muon takes attention to the largest margin in the spectral norm",
    Spectral(),
    Frobenius(),
    three(_MUON, steps=20_000, size=(6, 4, 6)),
    _ASSUMPTIONS,
    optimizer=_MUON,
    statement="Muon maximizes the spectral margin",
    holding=lambda: trained_tokens(0, _EXACT, steps=_STEPS),
    note="fails with the five Newton-Schulz iterations of its own coefficients: they make "
    "singular values between 0.7 and 1.2, however many there are, and come to some 0.86 of the "
    "margin; with exact polar factors, or coefficients that converge, it holds below a threshold "
    "of the step size",
)
EXACT_MUON = margin_claim(
    "muon-margin-repaired",
    "Muon with exact polar factors takes attention to the largest margin in the spectral norm",
    Spectral(),
    Frobenius(),
    three(_EXACT, steps=_STEPS),
    _ASSUMPTIONS,
    optimizer=_EXACT,
    statement="Muon with exact polar factors maximizes the spectral margin",
    note="as long as step / (1 - momentum), here 1, is below about 2.7: with a momentum of 0.95 "
    "some data sets stay at 0.7 to 0.9",
)
