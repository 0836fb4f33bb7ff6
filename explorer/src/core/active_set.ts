// min ||w||_p with <a_j, w> >= c_j, 1 < p < inf, by a dual active set: a constraint that falls short
// joins, those whose multipliers would turn negative leave, and the dual objective only ever grows.
// On every set the problem is one of equalities, in coordinates of an orthonormal basis of its rows.

import { accumulate, innerProduct } from "./double_double";
import { add, combine, dot, eliminate, vector, type Vector } from "./linear";
import type { Answer } from "./margin";
import { dualExponent, lpNorm } from "./norms";

/** <row + low, w> >= bound, the bound zero or positive. */
export interface Row { row: number[]; low: number[]; bound: number }

/** The part of a unit row, beyond others, that rounding alone can make. */
const DEPENDENT = 4e-15;
/** Relative rounding of a margin. */
const ROUNDING = 4e-16;
/** Parts of a combination, beside its largest, that count as none. */
const NEGLIGIBLE = 1e-12;
const EXCHANGES = 400;
const NEWTON_STEPS = 200;

/** Multipliers are those of the solution, or of a combination that comes to nothing. */
export interface ActiveSet extends Answer {
  /** Constraints that some combination brings to nothing, where that was found. */
  conflict(): number[] | null;
  /** Measures w_k in units of its weight from now on: w = weights x, and the norm is that of x. */
  weigh(weights: ArrayLike<number>): void;
  /** Solves, from the set and the multipliers of the last solution if any; false where that did not end. */
  solve(p: number): boolean;
}

/** Works on one problem, again and again: each solution is where the next one starts. */
export function activeSet(rows: readonly Row[], d: number): ActiveSet {
  const [w, wl, weights] = [vector(d), vector(d), vector(d)];
  const multipliers = vector(rows.length);
  const mu = vector(rows.length); // multipliers of unit rows
  const spread = rows.map(({ row }) => lpNorm(1, row));
  let units: { row: number[]; length: number; bound: number }[] = []; // rows in units of the weights, of length one
  let set: number[] = [];
  let basis: number[][] = []; // orthonormal rows, of the set
  let parts: number[][] = []; // of every row of the set, along those
  let conflict: number[] | null = null;
  let unit = 1;
  weigh(vector(d).fill(1));
  return { w, wl, multipliers, conflict: () => conflict, weigh, solve };

  function weigh(given: ArrayLike<number>): void {
    weights.set(given);
    const scaled = rows.map(({ row, bound }) => {
      const weighed = row.map((x, k) => x * weights[k]);
      const length = lpNorm(2, weighed);
      return { row: weighed.map((x) => x / (length || 1)), length, bound: length > 0 ? bound / length : -1 };
    });
    const nothing = scaled.findIndex(({ length }, j) => length === 0 && rows[j].bound > 0);
    if (nothing >= 0) conflict = [nothing];
    const most = Math.max(...scaled.map(({ bound }) => bound));
    unit = most > 0 ? 2 ** Math.round(Math.log2(most)) : 1;
    units = scaled.map((one) => ({ ...one, bound: one.bound / unit }));
    units.forEach(({ length }, j) => (mu[j] = (multipliers[j] * length) / unit));
  }

  function solve(p: number): boolean {
    if (!conflict) reach(p);
    for (let exchange = 0; !conflict; exchange++) {
      if (exchange === EXCHANGES) return false;
      let next = shortest(false);
      if (next < 0) next = shortest(true);
      if (next < 0) {
        units.forEach(({ length }, j) => (multipliers[j] = length > 0 ? (mu[j] / length) * unit : 0));
        break;
      }
      mu[next] = 0;
      set.push(next);
      reach(p);
    }
    return true;
  }

  /** The constraint that falls short by most, if by more than rounding; where `fine`, in twice the working precision. */
  function shortest(fine: boolean): number {
    const longest = lpNorm(Infinity, w);
    let next = -1;
    let worst = 0;
    rows.forEach(({ row, low, bound }, j) => {
      const { length } = units[j];
      if (length === 0 || set.includes(j)) return;
      const size = spread[j] * longest;
      const short = bound - (fine ? innerProduct(row, low, w, wl) : dot(row, w));
      const rounding = !fine ? ROUNDING * size : bound ? 1e-13 : 1e-15 * size;
      if (short > rounding && short / length > worst) [worst, next] = [short / length, j];
    });
    return next;
  }

  /** Goes to the solution of equalities on the set, and drops what gets in the way. */
  function reach(p: number): void {
    for (;;) {
      let step = 1;
      let blocked = -1;
      let change: Vector;
      if (factorize()) {
        const target = onFace(p);
        change = target.map((x, i) => x - mu[set[i]]);
        target.forEach((x, i) => {
          const from = mu[set[i]];
          const length = from > 0 ? from / (from - x) : 0;
          if (!(x > 0) && (length < step || blocked < 0)) [step, blocked] = [Math.min(length, 1), i];
        });
      } else {
        // The last row is a combination of the others: along it the dual objective grows linearly.
        change = combination();
        const nothing = NEGLIGIBLE * lpNorm(Infinity, change);
        step = Infinity;
        change.forEach((x, i) => {
          const length = -mu[set[i]] / x;
          if (x < -nothing && length < step) [step, blocked] = [length, i];
        });
        if (blocked < 0) {
          multipliers.fill(0);
          set.forEach((j, i) => (multipliers[j] = Math.max(0, change[i]) / units[j].length));
          conflict = set.filter((_, i) => change[i] > nothing);
          return;
        }
      }
      set.forEach((j, i) => (mu[j] = Math.max(0, mu[j] + step * change[i])));
      if (blocked < 0) return;
      mu[set[blocked]] = 0;
      set.splice(blocked, 1);
    }
  }

  /** Orthonormal rows of the set, and its parts along them; false where the last row depends on the others. */
  function factorize(): boolean {
    [basis, parts] = [[], []];
    return set.every((j, i) => {
      const row = units[j].row.slice();
      const own = new Array<number>(d + 1).fill(0);
      const left = project(row, own);
      parts.push(own);
      if (i >= d || left <= DEPENDENT) return false;
      own[i] = left;
      basis.push(row.map((x) => x / left));
      return true;
    });
  }

  /** Takes out of a row what lies along the basis, twice, and adds it to `own`; returns the length of what is left. */
  function project(row: number[], own: number[]): number {
    for (let again = 0; again < 2; again++) {
      basis.forEach((other, i) => {
        const part = dot(other, row);
        own[i] += part;
        add(row, -part, other);
      });
    }
    return lpNorm(2, row);
  }

  /** The coordinates along the basis of what has these inner products with the set. */
  function coordinates(products: readonly number[]): number[] {
    const u: number[] = [];
    products.forEach((x, i) => u.push((x - dot(u, parts[i])) / parts[i][i]));
    return u;
  }

  /** The combination of the first `count` rows of the set that has these coordinates. */
  function multiples(u: ArrayLike<number>, count: number): Vector {
    const x = vector(count);
    for (let i = count - 1; i >= 0; i--) {
      let sum = u[i];
      for (let j = i + 1; j < count; j++) sum -= parts[j][i] * x[j];
      x[i] = sum / parts[i][i];
    }
    return x;
  }

  /** How the last row of the set and the others combine to nothing. */
  function combination(): Vector {
    const last = set.length - 1;
    return Float64Array.of(...multiples(parts[last], last).map((x) => -x), 1);
  }

  /** Writes the least w with equality on the set, and returns its multipliers. */
  function onFace(p: number): Vector {
    const k = set.length;
    const u = coordinates(set.map((j) => units[j].bound));
    let x = combine(u, basis, d);
    let y = x;
    if (p !== 2 && k > 0) {
      if (p < 2 && k < d) {
        // max <u, v> - ||sum_i v_i q_i||_q^2 / 2, whose slope is w
        y = leastPower(basis, vector(d), u, dualExponent(p));
        x = slope(y, dualExponent(p));
      } else {
        if (k < d) x = leastPower(complement(), x, vector(d), p);
        y = slope(x, p);
      }
    }
    x.forEach((part, b) => (w[b] = part * unit * weights[b]));
    wl.fill(0);
    // What rounding left of the equalities is taken out, in twice the working precision.
    for (let again = 0, most = 1; again < 3 && most >= 1e-12; again++) {
      most = 0;
      const left = coordinates(set.map((j) => {
        const { row, low, bound } = rows[j];
        const short = bound - innerProduct(row, low, w, wl);
        if (bound > 0) most = Math.max(most, Math.abs(short));
        return short / units[j].length;
      }));
      accumulate(w, wl, combine(left, basis, d).map((part, b) => part * weights[b]));
    }
    return multiples(basis.map((row) => dot(row, y)), k);
  }

  /** An orthonormal basis of what is orthogonal to the set. */
  function complement(): number[][] {
    const own = basis.slice();
    while (basis.length < d) {
      let most = 0;
      let best: number[] = [];
      for (let b = 0; b < d; b++) {
        const axis = Array.from(wl, (_, c) => Number(b === c));
        const left = project(axis, new Array<number>(d).fill(0));
        if (left > most) [most, best] = [left, axis.map((x) => x / left)];
      }
      basis.push(best);
    }
    const found = basis.slice(own.length);
    basis = own;
    return found;
  }
}

/** The gradient of ||x||_p^2 / 2. */
function slope(x: Vector, p: number): Vector {
  const norm = lpNorm(p, x);
  return x.map((part) => (norm ? norm * Math.sign(part) * (Math.abs(part) / norm) ** (p - 1) : 0));
}

/** The x = base + sum_i z_i basis_i that is least in ||x||_p^2 / 2 - <u, z>, p > 2, by Newton's method. */
function leastPower(basis: number[][], base: Vector, u: ArrayLike<number>, p: number): Vector {
  const count = basis.length;
  const at = (z: Vector): Vector => combine(z, basis, base.length).map((part, b) => base[b] + part);
  const z = Float64Array.from(basis, (_, i) => u[i]);
  // Large powers are approached by doubling: far from the solution their curvature is lost.
  for (let power = Math.min(p, 4); ; power = Math.min(p, 2 * power)) {
    newton(power);
    if (power === p) return at(z);
  }

  function newton(p: number): void {
    let x = at(z);
    let norm = lpNorm(p, x);
    const linear = dot(z, u);
    if (linear) {
      // The best multiple of the start.
      z.forEach((part, i) => (z[i] = part * (linear / (norm * norm))));
      x = at(z);
      norm = lpNorm(p, x);
    }
    for (let steps = 0; steps < NEWTON_STEPS; steps++) {
      const g = slope(x, p);
      const along = basis.map((row) => dot(row, g));
      const slopes = Float64Array.from(along, (part, i) => u[i] - part);
      if (!(lpNorm(Infinity, slopes) > 1e-16 * norm)) return;
      const curve = x.map((part) => (p - 1) * (Math.abs(part) / norm) ** (p - 2));
      const whole = basis.map((row, i) => {
        const curved = row.map((part, b) => part * curve[b]);
        return Float64Array.from(basis, (other, j) => dot(curved, other) + ((2 - p) * along[i] * along[j]) / norm / norm);
      });
      // Where entries vanish there is next to no curvature, and slopes are rounding.
      let ridge = 1e-14 * Math.max(...whole.map((row, i) => row[i]));
      let step: Vector;
      let falls = 0;
      for (;; ridge *= 100) {
        if (!(ridge < Infinity)) return;
        step = slopes.slice();
        const solved = eliminate(whole.map((row, i) => row.map((part, j) => (i === j ? part + ridge : part))), step);
        falls = solved ? dot(slopes, step) : 0;
        if (falls > 0) break;
      }
      for (let length = 1; ; length /= 2) {
        if (length < 1e-10) return;
        const trial = z.map((part, i) => part + length * step[i]);
        const there = at(trial);
        const size = lpNorm(p, there);
        const fell = (norm - size) * (norm + size) / 2 + length * dot(step, u);
        if (!(fell >= 1e-4 * length * falls) && (length < 1 || falls > 1e-13 * norm * norm)) continue;
        z.set(trial);
        [x, norm] = [there, size];
        break;
      }
      if (falls < 1e-30 * norm * norm) return;
    }
  }
}
