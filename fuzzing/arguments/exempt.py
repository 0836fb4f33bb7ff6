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
        "attractor.prompts.in_context.InContextTask",
        "attractor.prompts.measures.Measure",
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
        "attractor.corpora.linear.EmbeddedContexts.from_arrays",
        "attractor.corpora.linear.LinearTrajectory.of",
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
        "attractor.margin.batching.Batch.choose",
        "attractor.margin.register_methods",
        "attractor.geometry.singular_value_decomposition",
        "attractor.geometry.singular_values",
        "attractor.corpora.linear.LinearTraining.record",
        "attractor.corpora.linear.LinearTraining.start",
        "attractor.corpora.linear.LinearTraining.step",
        "attractor.corpora.mechanics.squared_miss",
        "attractor.papers.Conclusion.met_by",
        "attractor.papers.Conclusion.settled_by",
        "attractor.papers.Request.bar",
        "attractor.papers.Request.uses",
        "attractor.papers.Statement.row",
        "attractor.maps.sweeps.Grid.chunk_at",
        "attractor.maps.sweeps.Grid.chunk_counts",
        "attractor.maps.sweeps.Grid.chunk_shape",
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

SETS_THE_PROCESS = frozenset({"attractor.support.use_compilation_cache"})
"""Changes where a process keeps its files, for good: what it refuses has tests of its own."""

TRAINS_FOR_LONG = frozenset({"attractor.heads.audit.positive_control"})
"""Trains heads before it returns anything: what it refuses has tests of its own."""

NEEDS_A_MODEL = frozenset(
    {
        "attractor.heads.monitor.trainer_callback",
        "attractor.heads.monitor.watched_heads",
        "attractor.heads.monitor.WatchedHead.from_module",
    }
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
        "attractor.maps.basins.BasinMap",
        "attractor.maps.basins.BasinShares",
        "attractor.maps.bias.BiasMatrix",
        "attractor.maps.bias.Cell",
        "attractor.maps.bias.NormAnswer",
        "attractor.analysis.rates.Law",
        "attractor.analysis.rates.Rate",
        "attractor.analysis.rates.Rates",
        "attractor.heads.audit.Audit",
        "attractor.heads.checkpoints.CheckpointAudit",
        "attractor.datasets.DigitPatches",
        "attractor.models.datasets.EncodedTexts",
        "attractor.models.datasets.Images",
        "attractor.models.datasets.PlantedReviews",
        "attractor.models.datasets.Reviews",
        "attractor.models.datasets.SentimentWords",
        "attractor.files.Case",
        "attractor.papers.files.ClassifierCase",
        "attractor.corpora.files.CorpusCase",
        "attractor.prompts.files.HeadCase",
        "attractor.prompts.files.InContextCase",
        "attractor.prompts.files.RegressionCase",
        "attractor.files.LoadedTokens",
        "attractor.margin.selections.AttractingCone",
        "attractor.margin.variants.Decomposition",
        "attractor.margin.variants.FactorizedSolution",
        "attractor.margin.selections.LocalOptimality",
        "attractor.margin.variants.RateRatioDirection",
        "attractor.margin.selections.SelectionCensus",
        "attractor.margin.variants.SeveralSolution",
        "attractor.margin.Solution",
        "attractor.margin.Task",
        "attractor.models.ClassifierTrajectory",
        "attractor.models.LearningRateSearch",
        "attractor.heads.monitor.HeadRecord",
        "attractor.corpora.structures.AssumptionCheck",
        "attractor.corpora.structures.Collocation",
        "attractor.corpora.structures.CorpusStructure",
        "attractor.corpora.structures.PartialOrders",
        "attractor.corpora.structures.QueryGraphs",
        "attractor.corpora.RealizablePart",
        "attractor.corpora.Samples",
        "attractor.corpora.two_stages.TwoStageTrajectory",
        "attractor.corpora.linear.Compatibility",
        "attractor.corpora.linear.LinearTraining",
        "attractor.corpora.linear.LinearTrajectory",
        "attractor.corpora.linear.Separability",
        "attractor.corpora.linear.SupportSpace",
        "attractor.corpora.mechanics.AttentionLimits",
        "attractor.corpora.mechanics.BallPath",
        "attractor.corpora.mechanics.ChordTest",
        "attractor.corpora.mechanics.ConflictingCorpora",
        "attractor.corpora.mechanics.CyclicSubspace",
        "attractor.corpora.mechanics.FinitePart",
        "attractor.corpora.mechanics.LocalLimits",
        "attractor.papers.Check",
        "attractor.papers.Claim",
        "attractor.papers.Claims",
        "attractor.papers.Comparison",
        "attractor.papers.Conclusion",
        "attractor.papers.Contrast",
        "attractor.papers.Exponent",
        "attractor.papers.Finding",
        "attractor.papers.Measurement",
        "attractor.results.Paper",
        "attractor.papers.PaperFigure",
        "attractor.papers.Reading",
        "attractor.papers.Request",
        "attractor.papers.Statement",
        "attractor.papers.Assumption",
        "attractor.prompts.CertifiedConcentration",
        "attractor.prompts.RowConcentration",
        "attractor.prompts.finite_length.ErrorTable",
        "attractor.prompts.in_context.AssumptionCheck",
        "attractor.prompts.in_context.Finding",
        "attractor.prompts.in_context.RiskTransfer",
        "attractor.prompts.in_context.Tail",
        "attractor.prompts.in_context.TaskSample",
        "attractor.prompts.length.NonGaussianDefect",
        "attractor.prompts.length.PromptLength",
        "attractor.prompts.regression.flows.BlockFlow",
        "attractor.prompts.regression.InContextRuns",
        "attractor.prompts.regression.InContextTrajectory",
        "attractor.prompts.regression.flows.IsotropicFlow",
        "attractor.results.provenance.Provenance",
        "attractor.report.Conflict",
        "attractor.maps.Paired",
        "attractor.maps.sweeps.Chunk",
        "attractor.maps.sweeps.storage.Failure",
        "attractor.maps.sweeps.storage.SweepCheck",
        "attractor.maps.sweeps.storage.SweepStatus",
        "attractor.maps.sweeps.SweepSummary",
        "attractor.training.Trajectory",
        "attractor.margin.Selection",
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
        "attractor.maps.basins.basin_shares",
        "attractor.analysis.losses.first_gradient_margin",
        "attractor.analysis.predicted_offsets",
        "attractor.analysis.rates.fit_rates",
        "attractor.analysis.verify",
        "attractor.attention.heads.ModuleHead",
        "attractor.models.datasets.augment_images",
        "attractor.datasets.docstring_sentences",
        "attractor.models.ClassifierTrajectory.model",
        "attractor.models.TextTransformer",
        "attractor.models.VisionTransformer",
        "attractor.models.train_classifier",
        "attractor.corpora.two_stages.attention_solutions",
        "attractor.corpora.two_stages.feed_forward_solutions",
        "attractor.corpora.linear.LinearTrajectory.W",
        "attractor.corpora.linear.linear_regularization_path",
        "attractor.corpora.linear.measure_linear",
        "attractor.corpora.linear.train_linear",
        "attractor.corpora.two_stages.measure_two_stages",
        "attractor.corpora.mechanics.chord_test",
        "attractor.corpora.mechanics.measure_limits",
        "attractor.prompts.finite_length.ErrorTable.excess_per_variance",
        "attractor.prompts.finite_length.ErrorTable.mean_output",
        "attractor.prompts.finite_length.ErrorTable.output_error",
        "attractor.prompts.finite_length.ErrorTable.output_second_moment",
        "attractor.prompts.finite_length.ErrorTable.sum_of_squared_weights",
        "attractor.prompts.finite_length.averaged_error_of_output",
        "attractor.prompts.finite_length.averaged_output_error",
        "attractor.prompts.finite_length.error_table",
        "attractor.prompts.files.InContextCase.of_task",
        "attractor.prompts.in_context.RiskTransfer.head",
        "attractor.prompts.in_context.RiskTransfer.load",
        "attractor.prompts.in_context.RiskTransfer.save",
        "attractor.prompts.in_context.check_assumption",
        "attractor.prompts.in_context.risk_transfer",
        "attractor.prompts.in_context.transfer_of_samples",
        "attractor.prompts.regression.InContextTrajectory.blocks",
        "attractor.prompts.regression.flows.RiskFlow.time_to_risk",
        "attractor.prompts.regression.flows.isotropic_finite_flow",
        "attractor.prompts.regression.flows.isotropic_optimum",
        "attractor.prompts.regression.official_experiment",
        "attractor.prompts.regression.risks.opposite_heads_optimum",
        "attractor.prompts.regression.risks.softmax_optimum",
        "attractor.prompts.regression.risks.softmax_risk",
        "attractor.prompts.regression.train_at_lengths",
        "attractor.training.Trajectory.W",
        "attractor.training.Trajectory.load",
        "attractor.training.Trajectory.save",
        "attractor.training.flow.gradient_flow",
        "attractor.training.paths.local_path",
        "attractor.training.paths.regularization_path",
    }
)
"""What trains or compiles for its valid call: left to the whole run, out of the fast sample."""

NEEDS = {"attractor.models.datasets.sentiment_words": "vaderSentiment"}
"""Packages that a callable cannot do without."""
