"""What is public and not in the table, each with its reason."""

CONTRACTS = frozenset(
    {
        "attractor.attention.heads.Head",
        "attractor.attention.losses.Loss",
        "attractor.attention.losses.MarginLoss",
        "attractor.attention.parameterization.Parameterization",
        "attractor.geometry.Geometry",
        "attractor.papers.DataSet",
        "attractor.prompt.measures.Measure",
    }
)
"""What a class of the user's derives from: abstract, and called through classes that are not."""

CONTRACT_METHODS = frozenset(
    {
        # of losses, heads and parameterizations: traced, once for every step or row
        *("check_classes", "check_outputs", "check_initial", "cotangent", "cotangent_at"),
        *("effective_geometry", "effective_matrix", "for_instances", "from_arrays", "from_matrix"),
        *("initial", "mean_gradient", "predict", "prepare", "reach", "scores", "shapes"),
        *("to_arrays", "validate", "value", "value_at"),
        # of geometries: traced, or bounds on rounding that solvers ask for
        *("norm", "dual_norm", "steepest_descent_direction", "mirror_map", "inverse_mirror_map"),
        *("dual_norm_constant", "norm_rounding", "distance_to_solution", "from_name"),
        # of cases: called by the machinery of papers with what it made
        *("once", "replace", "smaller", "from_loaded"),
    }
)
"""Methods of contracts, which the library calls on objects that a user may have made."""

INSIDE = frozenset(
    {
        "attractor.attention.Rows.mean",
        "attractor.attention.Scaled",
        "attractor.attention.attention_rows",
        "attractor.attention.heads.as_head",
        "attractor.attention.heads.head_from_arrays",
        "attractor.attention.losses.is_margin_loss",
        "attractor.attention.mean_loss",
        "attractor.attention.row_cotangent",
        "attractor.attention.scaled_gradient",
        "attractor.attention.softmax_attention",
        "attractor.attention.softmax_row",
        "attractor.geometry.register_geometry",
        "attractor.geometry.singular_value_decomposition",
        "attractor.geometry.singular_values",
        "attractor.next_token.linear.LinearTraining.record",
        "attractor.next_token.linear.LinearTraining.start",
        "attractor.next_token.linear.LinearTraining.step",
        "attractor.next_token.mechanics.squared_miss",
        "attractor.papers.Conclusion.met_by",
        "attractor.papers.Request.bar",
        "attractor.papers.Request.uses",
        "attractor.training.Objective.recorded",
        "attractor.training.optimizers.Optimizer.read",
        "attractor.training.optimizers.Optimizer.step",
        "attractor.training.optimizers.register_optimizer",
    }
)
"""Called within compiled programs with traced arrays, or by the library with what it made: where
NumPy cannot look at a value, and where a check would cost every step."""

MADE_BY_THE_LIBRARY = frozenset(
    {
        "attractor.analysis.DirectionMeasures",
        "attractor.analysis.LabelMarginConstant",
        "attractor.analysis.Offsets",
        "attractor.analysis.Verdict",
        "attractor.analysis.basins.BasinBoundary",
        "attractor.analysis.basins.BasinMap",
        "attractor.analysis.basins.BasinShares",
        "attractor.analysis.bias.BiasMatrix",
        "attractor.analysis.bias.NormAnswer",
        "attractor.analysis.rates.Law",
        "attractor.analysis.rates.Rate",
        "attractor.analysis.rates.Rates",
        "attractor.datasets.DigitPatches",
        "attractor.datasets.EncodedTexts",
        "attractor.datasets.Images",
        "attractor.datasets.PlantedReviews",
        "attractor.datasets.Reviews",
        "attractor.datasets.SentimentWords",
        "attractor.files.LoadedClassifiers",
        "attractor.files.LoadedCorpus",
        "attractor.files.LoadedHead",
        "attractor.files.LoadedRegression",
        "attractor.files.LoadedTokens",
        "attractor.margin.AttractingCone",
        "attractor.margin.Decomposition",
        "attractor.margin.FactorizedSolution",
        "attractor.margin.LocalOptimality",
        "attractor.margin.RateRatioDirection",
        "attractor.margin.SelectionCensus",
        "attractor.margin.Sensitivity",
        "attractor.margin.SeveralSolution",
        "attractor.margin.Solution",
        "attractor.models.ClassifierTrajectory",
        "attractor.models.LearningRateSearch",
        "attractor.monitor.HeadRecord",
        "attractor.next_token.AssumptionCheck",
        "attractor.next_token.Collocation",
        "attractor.next_token.CorpusStructure",
        "attractor.next_token.PartialOrders",
        "attractor.next_token.QueryGraphs",
        "attractor.next_token.RealizablePart",
        "attractor.next_token.Samples",
        "attractor.next_token.TwoStageTrajectory",
        "attractor.next_token.linear.Compatibility",
        "attractor.next_token.linear.LinearTraining",
        "attractor.next_token.linear.LinearTrajectory",
        "attractor.next_token.linear.Separability",
        "attractor.next_token.linear.SupportSpace",
        "attractor.next_token.mechanics.AttentionLimits",
        "attractor.next_token.mechanics.BallPath",
        "attractor.next_token.mechanics.ChordTest",
        "attractor.next_token.mechanics.ConflictingCorpora",
        "attractor.next_token.mechanics.CyclicSubspace",
        "attractor.next_token.mechanics.FinitePart",
        "attractor.next_token.mechanics.LocalLimits",
        "attractor.papers.Case",
        "attractor.papers.Check",
        "attractor.papers.Claim",
        "attractor.papers.ClassifierCase",
        "attractor.papers.Conclusion",
        "attractor.papers.CorpusCase",
        "attractor.papers.Finding",
        "attractor.papers.HeadCase",
        "attractor.papers.Measurement",
        "attractor.papers.Paper",
        "attractor.papers.PaperFigure",
        "attractor.papers.Reading",
        "attractor.papers.RegressionCase",
        "attractor.papers.Request",
        "attractor.papers.Assumption",
        "attractor.prompt.finite_length.ErrorTable",
        "attractor.prompt.length.NonGaussianDefect",
        "attractor.prompt.length.PromptLength",
        "attractor.prompt.length.ReplacementError",
        "attractor.prompt.regression.BlockFlow",
        "attractor.prompt.regression.InContextRuns",
        "attractor.prompt.regression.InContextTrajectory",
        "attractor.prompt.regression.IsotropicFlow",
        "attractor.provenance.Provenance",
        "attractor.report.Conflict",
        "attractor.report.SizeResult",
        "attractor.training.Trajectory",
        "attractor.Selection",
        "attractor.training.Optimizer",
        "attractor.training.optimizers.Optimizer",
    }
)
"""Results, and descriptions in papers: read by the user, made by the library alone from values that
it checked. Their methods are in the table."""
