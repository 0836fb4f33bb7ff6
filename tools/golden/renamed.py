"""What claims and figures are called now, of which a base commit may have the former names."""

from __future__ import annotations

import re

_MOVED = {
    ("next-token", "mechanics"): (
        "conflicts-leave-a-finite-part conflicts-leave-the-direction "
        "label-mass-loss-is-convex no-conflicts-no-finite-part "
        "regularization-path-of-label-mass"
    ),
    ("next-token", "linear-next-token"): (
        "descent-keeps-odds descent-of-decoders entropy-is-the-infimum "
        "finite-part-of-decoders loss-of-descent more-dimensions-than-contexts "
        "regularization-path-of-decoders"
    ),
    ("next-token", "multiclass-descent"): (
        "margin-of-adam margin-of-muon margin-of-normalized-descent "
        "margin-of-normalized-momentum margin-of-sign-descent margin-of-sign-momentum "
        "margin-of-spectral-descent"
    ),
    ("next-token", "associative-memory"): (
        "first-step-of-muon-is-balanced loss-of-muon-falls-exponentially"
    ),
    ("large-prompt", "gaussian-mixtures"): (
        "bayes-discriminant bayes-parameters-critical discriminant-balance-kept "
        "discriminant-escape discriminant-global-convergence discriminant-local-convergence "
        "discriminant-minimizers discriminant-saddles iterated-denoiser "
        "linear-attention-gap mixture-attention mixture-sensitivity one-head-denoiser "
        "one-head-gap residual-denoiser two-head-denoiser"
    ),
    ("large-prompt", "token-sample-complexity"): (
        "hard-attention sample-complexity-exponent uniform-rate"
    ),
    ("large-prompt", "critical-temperature"): (
        "certified-concentration row-concentration row-spread"
    ),
    ("large-prompt", "in-context-convergence"): (
        "discrete-attention discrete-selection feature-training-rate frequent-feature-first"
    ),
    ("large-prompt", "trained-linear-models"): (
        "linear-attention-limit linear-attention-optimum linear-attention-test-error"
    ),
}
"""Former and present first parts of names, by the second parts that stayed."""
_RENAMED = {
    "next-token/mechanics-global": "mechanics/global-convergence",
    "next-token/mechanics-local": "mechanics/local-convergence",
    "next-token/linear-overparameterized": "linear-next-token/overparameterized",
    "next-token/linear-two-dimensional": "linear-next-token/two-dimensional",
    "large-prompt/mixtures": "gaussian-mixtures/outputs-and-denoising",
}
NAMES = _RENAMED | {
    f"{former}/{name}": f"{present}/{name}"
    for (former, present), names in _MOVED.items()
    for name in names.split()
}
"""Present names by former ones."""
_FORMER = re.compile(rf"(?<=/)({'|'.join(sorted(NAMES, key=len, reverse=True))})(?![\w-])")


def present(name: str) -> str:
    """The name of a result with the present name of the claim or figure that it is of."""
    return _FORMER.sub(lambda found: NAMES[found[1]], name)
