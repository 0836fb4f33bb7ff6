"""Its claims."""

from attractor.files.case import Case
from attractor.papers.claim import Claims
from attractor.results.paper import FOLKLORE

CLAIMS = Claims(FOLKLORE, Case)

ORDER = ("muon", "adam", "signs", "keys_and_queries", "weight_decay")
