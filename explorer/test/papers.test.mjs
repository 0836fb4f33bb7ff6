// Numbers that papers and closed forms give.

import assert from "node:assert/strict";
import test from "node:test";
import * as core from "../build/core.mjs";

const problem = (keys, scores, other = {}) => ({ keys, scores, queries: keys.map(() => [1, 0]), parameterization: "p", loss: "logistic", ...other });
const near = (a, b, off = 1e-12) => assert.ok([...a].every((x, k) => Math.abs(x - b[k]) <= off), `${[...a]} is not ${b}`);
const ngd = { optimizer: "normalized_gradient_descent", learning_rate: 0.1 };

test("the prompt and the head together: a sequence that the head does not need is only kept", () => {
  const keys = (last) => [[[0, 0], [1, 1]], [[0, 0], [1, -1]], [[0, 0], [0.5, last]]];
  for (const [last, held, p] of [[1, [true, true, true], [4 / 3, 1 / 3]], [1.5, [true, true, false], [1, 0]]]) {
    const one = problem(keys(last), [], { parameterization: "pv", labels: [1, -1, 1] });
    const { w, support } = core.headSupport(one, [1, 1, 1]);
    near(w, [0, 1]);
    assert.deepEqual(support, held);
    near(core.attractorOf(one, core.FROBENIUS, [1, 1, 1], support).solution.w, p);
  }
  // Both normalized by themselves, as the paper trains them: numbers of float64 at step 199.
  const one = problem(keys(1), [], { parameterization: "pv", labels: [1, -1, 1] });
  const path = core.train(one, { optimizer: "spectral_descent", learning_rate: 0.1 }, [0, -1, -1, 0], Int32Array.of(199));
  near(path.parameters, [17.5829, 4.0599, 0.2219, 19.6808], 1e-4);
});

test("one sequence of two locally optimal tokens", () => {
  const one = problem([[[-0.1, 1], [1, 0], [0, 0]]], [[1, 0.9, 0]]);
  const found = core.locallyOptimal(one, core.FROBENIUS);
  assert.deepEqual(found.map(({ selection }) => selection[0]), [0, 1]);
  near(found[0].solution.w, [-0.1 / 1.01, 1 / 1.01]);
  near(found[1].solution.w, [1, 0]);
  const ends = [1, -1].map((y) => core.train(one, ngd, [0, y], Int32Array.of(199)).points);
  near(ends[0], [-2.4019, 20.741], 1e-4);
  near(ends[1], [19.7705, 0.5847], 1e-4);
});

test("ties are undecided, and say so", () => {
  const one = problem([[[1, 0.7], [1.1, -0.6], [-0.9, -0.2]]], [[1, 1, 0]]);
  const selection = core.optimalTokens(one);
  assert.deepEqual(selection, [-1]);
  assert.equal(core.attractorOf(one, core.FROBENIUS, selection).solution.status, "tied");
});

test("tied tokens that are to stay equal", () => {
  const one = problem([[[1, 0.7], [1.1, -0.6], [-0.9, -0.2]]], [[1, 1, 0]]);
  const { status, w, gap } = core.solve(core.constraints(one, [0], undefined, undefined, (i, t) => t === 1), [2, 1], core.parseNorm("l_4"));
  assert.equal(status, "solved");
  assert.ok(gap < 1e-12);
  near(w, [1.3 / 2.56, 0.1 / 2.56]);
});

test("norms of matrices of any shape", () => {
  // A product of known singular values: two rotations in R^4 and R^3 around diagonal entries.
  const [values, c, s] = [[3, 0.5, 1e-3], Math.cos(0.7), Math.sin(0.7)];
  const turn = (m, n, i, j) => { for (let k = 0; k < n; k++) [m[i][k], m[j][k]] = [c * m[i][k] - s * m[j][k], s * m[i][k] + c * m[j][k]]; };
  const w = Array.from({ length: 4 }, (_, a) => values.map((x, b) => (a === b ? x : 0)));
  const transposed = () => w[0].map((_, b) => w.map((row) => row[b]));
  turn(w, 3, 0, 3), turn(w, 3, 1, 2), turn(w, 3, 0, 1);
  const other = transposed();
  turn(other, 4, 0, 2), turn(other, 4, 1, 2);
  near([core.normOf(core.NUCLEAR, other.flat(), 4), core.normOf(core.SPECTRAL, other.flat(), 4)], [3.501, 3], 1e-14);
});

test("orthogonal factors of matrices in the plane and of vectors", () => {
  const g = Float64Array.of(2, -1, 0.5, 3);
  const [a, b, c, d] = core.polar(g, 2);
  near([a * a + c * c, b * b + d * d, a * b + c * d], [1, 1, 0], 1e-15);
  near([2 * a - b + 0.5 * c + 3 * d], [core.normOf(core.NUCLEAR, g, 2)], 1e-14);
  near(core.polar(Float64Array.of(3, 4), 1), [0.6, 0.8], 1e-15);
});

test("copies of the token that is kept, and tokens that surround it, are contradictions", () => {
  const copy = problem([[[1, 2], [1, 2], [0, 0]]], [[1, 0.5, 0]]);
  const inside = problem([[[0.25, 0.25], [1, 0], [0, 1], [-1, -1]]], [[1, 0, 0, 0]]);
  for (const one of [copy, inside]) {
    const { solution } = core.attractorOf(one, core.parseNorm("l_3"), [0]);
    assert.equal(solution.status, "infeasible");
    const rows = core.constraints(one, [0]);
    for (const k of [0, 1]) near([solution.multipliers.reduce((sum, x, j) => sum + x * rows[j].row[k], 0)], [0], 1e-15);
  }
});

test("an ordinary gradient stalls at a gap of about 36, the exact one goes on", () => {
  const one = problem([[[1, 0.6], [0, 0]], [[0.8, -0.9], [0, 0]]], [[1, 0], [1, 0]]);
  const [exact, plain] = [false, true].map((plain) => core.train(one, { ...ngd, plain }, [-0.4, -0.5], core.recordedSteps(2000)));
  const gap = ({ points }) => Math.min(...[0, 2].map((t) => core.gradientOf(one).scores(points.subarray(-2))[t]));
  assert.ok(gap(plain) > 35 && gap(plain) < 38 && plain.reason === "stationary");
  assert.ok(gap(exact) > 150 && exact.ended < 0);
});

test("names of norms", () => {
  for (const name of ["frobenius", "l_1", "l_1.5", "l_inf", "spectral", "nuclear"]) assert.equal(core.formatNorm(core.parseNorm(name)), name);
  for (const name of ["l_0.5", "l", "l_x", "schatten_3"]) assert.equal(core.parseNorm(name), null);
  assert.equal(core.formatNorm(core.normFor({ ...ngd }, "KQ")), "nuclear");
  assert.ok(!core.isPredicted({ optimizer: "sign_descent", learning_rate: 1 }, "KQ"));
});
