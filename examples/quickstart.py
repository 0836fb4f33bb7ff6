"""Where training goes, computed and trained: the whole comparison."""

import numpy as np

import attractor as at

rng = np.random.default_rng(0)
keys, queries = rng.normal(size=(6, 8, 10)), rng.normal(size=(6, 10))
tokens = at.Tokens(keys=keys, queries=queries, labels=[1, -1, 1, -1, 1, -1])
head = at.LinearHead(rng.normal(size=10))
selection = at.optimal_tokens(tokens, head)
solution = at.solve(at.MarginProblem.from_selection(tokens, selection), at.Frobenius())
print(solution)
run = at.train(tokens, head, at.normalized_gradient_descent(0.1), steps=2000, seeds=100)
print(at.verify(run, solution))
