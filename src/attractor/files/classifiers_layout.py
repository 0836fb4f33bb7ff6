"""What a file of classifier results may hold."""

from __future__ import annotations

CLASSIFIERS_SUFFIX = ".nc"
"""NetCDF, as xarray writes it."""

CLASSIFIERS_LAYOUT = {
    "test_accuracy": (("optimizer", "seed"), "share of examples not seen that are told right"),
    "at_edge": (("optimizer",), "whether the learning rate is the least or the largest tried"),
    "status": (("optimizer", "seed"), "how training ended, as the numbers of TrialStatus"),
    "hoyer": (
        ("optimizer", "seed", "matrix", "block"),
        "Hoyer's sparsity of weights; matrix: queries, keys, values",
    ),
    "attention": (
        ("optimizer", "seed", "block"),
        "of the read-out on words that tell the class, mean over heads",
    ),
    "attention_by_frequency": (
        ("optimizer", "seed", "block"),
        "what those words would get as others of like frequency do",
    ),
    "attention_by_chance": (("optimizer", "seed"), "what they would get by chance"),
    "rescaled_attention": (
        ("optimizer", "seed"),
        "on them in the last block, rescaled from 0 to 1 in each text",
    ),
}
"""What claims read of results: for each variable its dimensions and what it means.

Only ``test_accuracy`` and the names of ``optimizer`` must be there; a claim says what else it
needs. Mirror descent is called ``p = 1.1``, gradient descent ``p = 2``. Equal numbers of ``seed``
name runs from the same start. Attributes: ``data`` ("text" or "image"), ``chance`` (the accuracy of
guessing), ``test_examples`` (on how many an accuracy rests) and ``same_start`` (1 if all seeds
start from one model). Anything else is kept and not read.
"""
