"""The regularization path tends to the max-margin direction of the best tokens."""

from __future__ import annotations

from attractor.files.case import Case
from attractor.papers.claim import Claims
from attractor.papers.hypotheses import OPTIMUM_FEASIBLE, UNIQUE_OPTIMUM, trains
from attractor.papers.max_margin.claims._one_token_fewer import contrast_with_one_token_fewer
from attractor.papers.max_margin.data import one_sequence, three_sequences
from attractor.papers.measurements.paths import distance_of_path, path
from attractor.papers.transformers_as_svms.random_data import enclosed_token, tied_scores
from attractor.results.paper import MAX_MARGIN

CLAIMS = Claims(MAX_MARGIN, Case)

CONTRAST = contrast_with_one_token_fewer(
    "1 - cos of the path with the max-margin direction, at 10,000 norms of the solution",
    lambda case, seed, direction: distance_of_path(path(case, seed), direction),
    "1 - cos of the path with the solution for one support token fewer",
    bound=1e-5,
    reason="the angle falls like c / R; the bound lets c be 45 norms, where 2 are usual",
)
GLOBAL_PATH = CLAIMS.claim(
    "global-path",
    "minimizers over balls of growing radius tend to the max-margin direction",
    statement="global regularization path of the prompt",
    assuming=(
        trains("p"),
        UNIQUE_OPTIMUM.broken_by(lambda: tied_scores("p")),
        OPTIMUM_FEASIBLE.broken_by(lambda: enclosed_token("p")),
    ),
    contrast=CONTRAST,
    data=lambda seed: [
        three_sequences(),
        one_sequence(equal_scores=True),
        one_sequence(equal_scores=False),
    ],
)
