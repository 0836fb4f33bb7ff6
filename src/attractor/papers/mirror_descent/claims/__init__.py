"""Its claims, in the order of the text."""

ORDER = (
    "identity",
    "descent",
    "regularization_path",
    "local_convergence",
    "rates",
    "endpoints",
    "joint_path",
    "joint_endpoints",
    "divergence",
    "trained_classifiers",
)
