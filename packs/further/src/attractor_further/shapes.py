"""Arrays of heads: a row for each query."""

import numpy as np
from jaxtyping import Float

Queries = Float[np.ndarray, "query e"]
"""Queries of a head."""
Outputs = Float[np.ndarray, "query v"]
"""Outputs of a head, one for each query."""
