"""Claims that are made up for a test."""

from attractor.papers import PAPERS, Ledger


def made_up(takes, measure, *given):
    """A claim about a class of data that fails wherever a measure of data and seed is positive."""
    ledger = Ledger(PAPERS["max-margin"], takes)
    declare = ledger(
        "made-up", "nothing", right=True, wrong=False, at_most=0.0, because="none", given=given,
        on=lambda: [],
    )  # fmt: skip
    declare(lambda case, named, seed: measure(case, seed))
    return ledger.claims["max-margin/made-up"]
