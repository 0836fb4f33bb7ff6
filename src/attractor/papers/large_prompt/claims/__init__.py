"""Its claims, in the order of the text."""

from attractor.papers.claim import Claims
from attractor.prompts.files.head import HeadCase
from attractor.prompts.files.in_context import InContextCase
from attractor.prompts.files.regression import RegressionCase
from attractor.results.paper import GAUSSIAN_MIXTURES, IN_CONTEXT_CONVERGENCE, LARGE_PROMPT

HEAD_CLAIMS = Claims(LARGE_PROMPT, HeadCase)
REGRESSION_CLAIMS = Claims(LARGE_PROMPT, RegressionCase)
IN_CONTEXT_CLAIMS = Claims(LARGE_PROMPT, InContextCase)
MIXTURE_CLAIMS = Claims(GAUSSIAN_MIXTURES, HeadCase, "large-prompt")
FEATURE_CLAIMS = Claims(IN_CONTEXT_CONVERGENCE, HeadCase, "large-prompt")

ORDER = (
    "affine_identity",
    "concentration",
    "sub_gaussian_concentration",
    "sharp_rates",
    "exponent",
    "hard_attention",
    "row_concentration",
    "certified_concentration",
    "mixtures",
    "discriminant",
    "discriminant_saddles",
    "discriminant_escape",
    "discriminant_local_flow",
    "discriminant_krylov_flow",
    "denoising",
    "denoising_gaps",
    "iterated_denoising",
    "discrete_features",
    "feature_training",
    "general_training",
    "trajectories",
    "risk_limit",
    "order_of_limits",
    "trained_limit",
    "heavy_tails",
    "linear_attention_optimum",
    "finite_optima",
    "opposite_heads",
)
