// The margin problem in l_1 and l_inf: its dual is a linear program, max <c, m> over m >= 0 with
// <s, A^T m> <= 1 for all corners s of the unit ball, which has a vertex to start from: zero.

import { accumulate, innerProduct, rest } from "./double_double";
import type { Rows } from "./active_set";
import { eliminate, vector } from "./linear";

const PIVOTS = 500;
/** Entries of unit rows that rounding alone can make. */
const NOTHING = 4e-15;

export interface Vertex {
  w: Float64Array;
  wl: Float64Array;
  multipliers: Float64Array;
  /** What rounding took from the multipliers. */
  multipliersLow?: Float64Array;
}

/** The corners of the ball: of l_1 the signed axes, of l_inf all vectors of signs. */
function corners(p: number, d: number): number[][] {
  if (p === 1) {
    return Array.from({ length: 2 * d }, (_, r) => Array.from({ length: d }, (_, k) => (k === r >> 1 ? (r & 1 ? -1 : 1) : 0)));
  }
  return Array.from({ length: 2 ** d }, (_, r) => Array.from({ length: d }, (_, k) => ((r >> k) & 1 ? -1 : 1)));
}

/** Solves a feasible problem; null where rounding is in the way. */
export function simplex(problem: Rows, p: number): Vertex | null {
  const { size: d, count: m, rows, bounds } = problem;
  const s = corners(p, d);
  const height = s.length;
  // Columns: multipliers of rows that have length one, then slacks, then the right-hand side.
  const length = Float64Array.from({ length: m }, (_, j) => Math.hypot(...rows.subarray(j * d, j * d + d)));
  const width = m + height + 1;
  const t = vector((height + 1) * width);
  for (let r = 0; r < height; r++) {
    for (let j = 0; j < m; j++) {
      let sum = 0;
      for (let k = 0; k < d; k++) sum += s[r][k] * rows[j * d + k];
      t[r * width + j] = length[j] > 0 ? sum / length[j] : 0;
    }
    t[r * width + m + r] = 1;
    t[r * width + width - 1] = 1;
  }
  let most = 0;
  for (let j = 0; j < m; j++) if (length[j] > 0) most = Math.max(most, bounds[j] / length[j]);
  for (let j = 0; j < m; j++) t[height * width + j] = length[j] > 0 ? -bounds[j] / length[j] / most : 0;
  const basis = Array.from({ length: height }, (_, r) => m + r);
  for (let pivots = 0; pivots < PIVOTS; pivots++) {
    // The steepest column at first, then the first (Bland), which cannot go round in circles.
    let column = -1;
    let least = -1e-13;
    for (let j = 0; j < width - 1; j++) {
      const gain = t[height * width + j];
      if (!(gain < least)) continue;
      column = j;
      if (pivots > 60) break;
      least = gain;
    }
    if (column < 0) return vertex(problem, s, basis, length);
    let row = -1;
    let step = Infinity;
    for (let r = 0; r < height; r++) {
      const x = t[r * width + column];
      if (!(x > NOTHING)) continue;
      const ratio = t[r * width + width - 1] / x;
      if (ratio < step || (ratio === step && basis[r] < basis[row])) [row, step] = [r, ratio];
    }
    if (row < 0) return null;
    const pivot = t[row * width + column];
    for (let k = 0; k < width; k++) t[row * width + k] /= pivot;
    for (let r = 0; r <= height; r++) {
      const factor = t[r * width + column];
      if (r === row || factor === 0) continue;
      for (let k = 0; k < width; k++) t[r * width + k] -= factor * t[row * width + k];
    }
    basis[row] = column;
  }
  return null;
}

/** The vertex of a basis, computed from the constraints themselves: w in twice the working precision. */
function vertex({ size: d, count: m, rows, low, bounds }: Rows, s: number[][], basis: number[], length: Float64Array): Vertex | null {
  const set = basis.filter((b) => b < m);
  const k = set.length;
  // Corners whose slack is not in the basis are tight: w is a combination of them.
  const tight = s.filter((_, r) => !basis.includes(m + r));
  const w = vector(d);
  const wl = vector(d);
  const multipliers = vector(m);
  if (k === 0) return { w, wl, multipliers };
  const matrix = vector(k * k);
  set.forEach((j, i) => tight.forEach((corner, c) => {
    for (let b = 0; b < d; b++) matrix[i * k + c] += (rows[j * d + b] * corner[b]) / length[j];
  }));
  for (let again = 0; again < 4; again++) {
    const right = Float64Array.from(set, (j) => (bounds[j] - innerProduct(rows, low, j * d, w, wl, d)) / length[j]);
    if (!eliminate(matrix.slice(), right)) return null;
    const change = vector(d);
    tight.forEach((corner, c) => {
      for (let b = 0; b < d; b++) change[b] += right[c] * corner[b];
    });
    accumulate(w, wl, change);
  }
  // Multipliers: sum_j lambda_j <a_j, corner> = 1 on the tight corners.
  const transposed = matrix.map((_, i) => matrix[(i % k) * k + Math.floor(i / k)]);
  const column = vector(m);
  const columnLow = vector(m);
  const multipliersLow = vector(m);
  const combined = vector(d);
  const combinedLow = vector(d);
  for (let again = 0; again < 4; again++) {
    for (let b = 0; b < d; b++) {
      for (let j = 0; j < m; j++) [column[j], columnLow[j]] = [rows[j * d + b], low[j * d + b]];
      combined[b] = innerProduct(column, columnLow, 0, multipliers, multipliersLow, m);
      combinedLow[b] = rest;
    }
    const right = Float64Array.from(tight, (corner) => 1 - innerProduct(combined, combinedLow, 0, Float64Array.from(corner), vector(d), d));
    if (!eliminate(transposed.slice(), right)) return null;
    const change = vector(m);
    set.forEach((j, i) => (change[j] = right[i] / length[j]));
    accumulate(multipliers, multipliersLow, change);
  }
  for (let j = 0; j < m; j++) if (multipliers[j] < 0) multipliers[j] = multipliersLow[j] = 0;
  return { w, wl, multipliers, multipliersLow };
}
