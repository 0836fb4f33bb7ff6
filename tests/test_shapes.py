"""The shapes in public signatures are true: the whole path runs with every one of them checked.

It runs in a process of its own, because checking has to be switched on before the first import,
and because other tests hand over wrong types on purpose.
"""

import subprocess
import sys
import textwrap

SCRIPT = """
from beartype import BeartypeConf, beartype
from jaxtyping import TypeCheckError, install_import_hook
import sys, types

checker = types.ModuleType("checker")
checker.check = beartype(conf=BeartypeConf(is_pep484_tower=True))
sys.modules["checker"] = checker

with install_import_hook("attractor", "checker.check"):
    import numpy as np
    import attractor as at
    from attractor.datasets import unit_tokens

    rng = np.random.default_rng(0)
    ragged = at.Tokens(rng.normal(size=(3, 4, 5)), rng.normal(size=(3, 6)), [1, -1, 1],
                       mask=[[1, 1, 1, 0], [1, 1, 1, 1], [1, 0, 0, 0]])
    causal = at.Tokens.causal(rng.normal(size=(2, 4, 5)), rng.choice([-1, 1], size=(2, 4)))
    keys, weights = rng.normal(size=(3, 4, 5)), rng.normal(size=(5, 2))
    prompt = at.Tokens.prompt_vector(keys, [1, 1, -1], weights)
    batch, heads = unit_tokens(3, 4, 5, seeds=range(2))
    for tokens, head in ((ragged, None), (causal, None), (prompt, None), (batch, heads)):
        head = head or at.LinearHead(rng.normal(size=5))
        selection = at.optimal_tokens(tokens, head)
        solution = at.solve(at.MarginProblem.from_selection(tokens, selection), at.Frobenius())
        repr(solution), solution.to_xarray(), solution.rank, solution.conflict
        at.check_local_optimality(tokens, head, selection)
        run = at.train(tokens, head, at.normalized_gradient_descent(0.1), steps=20, seeds=2)
        for verdict in (at.verify(run), at.verify(run, solution),
                        at.verify(run, selection="reached at step")):
            str(verdict), verdict.rate()
        run.save("run.nc")
        at.Trajectory.load("run.nc")
    try:
        at.solve(3)
    except TypeCheckError:  # so that a hook that checks nothing is noticed
        print("checked")
"""


def test_the_whole_path_runs_with_shapes_checked(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(SCRIPT)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.startswith("checked")
