"""Its claims."""

from attractor.papers import Claims
from attractor.prompts import HeadCase
from attractor_further.gaussian_mixtures import PAPER

CLAIMS = Claims(PAPER, HeadCase)
