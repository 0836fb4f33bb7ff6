"""Its claims."""

from attractor.corpora.files.corpus import CorpusCase
from attractor.papers.claim import Claims
from attractor.results.paper import (
    ASSOCIATIVE_MEMORY,
    LINEAR_NEXT_TOKEN,
    MECHANICS,
    MULTICLASS_DESCENT,
    NEXT_TOKEN,
)

CLAIMS = Claims(NEXT_TOKEN, CorpusCase)
MECHANICS_CLAIMS = Claims(MECHANICS, CorpusCase, "next-token")
LINEAR_CLAIMS = Claims(LINEAR_NEXT_TOKEN, CorpusCase, "next-token")
MULTICLASS_CLAIMS = Claims(MULTICLASS_DESCENT, CorpusCase, "next-token")
MEMORY_CLAIMS = Claims(ASSOCIATIVE_MEMORY, CorpusCase, "next-token")
