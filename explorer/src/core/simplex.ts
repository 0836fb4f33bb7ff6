// The margin problem in l_1 and l_inf: its dual is a linear program, max <c, m> over m >= 0 with
// <s, A^T m> <= 1 for all corners s of the unit ball, which has a vertex to start from: zero.

import type { Row } from "./active_set";
import { accumulate, innerProduct, rest } from "./double_double";
import { combine, dot, eliminate, vector } from "./linear";
import type { Answer } from "./margin";
import { lpNorm } from "./norms";

const PIVOTS = 500;
/** Entries of unit rows that rounding alone can make. */
const NOTHING = 4e-15;

/** The corners of the ball: of l_1 the signed axes, of l_inf all vectors of signs. */
const corners = (p: number, d: number): number[][] => Array.from({ length: p === 1 ? 2 * d : 2 ** d }, (_, r) =>
  Array.from({ length: d }, (_, k) => (p === 1 ? (k === r >> 1 ? (r & 1 ? -1 : 1) : 0) : (r >> k) & 1 ? -1 : 1)));

/** Solves a feasible problem; null where rounding is in the way. */
export function simplex(problem: readonly Row[], d: number, p: number): Answer | null {
  const s = corners(p, d);
  const m = problem.length;
  // Columns: multipliers of rows that have length one, then slacks, then the right-hand side.
  const length = problem.map(({ row }) => lpNorm(2, row) || Infinity);
  const costs = problem.map(({ bound }, j) => -bound / length[j]);
  const most = -Math.min(...costs);
  const slacks = (r: number): number[] => s.map((_, k) => Number(k === r));
  const t = [
    ...s.map((corner, r) => [...problem.map(({ row }, j) => dot(corner, row) / length[j]), ...slacks(r), 1]),
    [...costs.map((cost) => cost / most), ...slacks(-1), 0],
  ];
  const prices = t[s.length];
  const last = prices.length - 1;
  const basis = s.map((_, r) => m + r);
  for (let pivots = 0; pivots < PIVOTS; pivots++) {
    // The steepest column at first, then the first (Bland), which cannot go round in circles.
    const bland = pivots > 60;
    let column = -1;
    let least = -1e-13;
    for (let j = 0; j < last && !(bland && column >= 0); j++) if (prices[j] < least) [column, least] = [j, prices[j]];
    if (column < 0) return vertex(problem, s, basis, length);
    let row = -1;
    let step = Infinity;
    s.forEach((_, r) => {
      const x = t[r][column];
      if (!(x > NOTHING)) return;
      const ratio = t[r][last] / x;
      if (ratio < step || (ratio === step && basis[r] < basis[row])) [row, step] = [r, ratio];
    });
    if (row < 0) return null;
    const pivot = t[row][column];
    t[row].forEach((x, k) => (t[row][k] = x / pivot));
    t.forEach((other, r) => {
      const factor = other[column];
      if (r !== row) t[row].forEach((x, k) => (other[k] -= factor * x));
    });
    basis[row] = column;
  }
  return null;
}

/** The vertex of a basis, computed from the constraints themselves: w in twice the working precision. */
function vertex(problem: readonly Row[], s: number[][], basis: number[], length: number[]): Answer | null {
  const m = problem.length;
  const d = s[0].length;
  const set = basis.filter((b) => b < m);
  // Corners whose slack is not in the basis are tight: w is a combination of them.
  const tight = s.filter((_, r) => !basis.includes(m + r));
  const [w, wl, multipliers, multipliersLow] = [vector(d), vector(d), vector(m), vector(m)];
  const matrix = set.map((j) => tight.map((corner) => dot(corner, problem[j].row) / length[j]));
  for (let again = 0; again < 4; again++) {
    const right = Float64Array.from(set, (j) => (problem[j].bound - innerProduct(problem[j].row, problem[j].low, w, wl)) / length[j]);
    if (!eliminate(matrix, right)) return null;
    accumulate(w, wl, combine(right, tight, d));
  }
  // Multipliers: sum_j lambda_j <a_j, corner> = 1 on the tight corners.
  const transposed = tight.map((_, c) => matrix.map((row) => row[c]));
  for (let again = 0; again < 4; again++) {
    const low = vector(d);
    const combined = low.map((_, b) => {
      const sum = innerProduct(problem.map(({ row }) => row[b]), problem.map((one) => one.low[b]), multipliers, multipliersLow);
      low[b] = rest;
      return sum;
    });
    const right = Float64Array.from(tight, (corner) => 1 - innerProduct(combined, low, corner, vector(d)));
    if (!eliminate(transposed, right)) return null;
    const change = vector(m);
    set.forEach((j, i) => (change[j] = right[i] / length[j]));
    accumulate(multipliers, multipliersLow, change);
  }
  multipliers.forEach((x, j) => { if (x < 0) multipliers[j] = multipliersLow[j] = 0; });
  return { w, wl, multipliers, multipliersLow };
}
