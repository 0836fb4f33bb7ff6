"""The Frobenius norm: pivoting, non-negative least squares, and the dual active set."""
