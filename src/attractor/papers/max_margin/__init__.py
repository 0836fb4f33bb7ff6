"""*Max-Margin Token Selection in Attention Mechanism*: data, claims, figures."""
