"""Its claims."""

from attractor.corpora.files.corpus import CorpusCase
from attractor.papers.claim import Claims
from attractor.results.paper import NEXT_TOKEN

CLAIMS = Claims(NEXT_TOKEN, CorpusCase)
