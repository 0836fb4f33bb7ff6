"""What is public and not in the table, each with its reason."""

CONTRACTS = frozenset(
    {
        "attractor.attention.heads.Head",
        "attractor.attention.Loss",
        "attractor.attention.MarginLoss",
        "attractor.attention.Parameterization",
        "attractor.geometry.Geometry",
        "attractor.files.ArrayFile",
        "attractor.files.DataSet",
        "attractor.files.FileContents",
        "attractor.prompt.in_context.InContextTask",
        "attractor.prompt.measures.Measure",
    }
)
"""What a class of the user's derives from: abstract, and called through classes that are not."""

CONTRACT_METHODS = frozenset(
    {
        # of losses, heads and parameterizations: traced, once for every step or row
        *("check_classes", "check_dimension", "check_initial", "check_outputs"),
        *("cotangent", "cotangent_at"),
        *("effective_geometry", "effective_matrix", "for_instances", "from_arrays", "from_matrix"),
        *("arrangement", "by_head", "descended", "descended_norm", "from_heads", "in_gauge"),
        *("initial", "mean_gradient", "predict", "prepare", "reach", "scores", "shapes"),
        *("to_arrays", "validate", "value", "value_at"),
        # of geometries: traced, or bounds on rounding that solvers ask for
        *("norm", "dual_norm", "steepest_descent_direction", "mirror_map", "inverse_mirror_map"),
        *("dual_norm_constant", "dual_norm_constants", "norm_rounding", "distance_to_solution"),
        *("from_name", "cut", "joined", "only_largest", "pieces"),
        # of in-context tasks: called with what was drawn by the library
        *("draw", "measure", "queries", "sub_gaussian", "tokens"),
        # of cases: called by the machinery of papers with what it made
        *("once", "replace", "smaller"),
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
        "attractor.attention.heads.is_linear",
        "attractor.attention.mean_loss",
        "attractor.next_token.linear.EmbeddedContexts.from_arrays",
        "attractor.next_token.linear.LinearTrajectory.of",
        "attractor.training.Trajectory.of",
        "attractor.training.Trajectory.require_one_variant",
        "attractor.training.optimizers.Optimizer.effective_geometry",
        "attractor.training.optimizers.Optimizer.at_rest",
        "attractor.training.optimizers.Optimizer.at_step",
        "attractor.training.optimizers.Optimizer.numbers",
        "attractor.training.optimizers.Optimizer.with_numbers",
        "attractor.training.optimizers.Optimizer.with_several",
        "attractor.training.optimizers.Schedule.names",
        "attractor.training.optimizers.Schedule.numbers",
        "attractor.training.optimizers.Schedule.with_numbers",
        "attractor.attention.row_cotangent",
        "attractor.attention.scaled_gradient",
        "attractor.attention.softmax_attention",
        "attractor.attention.softmax_row",
        "attractor.geometry.Block.grid",
        "attractor.geometry.has_norm_of",
        "attractor.geometry.lengths",
        "attractor.geometry.register_geometry",
        "attractor.margin.Batch.choose",
        "attractor.margin.register_methods",
        "attractor.geometry.singular_value_decomposition",
        "attractor.geometry.singular_values",
        "attractor.next_token.linear.LinearTraining.record",
        "attractor.next_token.linear.LinearTraining.start",
        "attractor.next_token.linear.LinearTraining.step",
        "attractor.next_token.mechanics.squared_miss",
        "attractor.papers.Conclusion.met_by",
        "attractor.papers.Conclusion.settled_by",
        "attractor.papers.Request.bar",
        "attractor.papers.Request.uses",
        "attractor.papers.Statement.row",
        "attractor.sweeps.Grid.chunk_at",
        "attractor.sweeps.Grid.chunk_counts",
        "attractor.sweeps.Grid.chunk_shape",
        "attractor.training.Objective.recorded",
        "attractor.training.Objective.seen",
        "attractor.training.optimizers.Optimizer.read",
        "attractor.training.optimizers.Optimizer.step",
        "attractor.training.optimizers.register_optimizer",
    }
)
"""Called within compiled programs with traced arrays, or by the library with what it made: where
NumPy cannot look at a value, and where a check would cost every step."""

TAKES_ANY_NUMBER = frozenset({"attractor.geometry.BlockMaximum", "attractor.geometry.BlockSum"})
"""Arguments without names: what they refuse has tests of its own."""

SETS_THE_PROCESS = frozenset({"attractor.use_compilation_cache"})
"""Changes where a process keeps its files, for good: what it refuses has tests of its own."""

TRAINS_FOR_LONG = frozenset({"attractor.audit.positive_control"})
"""Trains heads before it returns anything: what it refuses has tests of its own."""

NEEDS_A_MODEL = frozenset(
    {"attractor.monitor.watched_heads", "attractor.monitor.WatchedHead.from_module"}
)
"""Runs a model of PyTorch, which is not always there; what it refuses has tests of its own."""

NEEDS_A_NOTEBOOK = frozenset({"attractor.explorer.explore"})
"""Returns a widget of anywidget, which is not always there; ``explorer_page`` takes the same."""

MADE_BY_THE_LIBRARY = frozenset(
    {
        "attractor.analysis.DirectionMeasures",
        "attractor.analysis.LabelMarginConstant",
        "attractor.analysis.Offsets",
        "attractor.analysis.Verdict",
        "attractor.analysis.basins.BasinMap",
        "attractor.analysis.basins.BasinShares",
        "attractor.analysis.bias.BiasMatrix",
        "attractor.analysis.bias.Cell",
        "attractor.analysis.bias.NormAnswer",
        "attractor.analysis.rates.Law",
        "attractor.analysis.rates.Rate",
        "attractor.analysis.rates.Rates",
        "attractor.audit.Audit",
        "attractor.audit.CheckpointAudit",
        "attractor.datasets.DigitPatches",
        "attractor.datasets.EncodedTexts",
        "attractor.datasets.Images",
        "attractor.datasets.PlantedReviews",
        "attractor.datasets.Reviews",
        "attractor.datasets.SentimentWords",
        "attractor.files.Case",
        "attractor.files.ClassifierCase",
        "attractor.files.CorpusCase",
        "attractor.files.HeadCase",
        "attractor.files.InContextCase",
        "attractor.files.RegressionCase",
        "attractor.files.LoadedTokens",
        "attractor.margin.AttractingCone",
        "attractor.margin.Decomposition",
        "attractor.margin.FactorizedSolution",
        "attractor.margin.LocalOptimality",
        "attractor.margin.RateRatioDirection",
        "attractor.margin.SelectionCensus",
        "attractor.margin.SeveralSolution",
        "attractor.margin.Solution",
        "attractor.margin.Task",
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
        "attractor.papers.Check",
        "attractor.papers.Claim",
        "attractor.papers.Claims",
        "attractor.papers.Comparison",
        "attractor.papers.Conclusion",
        "attractor.papers.Contrast",
        "attractor.papers.Exponent",
        "attractor.papers.Finding",
        "attractor.papers.Measurement",
        "attractor.papers.Paper",
        "attractor.papers.PaperFigure",
        "attractor.papers.Reading",
        "attractor.papers.Request",
        "attractor.papers.Statement",
        "attractor.papers.Assumption",
        "attractor.prompt.CertifiedConcentration",
        "attractor.prompt.RowConcentration",
        "attractor.prompt.finite_length.ErrorTable",
        "attractor.prompt.in_context.AssumptionCheck",
        "attractor.prompt.in_context.Finding",
        "attractor.prompt.in_context.RiskTransfer",
        "attractor.prompt.in_context.Tail",
        "attractor.prompt.in_context.TaskSample",
        "attractor.prompt.length.NonGaussianDefect",
        "attractor.prompt.length.PromptLength",
        "attractor.prompt.regression.BlockFlow",
        "attractor.prompt.regression.InContextRuns",
        "attractor.prompt.regression.InContextTrajectory",
        "attractor.prompt.regression.IsotropicFlow",
        "attractor.provenance.Provenance",
        "attractor.report.Conflict",
        "attractor.report.Paired",
        "attractor.sweeps.Chunk",
        "attractor.sweeps.Failure",
        "attractor.sweeps.SweepCheck",
        "attractor.sweeps.SweepStatus",
        "attractor.sweeps.SweepSummary",
        "attractor.training.Trajectory",
        "attractor.Selection",
        "attractor.training.Optimizer",
        "attractor.training.optimizers.Optimizer",
    }
)
"""Results, and descriptions in papers: read by the user, made by the library alone from values that
it checked. Their methods are in the table."""

SLOW = frozenset(
    {
        "attractor.analysis.Verdict.rate",
        "attractor.analysis.Verdict.sel",
        "attractor.analysis.Verdict.to_csv",
        "attractor.analysis.Verdict.to_json",
        "attractor.analysis.basins.basin_shares",
        "attractor.analysis.first_gradient_margin",
        "attractor.analysis.predicted_offsets",
        "attractor.analysis.rates.fit_rates",
        "attractor.analysis.verify",
        "attractor.attention.heads.ModuleHead",
        "attractor.datasets.augment_images",
        "attractor.datasets.docstring_sentences",
        "attractor.models.ClassifierTrajectory.model",
        "attractor.models.TextTransformer",
        "attractor.models.VisionTransformer",
        "attractor.models.train_classifier",
        "attractor.next_token.attention_solutions",
        "attractor.next_token.feed_forward_solutions",
        "attractor.next_token.linear.LinearTrajectory.W",
        "attractor.next_token.linear.linear_regularization_path",
        "attractor.next_token.linear.measure_linear",
        "attractor.next_token.linear.train_linear",
        "attractor.next_token.measure_two_stages",
        "attractor.next_token.mechanics.chord_test",
        "attractor.next_token.mechanics.measure_limits",
        "attractor.prompt.finite_length.ErrorTable.excess_per_variance",
        "attractor.prompt.finite_length.ErrorTable.mean_output",
        "attractor.prompt.finite_length.ErrorTable.output_error",
        "attractor.prompt.finite_length.ErrorTable.output_second_moment",
        "attractor.prompt.finite_length.ErrorTable.sum_of_squared_weights",
        "attractor.prompt.finite_length.averaged_error_of_output",
        "attractor.prompt.finite_length.averaged_output_error",
        "attractor.prompt.finite_length.error_table",
        "attractor.files.InContextCase.of_task",
        "attractor.prompt.in_context.RiskTransfer.head",
        "attractor.prompt.in_context.RiskTransfer.load",
        "attractor.prompt.in_context.RiskTransfer.save",
        "attractor.prompt.in_context.check_assumption",
        "attractor.prompt.in_context.risk_transfer",
        "attractor.prompt.in_context.transfer_of_samples",
        "attractor.prompt.regression.InContextTrajectory.blocks",
        "attractor.prompt.regression.RiskFlow.time_to_risk",
        "attractor.prompt.regression.isotropic_finite_flow",
        "attractor.prompt.regression.isotropic_optimum",
        "attractor.prompt.regression.official_experiment",
        "attractor.prompt.regression.opposite_heads_optimum",
        "attractor.prompt.regression.softmax_optimum",
        "attractor.prompt.regression.softmax_risk",
        "attractor.prompt.regression.train_at_lengths",
        "attractor.training.Trajectory.W",
        "attractor.training.Trajectory.load",
        "attractor.training.Trajectory.save",
        "attractor.training.flow.gradient_flow",
        "attractor.training.paths.local_path",
        "attractor.training.paths.regularization_path",
    }
)
"""What trains or compiles for its valid call: left to the whole run, out of the fast sample."""

NEEDS = {"attractor.datasets.sentiment_words": "vaderSentiment"}
"""Packages that a callable cannot do without."""
