"""The Frobenius norm: pivoting, non-negative least squares, the dual active set, also exactly."""
