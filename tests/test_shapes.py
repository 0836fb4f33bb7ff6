"""The shapes in public signatures are true: the whole path runs with every one of them checked.

It runs in a process of its own, because checking has to be switched on before the first import,
and because other tests hand over wrong types on purpose.
"""

import subprocess
import sys

import pytest

BEGIN = """
import gc

gc.disable()  # tracing makes many objects and few cycles

from beartype import BeartypeConf, beartype
from jaxtyping import TypeCheckError, install_import_hook
import sys, types

checker = types.ModuleType("checker")
checker.check = beartype(conf=BeartypeConf(is_pep484_tower=True))
sys.modules["checker"] = checker

install_import_hook("attractor", "checker.check")  # for good: some modules are imported late
import numpy as np
import attractor as at
from attractor.analysis.geometries import compare_geometries
from attractor.datasets import unit_tokens
from attractor.margin.variants.factorized import solve_factorized

rng = np.random.default_rng(0)
ragged = at.Tokens(rng.normal(size=(3, 4, 5)), rng.normal(size=(3, 6)), [1, -1, 1],
                   mask=[[1, 1, 1, 0], [1, 1, 1, 1], [1, 0, 0, 0]])
causal = at.Tokens.causal(rng.normal(size=(2, 4, 5)), rng.choice([-1, 1], size=(2, 4)))
keys, weights = rng.normal(size=(3, 4, 5)), rng.normal(size=(5, 2))
prompt = at.Tokens.prompt_vector(keys, [1, 1, -1], weights)
batch, heads = unit_tokens(3, 4, 5, seeds=range(2))
head = at.LinearHead(rng.normal(size=5))
"""

TRAINING = """
for tokens, head in ((ragged, head), (causal, head), (batch, heads)):
    selection = at.optimal_tokens(tokens, head)
    solution = at.solve(at.MarginProblem.from_selection(tokens, selection), at.Frobenius())
    at.check_local_optimality(tokens, head, selection)
    run = at.train(tokens, head, at.normalized_gradient_descent(0.1), steps=20, seeds=2)
    for verdict in (at.verify(run), at.verify(run, solution),
                    at.verify(run, selection="reached at step")):
        str(verdict), verdict.rate()
    run.save("run.nc")
    at.Trajectory.load("run.nc")
for geometry in (at.Nuclear(), at.Spectral(), at.Lp(1)):
    str(at.verify(run, at.solve(solution.problem, geometry)))
"""

MARGIN = """
contradiction = at.MarginProblem([[1.0], [-1.0]], [[1.0], [1.0]])
pair = at.Selection(ragged.mask & (np.arange(4) < 2), np.zeros((3, 1), dtype=bool))
for geometry in (at.Frobenius(), at.Nuclear(), at.Schatten(1.5), at.Lp(1), at.Lp(3)):
    solutions = [at.solve(contradiction, geometry)]
    for tokens in (ragged, causal, prompt, batch):
        selection = at.optimal_tokens(tokens, heads if tokens is batch else head)
        problem = at.MarginProblem.from_selection(tokens, selection)
        solution = at.solve(problem, geometry)
        solutions += [solution, solution[0]] if tokens is batch else [solution]
        single = solutions[-1]
        single.save_certificate("certificate.json")
        solution.support_tokens
    for one in solutions:
        repr(one), one.to_xarray(), one.rank, one.rank_evidence, one.conflict
        one.uniqueness, one.other_solution
    at.solve([contradiction, contradiction, problem[0]], geometry)
    parts = at.decompose(ragged, np.where(pair.mask, 0.5, 0.0), geometry, selection=pair)
    repr(parts), parts.to_xarray(), parts.predict(3.0), parts.correlation(np.ones((5, 6)))
    census = at.locally_optimal_selections(ragged, head, geometry)
    repr(census), census.to_xarray(), census.locally_optimal_selections.index
for tokens in (ragged, causal, prompt, batch):
    own = heads if tokens is batch else head
    selection = at.optimal_tokens(tokens, own)
    label = at.solve(at.label_problem(tokens, selection))
    at.solve(at.relaxed_problem(tokens, selection, at.label_support(label)))
    found = at.rate_ratio_direction(tokens, selection, 0.5, at.Lp(1.5), label=label)
    cone = at.attracting_cone(tokens, own, selection)
    for one in (found, cone):
        repr(one), one.to_xarray()
    cone.contains(np.ones((2, 1, *cone.solution.W.shape)))
    classes = at.check_local_optimality(tokens, own, selection, ties="class")
    if tokens is not batch:
        several = at.solve_several(tokens, at.tie_classes(tokens, own, selection))
        repr(several), several.to_xarray(), several.gap
repr(solve_factorized(problem, 2, starts=1)[0].to_xarray())
compare_geometries(problem[0], [at.Frobenius(), at.Nuclear()])
"""

NEXT_TOKEN = """
from attractor import corpora as nt

corpus = nt.Corpus.from_sentences([list("SVOP"), list("VOP"), list("OPP"), list("PSV")])
drawn = [nt.order_first_corpus(6, seed=seed).corpus for seed in range(2)]
for one in (corpus, *drawn, nt.rolled_out_corpus(6).corpus,
            nt.Corpus(corpus.tokens, corpus.starts, context_length=2)):
    structure = nt.corpus_structure(one)
    str(structure), structure.summary(), structure.priorities.components
    structure.orders.class_table(), structure.orders.component_sizes()
    nt.realizable_part(one)
structure = nt.corpus_structure(drawn[0])
for table in (None, nt.gaussian(6, 4)):
    at.solve(nt.attention_problem(structure.orders, table))
    at.solve(nt.feed_forward_problem(structure.collocation, table))
nt.complete_orders_solution(structure.orders)
run = nt.train_two_stages(drawn, steps=(10, 10), initial_scales=(0.1, 0.1))
repr(run), nt.measure_two_stages(run)
"""

PROMPT = """
from attractor import prompts as pr

U, V, z, x = (rng.normal(size=size) for size in ((3, 2), (4, 3), (5, 2), (6, 3)))
layer, gaussian = pr.AttentionHead(U, V), pr.Gaussian.isotropic(3)
for law in (gaussian, pr.Mixture(np.ones(2), [gaussian, pr.Sphere(3, 1.0)]),
            pr.Empirical(x, np.ones(6), np.arange(6) < 4),
            pr.Product([pr.Rademacher(1), pr.Uniform(1.0, 2)]), pr.StudentT(5.0, 3)):
    law.mean, law.covariance, law.sample(3, seed=0), repr(law), law.exists(np.zeros(3))
    law.with_noise(0.3).pushforward(V, np.ones(4)).mean
    if not isinstance(law, pr.StudentT):
        pr.output(law, layer, z), pr.output_jacobian(law, layer, z)
        pr.head_gradients(law, layer, z, rng.normal(size=(5, 4)))
        law.covariance_product(np.zeros(3), np.ones(3)), law.tilt(np.zeros((2, 5, 3)))
pr.finite_length_error(np.eye(3), U, V, z, 16)
pr.averaged_output_error(np.array([0.5, 0.3]), 64)
pr.error_table(np.array([16, 64]), 2.0).output_error(np.array([0.5, 1.0]))
pr.monte_carlo_error(gaussian, layer, z / 5, 64, prompts=5, seed=0)
task = pr.regression.RegressionTask.official(as_run=True)
pr.regression.trained_limit(task)
pr.regression.linear_attention_optimum(task, 10)
"""

END = """
try:
    at.solve(3)
except TypeCheckError:  # so that a hook that checks nothing is noticed
    print("checked")
"""


@pytest.mark.processes
def test_the_whole_path_runs_with_shapes_checked(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", BEGIN + MARGIN + TRAINING + NEXT_TOKEN + PROMPT + END],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.startswith("checked")
