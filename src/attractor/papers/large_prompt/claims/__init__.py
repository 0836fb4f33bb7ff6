"""Its claims."""

from attractor.papers.claim import Claims
from attractor.prompts.files.head import HeadCase
from attractor.prompts.files.in_context import InContextCase
from attractor.prompts.files.regression import RegressionCase
from attractor.results.paper import LARGE_PROMPT

HEAD_CLAIMS = Claims(LARGE_PROMPT, HeadCase)
REGRESSION_CLAIMS = Claims(LARGE_PROMPT, RegressionCase)
IN_CONTEXT_CLAIMS = Claims(LARGE_PROMPT, InContextCase)
