// min ||w||_p with <a_j, w> >= c_j, 1 < p < inf, by a dual active set: a constraint that falls short
// joins, those whose multipliers would turn negative leave, and the dual objective only ever grows.
// On every set the problem is one of equalities, in coordinates of an orthonormal basis of its rows.

import { accumulate, innerProduct } from "./double_double";
import { eliminate, vector } from "./linear";
import { lpNorm } from "./norms";

/** Constraints <row_j + low_j, w> >= bound_j, bounds zero or positive. */
export interface Rows {
  size: number;
  count: number;
  rows: Float64Array;
  low: Float64Array;
  bounds: Float64Array;
}

/** The part of a unit row, beyond others, that rounding alone can make. */
const DEPENDENT = 4e-15;
/** Relative rounding of a margin. */
const ROUNDING = 4e-16;
/** Parts of a combination, beside its largest, that count as none. */
const NEGLIGIBLE = 1e-12;
const EXCHANGES = 400;
const NEWTON_STEPS = 200;

export interface ActiveSet {
  /** The solution in twice the working precision, w + wl. */
  w: Float64Array;
  wl: Float64Array;
  /** Multipliers of the constraints: of the solution, or of a combination that comes to nothing. */
  multipliers: Float64Array;
  /** Constraints that some combination brings to nothing, where that was found. */
  conflict(): number[] | null;
  /** Measures w_k in units of its weight from now on: w = weights x, and the norm is that of x. */
  weigh(weights: ArrayLike<number>): void;
  /** Solves, from the set and the multipliers of the last solution if any; false where that did not end. */
  solve(p: number): boolean;
}

/** Works on one problem, again and again: each solution is where the next one starts. */
export function activeSet({ size: d, count: m, rows, low, bounds }: Rows): ActiveSet {
  const [w, wl, u, y, weights] = [vector(d), vector(d), vector(d), vector(d), vector(d)];
  const multipliers = vector(m);
  const length = vector(m); // of rows in units of the weights
  const a = vector(m * d); // unit rows
  const c = vector(m); // bounds in units of w, for unit rows
  const mu = vector(m); // multipliers of unit rows
  const [target, change] = [vector(d + 1), vector(d + 1)];
  const q = vector(d * d); // orthonormal rows: of the set first, then of its complement
  const r = vector(d * d); // set = R^T Q, upper triangular by columns
  const spread = Float64Array.from({ length: m }, (_, j) => lpNorm(1, rows.subarray(j * d, j * d + d)));
  const set: number[] = [];
  let conflict: number[] | null = null;
  let unit = 1;
  weigh(vector(d).fill(1));
  return { w, wl, multipliers, conflict: () => conflict, weigh, solve };

  function weigh(given: ArrayLike<number>): void {
    weights.set(given);
    let most = 0;
    for (let j = 0; j < m; j++) {
      let top = 0;
      for (let k = 0; k < d; k++) top = Math.max(top, Math.abs((a[j * d + k] = rows[j * d + k] * weights[k])));
      let sum = 0;
      for (let k = 0; k < d && top > 0; k++) sum += (a[j * d + k] / top) ** 2;
      length[j] = top * Math.sqrt(sum);
      if (top === 0 && bounds[j] > 0) conflict = [j];
      if (top === 0) continue;
      for (let k = 0; k < d; k++) a[j * d + k] /= length[j];
      most = Math.max(most, bounds[j] / length[j]);
    }
    unit = most > 0 ? 2 ** Math.round(Math.log2(most)) : 1;
    for (let j = 0; j < m; j++) {
      c[j] = length[j] > 0 ? bounds[j] / length[j] / unit : -1;
      mu[j] = (multipliers[j] * length[j]) / unit;
    }
  }

  function solve(p: number): boolean {
    if (conflict) return true;
    reach(p);
    for (let exchange = 0; !conflict; exchange++) {
      if (exchange === EXCHANGES) return false;
      let worst = 0;
      let next = -1;
      const longest = lpNorm(Infinity, w);
      for (let j = 0; j < m; j++) {
        let margin = 0;
        for (let k = 0; k < d; k++) margin += rows[j * d + k] * w[k];
        const short = (bounds[j] - margin) / length[j];
        const rounding = (ROUNDING * spread[j] * longest) / length[j];
        if (short > worst && short > rounding && c[j] >= 0 && !set.includes(j)) [worst, next] = [short, j];
      }
      if (next < 0) next = shortest();
      if (next < 0) break;
      mu[next] = 0;
      set.push(next);
      reach(p);
    }
    if (conflict) return true;
    for (let j = 0; j < m; j++) multipliers[j] = length[j] > 0 ? (mu[j] / length[j]) * unit : 0;
    return true;
  }

  /** The constraint that falls short by most, in twice the working precision. */
  function shortest(): number {
    const longest = lpNorm(Infinity, w);
    let next = -1;
    let worst = 0;
    for (let j = 0; j < m; j++) {
      if (c[j] < 0 || set.includes(j)) continue;
      const free = bounds[j] === 0;
      const size = free ? spread[j] * longest : 1;
      const short = (bounds[j] - innerProduct(rows, low, j * d, w, wl, d)) / size;
      if (short > worst && short > (free ? 1e-15 : 1e-13)) [worst, next] = [short, j];
    }
    return next;
  }

  /** Goes to the solution of equalities on the set, and drops what gets in the way. */
  function reach(p: number): void {
    for (;;) {
      const k = set.length;
      if (!factorize()) {
        // The last row is a combination of the others: along it the dual objective grows linearly.
        const largest = combination();
        let step = Infinity;
        let blocked = -1;
        for (let i = 0; i < k - 1; i++) {
          if (change[i] >= -NEGLIGIBLE * largest) continue;
          const length = -mu[set[i]] / change[i];
          if (length < step) [step, blocked] = [length, i];
        }
        if (blocked < 0) {
          conflict = set.filter((_, i) => i === k - 1 || change[i] > NEGLIGIBLE * largest);
          multipliers.fill(0);
          for (let i = 0; i < k; i++) multipliers[set[i]] = Math.max(0, change[i]) / length[set[i]];
          return;
        }
        for (let i = 0; i < k; i++) mu[set[i]] = Math.max(0, mu[set[i]] + step * change[i]);
        mu[set[blocked]] = 0;
        set.splice(blocked, 1);
        continue;
      }
      onFace(p);
      let step = 1;
      let blocked = -1;
      for (let i = 0; i < k; i++) {
        const from = mu[set[i]];
        if (target[i] > 0) continue;
        const length = from > 0 ? from / (from - target[i]) : 0;
        if (length < step || blocked < 0) [step, blocked] = [Math.min(length, 1), i];
      }
      for (let i = 0; i < k; i++) mu[set[i]] += step * (target[i] - mu[set[i]]);
      if (blocked < 0) return;
      mu[set[blocked]] = 0;
      set.splice(blocked, 1);
    }
  }

  /** Orthonormal rows and triangle of the set; false where the last row depends on the others. */
  function factorize(): boolean {
    r.fill(0);
    for (let i = 0; i < set.length; i++) {
      const whole = i < d;
      const row = y;
      for (let k = 0; k < d; k++) row[k] = a[set[i] * d + k];
      const left = project(row, Math.min(i, d), whole ? i : -1);
      if (!whole || left <= DEPENDENT) return false;
      r[i * d + i] = left;
      for (let k = 0; k < d; k++) q[i * d + k] = row[k] / left;
    }
    return true;
  }

  /** Takes out of a row its parts along the first `count` of Q, twice; they go to column `column` of R. */
  function project(row: Float64Array, count: number, column: number): number {
    for (let i = 0; i < count; i++) change[i] = 0;
    for (let again = 0; again < 2; again++) {
      for (let i = 0; i < count; i++) {
        let part = 0;
        for (let k = 0; k < d; k++) part += q[i * d + k] * row[k];
        change[i] += part;
        if (column >= 0) r[i * d + column] += part;
        for (let k = 0; k < d; k++) row[k] -= part * q[i * d + k];
      }
    }
    let sum = 0;
    for (let k = 0; k < d; k++) sum += row[k] ** 2;
    return Math.sqrt(sum);
  }

  /** change: how the last row of the set and the others combine to nothing; the largest entry. */
  function combination(): number {
    const k = set.length - 1;
    // The parts of the last row are in `change`; R^-1 of them are its coordinates.
    let largest = 1;
    for (let i = k - 1; i >= 0; i--) {
      for (let j = i + 1; j < k; j++) change[i] -= r[i * d + j] * change[j];
      change[i] /= r[i * d + i];
    }
    for (let i = 0; i < k; i++) {
      change[i] = -change[i];
      largest = Math.max(largest, Math.abs(change[i]));
    }
    change[k] = 1;
    return largest;
  }

  /** The least w with equality on the set, and in `target` its multipliers. */
  function onFace(p: number): void {
    const k = set.length;
    for (let i = 0; i < k; i++) {
      u[i] = c[set[i]];
      for (let j = 0; j < i; j++) u[i] -= r[j * d + i] * u[j];
      u[i] /= r[i * d + i];
    }
    for (let b = 0; b < d; b++) {
      w[b] = wl[b] = 0;
      for (let i = 0; i < k; i++) w[b] += q[i * d + b] * u[i];
    }
    if (p === 2) y.set(w);
    else if (k === 0) y.fill(0);
    else if (p < 2 && k < d) {
      // max <u, v> - ||Q^T v||_q^2 / 2, whose slope is w
      leastPower(q, 0, k, d, null, u, p / (p - 1), y);
      slope(y, p / (p - 1), w);
    } else {
      if (k < d) {
        complete(k);
        leastPower(q, k, d - k, d, w.slice(), null, p, w);
      }
      slope(w, p, y);
    }
    for (let i = k - 1; i >= 0; i--) {
      target[i] = 0;
      for (let b = 0; b < d; b++) target[i] += q[i * d + b] * y[b];
      for (let j = i + 1; j < k; j++) target[i] -= r[i * d + j] * target[j];
      target[i] /= r[i * d + i];
    }
    for (let b = 0; b < d; b++) w[b] *= unit * weights[b];
    // What rounding left of the equalities is taken out, in twice the working precision.
    for (let again = 0; again < 3; again++) {
      let most = 0;
      for (let i = 0; i < k; i++) {
        const j = set[i];
        u[i] = (bounds[j] - innerProduct(rows, low, j * d, w, wl, d)) / length[j];
        if (bounds[j] > 0) most = Math.max(most, Math.abs(u[i] * length[j]));
        for (let j = 0; j < i; j++) u[i] -= r[j * d + i] * u[j];
        u[i] /= r[i * d + i];
      }
      for (let b = 0; b < d; b++) {
        change[b] = 0;
        for (let i = 0; i < k; i++) change[b] += weights[b] * q[i * d + b] * u[i];
      }
      accumulate(w, wl, change.subarray(0, d));
      if (most < 1e-12) break;
    }
  }

  /** Rows of Q beyond the first k: an orthonormal basis of what is orthogonal to the set. */
  function complete(k: number): void {
    for (let i = k; i < d; i++) {
      let most = 0;
      for (let b = 0; b < d; b++) {
        y.fill(0);
        y[b] = 1;
        const left = project(y, i, -1);
        if (!(left > most)) continue;
        most = left;
        for (let c = 0; c < d; c++) q[i * d + c] = y[c] / left;
      }
    }
  }
}

/** The gradient of ||x||_p^2 / 2. */
export function slope(x: Float64Array, p: number, out: Float64Array): number {
  let top = 0;
  for (let k = 0; k < x.length; k++) top = Math.max(top, Math.abs(x[k]));
  if (top === 0) {
    out.fill(0);
    return 0;
  }
  let sum = 0;
  for (let k = 0; k < x.length; k++) sum += (Math.abs(x[k]) / top) ** p;
  const norm = top * sum ** (1 / p);
  for (let k = 0; k < x.length; k++) out[k] = norm * Math.sign(x[k]) * (Math.abs(x[k]) / norm) ** (p - 1);
  return norm;
}

/**
 * The x = base + sum_i z_i q_{first + i} that is least in ||x||_p^2 / 2 - <u, z>, p > 2, by Newton's
 * method; written over `x`.
 */
function leastPower(
  q: Float64Array, first: number, count: number, d: number,
  base: Float64Array | null, u: Float64Array | null, p: number, x: Float64Array,
): void {
  const [z, step, slopes] = [vector(count), vector(count), vector(count)];
  const [g, trial] = [vector(d), vector(d)];
  const [h, whole] = [vector(count * count), vector(count * count)];
  /** Writes the x of z + length step, and returns <u, z + length step>. */
  const place = (length: number, out: Float64Array): number => {
    let linear = 0;
    for (let b = 0; b < d; b++) out[b] = base ? base[b] : 0;
    for (let i = 0; i < count; i++) {
      const part = z[i] + length * step[i];
      if (u) linear += u[i] * part;
      for (let b = 0; b < d; b++) out[b] += q[(first + i) * d + b] * part;
    }
    return linear;
  };
  const newton = (p: number): void => {
    let linear = place(0, x);
    let norm = slope(x, p, g);
    if (u) {
      // The best multiple of the start.
      for (let i = 0; i < count; i++) z[i] *= linear / (norm * norm);
      linear = place(0, x);
      norm = slope(x, p, g);
    }
    for (let steps = 0; steps < NEWTON_STEPS; steps++) {
      let most = 0;
      for (let i = 0; i < count; i++) {
        let sum = 0;
        for (let b = 0; b < d; b++) sum += q[(first + i) * d + b] * g[b];
        trial[i] = sum / norm;
        slopes[i] = (u ? u[i] : 0) - sum;
        most = Math.max(most, Math.abs(slopes[i]));
      }
      if (!(most > 1e-16 * norm)) return;
      for (let i = 0; i < count; i++) {
        for (let j = 0; j < count; j++) whole[i * count + j] = (2 - p) * trial[i] * trial[j];
      }
      for (let b = 0; b < d; b++) {
        const curve = (p - 1) * (Math.abs(x[b]) / norm) ** (p - 2);
        for (let i = 0; i < count; i++) {
          for (let j = 0; j < count; j++) whole[i * count + j] += q[(first + i) * d + b] * curve * q[(first + j) * d + b];
        }
      }
      // Where entries vanish there is next to no curvature, and slopes are rounding.
      let top = 0;
      for (let i = 0; i < count; i++) top = Math.max(top, whole[i * count + i]);
      let falls = 0;
      for (let ridge = 1e-14 * top; !(falls > 0); ridge *= 100) {
        if (!(ridge < Infinity)) return;
        h.set(whole);
        step.set(slopes);
        for (let i = 0; i < count; i++) h[i * count + i] += ridge;
        falls = 0;
        if (eliminate(h, step)) for (let i = 0; i < count; i++) falls += slopes[i] * step[i];
      }
      let length = 1;
      for (; ; length /= 2) {
        if (length < 1e-10) return step.fill(0), undefined;
        const along = place(length, trial);
        const size = slope(trial, p, g);
        const fell = (norm - size) * (norm + size) / 2 + (along - linear);
        if (!(fell >= 1e-4 * length * falls) && (length < 1 || falls > 1e-13 * norm * norm)) continue;
        [linear, norm] = [along, size];
        break;
      }
      for (let i = 0; i < count; i++) z[i] += length * step[i];
      step.fill(0);
      x.set(trial);
      if (falls < 1e-30 * norm * norm) return;
    }
  };
  if (u) z.set(u.subarray(0, count));
  // Large powers are approached by doubling: far from the solution their curvature is lost.
  for (let power = Math.min(p, 4); ; power = Math.min(p, 2 * power)) {
    newton(power);
    if (power === p) return;
  }
}
