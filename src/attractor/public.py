"""The public names of ``attractor``, all in one place.

Type checkers import this file. ``attractor`` itself reads it, and imports a name from the module
that is given here when the name is first used.
"""

from attractor.analysis import (
    Rate as Rate,
    Rates as Rates,
    Verdict as Verdict,
    fit_rate as fit_rate,
    fit_rates as fit_rates,
    verify as verify,
)
from attractor.attention import (
    ConcaveHead as ConcaveHead,
    CrossEntropy as CrossEntropy,
    Exponential as Exponential,
    Joint as Joint,
    KeyQuery as KeyQuery,
    Linear as Linear,
    LinearHead as LinearHead,
    Logistic as Logistic,
    MultiHead as MultiHead,
    PredictionHeads as PredictionHeads,
    PromptVector as PromptVector,
    ReLUHead as ReLUHead,
    Squared as Squared,
    ValueMatrix as ValueMatrix,
    VocabularyHead as VocabularyHead,
    softmax_attention as softmax_attention,
)
from attractor.explorer import explore as explore, explorer_page as explorer_page
from attractor.files import load as load
from attractor.geometry import (
    BlockMaximum as BlockMaximum,
    BlockSum as BlockSum,
    Frobenius as Frobenius,
    Geometry as Geometry,
    Lp as Lp,
    Nuclear as Nuclear,
    Schatten as Schatten,
    Spectral as Spectral,
)
from attractor.heads import (
    Audit as Audit,
    Captured as Captured,
    CheckpointAudit as CheckpointAudit,
    HeadMonitor as HeadMonitor,
    WatchedHead as WatchedHead,
    audit_checkpoints as audit_checkpoints,
    audit_heads as audit_heads,
    load_audit as load_audit,
    watched_heads as watched_heads,
)
from attractor.maps import Paired as Paired, paired as paired, which_norm as which_norm
from attractor.margin import (
    AttractingCone as AttractingCone,
    Decomposition as Decomposition,
    FactorizedSolution as FactorizedSolution,
    MarginProblem as MarginProblem,
    RateRatioDirection as RateRatioDirection,
    SelectionCensus as SelectionCensus,
    SeveralSolution as SeveralSolution,
    Solution as Solution,
    attracting_cone as attracting_cone,
    check_local_optimality as check_local_optimality,
    decompose as decompose,
    enumerate_selections as enumerate_selections,
    label_problem as label_problem,
    label_support as label_support,
    locally_optimal_selections as locally_optimal_selections,
    rate_ratio_direction as rate_ratio_direction,
    relaxed_problem as relaxed_problem,
    solve as solve,
    solve_factorized as solve_factorized,
    solve_several as solve_several,
    tie_classes as tie_classes,
)
from attractor.margin.selection import (
    Selection as Selection,
    attended_tokens as attended_tokens,
    optimal_tokens as optimal_tokens,
    token_scores as token_scores,
)
from attractor.support.errors import (
    AttractorError as AttractorError,
    AttractorWarning as AttractorWarning,
    FileFormatError as FileFormatError,
    InvalidInputError as InvalidInputError,
    Status as Status,
    TrialStatus as TrialStatus,
)
from attractor.support.machine import (
    kind_of_processor as kind_of_processor,
    use_compilation_cache as use_compilation_cache,
)
from attractor.support.threads import use_threads as use_threads
from attractor.tokens import Tokens as Tokens, split_heads as split_heads
from attractor.training import (
    Optimizer as Optimizer,
    Trajectory as Trajectory,
    adam as adam,
    by_parameter as by_parameter,
    composed_spectral_descent as composed_spectral_descent,
    declare as declare,
    get_optimizer as get_optimizer,
    gradient_descent as gradient_descent,
    gradient_flow as gradient_flow,
    greedy_coordinate_descent as greedy_coordinate_descent,
    joined as joined,
    lion as lion,
    mirror_descent as mirror_descent,
    momentum as momentum,
    muon as muon,
    newton_schulz_values as newton_schulz_values,
    normalized_gradient_descent as normalized_gradient_descent,
    normalized_momentum as normalized_momentum,
    polyak_step as polyak_step,
    power_decay as power_decay,
    registered_optimizers as registered_optimizers,
    regularization_path as regularization_path,
    schatten_mirror_descent as schatten_mirror_descent,
    sign_descent as sign_descent,
    sign_momentum as sign_momentum,
    spectral_descent as spectral_descent,
    steepest_descent as steepest_descent,
    train as train,
    until as until,
    with_rescaled_state as with_rescaled_state,
)
