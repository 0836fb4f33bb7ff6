// One step of every optimizer, on mantissas: what of a gradient each reads is as in the library.

import type { Gradient } from "./gradient";
import { vector } from "./linear";
import { polar, type Norm } from "./norms";
import type { Parameterization, Training } from "../state";

const EUCLIDEAN: Norm = { kind: "lp", p: 2 };

/** The norm that the optimizer descends in, in its own parameters. */
function descended({ optimizer, p }: Training): Norm {
  if (optimizer === "mirror_descent") return { kind: "lp", p: p ?? 1.5 };
  if (optimizer === "sign_descent") return { kind: "lp", p: Infinity };
  if (optimizer === "greedy_coordinate_descent") return { kind: "lp", p: 1 };
  return optimizer === "spectral_descent" ? { kind: "spectral" } : EUCLIDEAN;
}

/** Whether the norm that training minimizes is known: of factors it is for gradient descent alone. */
export function isPredicted(training: Training, parameterization: Parameterization): boolean {
  const norm = descended(training);
  return parameterization !== "KQ" || (norm.kind === "lp" && norm.p === 2);
}

/** The norm whose margin the optimizer is predicted to maximize; Frobenius where none is known. */
export function normFor(training: Training, parameterization: Parameterization): Norm {
  const norm = descended(training);
  if (parameterization === "W") return norm;
  if (parameterization === "KQ") return isPredicted(training, parameterization) ? { kind: "nuclear" } : EUCLIDEAN;
  return norm.kind === "spectral" ? EUCLIDEAN : norm;
}

/** Changes w in place by one step along the gradient last computed: whether it moved; -1 if it would to infinity. */
export type Step = (w: Float64Array) => -1 | 0 | 1;

/** The step of an optimizer; what it remembers starts with `start`. */
export function makeStep(training: Training, gradient: Gradient, start: ArrayLike<number>): Step {
  const rate = training.learning_rate;
  const decay = training.weight_decay ?? 0;
  const { mantissa: g, arrays, size } = gradient;
  const firsts = arrays.map((_, r) => arrays.slice(0, r).reduce((sum, [a, b]) => sum + a * b, 0)).concat(size);
  const next = vector(size);
  const move = mover(training, gradient, start, firsts, next);
  const byEntry = training.optimizer === "sign_descent";
  return (w) => {
    if (byEntry) gradient.signed(w);
    if (decay > 0) addDecay(gradient, w, decay, firsts, byEntry);
    const remembered = move(w);
    let sum = 0;
    for (let k = 0; k < size; k++) sum += next[k];
    if (!Number.isFinite(sum)) return -1;
    let moved = remembered;
    for (let k = 0; k < size; k++) {
      moved ||= next[k] !== w[k];
      w[k] = next[k];
    }
    return moved ? 1 : 0;
  };
}

/** Adds a multiple of the parameters to the gradient, with neither lost where it is small. */
function addDecay(gradient: Gradient, w: Float64Array, decay: number, firsts: number[], byEntry: boolean): void {
  const { mantissa: g, logScales, entryScales } = gradient;
  const own = Math.log(decay);
  for (let r = 0; r < logScales.length; r++) {
    let present = false;
    for (let k = firsts[r]; k < firsts[r + 1]; k++) present ||= w[k] !== 0;
    const common = present ? Math.max(logScales[r], own) : logScales[r];
    for (let k = firsts[r]; k < firsts[r + 1]; k++) {
      const was = byEntry ? entryScales[k] : logScales[r];
      const to = byEntry ? Math.max(was, w[k] !== 0 ? own : -Infinity) : common;
      g[k] = to === -Infinity ? 0 : g[k] * Math.exp(was - to) + w[k] * Math.exp(own - to);
    }
    logScales[r] = common;
  }
}

/** Fills `next` with the parameters after a step, and says whether what it remembers has changed. */
function mover(
  training: Training,
  gradient: Gradient,
  start: ArrayLike<number>,
  firsts: number[],
  next: Float64Array,
): (w: Float64Array) => boolean {
  const rate = training.learning_rate;
  const { mantissa: g, logScales, arrays, size } = gradient;
  /** Brings all arrays to one scale. */
  const gather = (): void => {
    if (arrays.length === 1) return;
    let common = -Infinity;
    for (let r = 0; r < arrays.length; r++) common = Math.max(common, logScales[r]);
    for (let r = 0; r < arrays.length; r++) {
      if (logScales[r] === common) continue;
      const factor = common === -Infinity ? 0 : Math.exp(logScales[r] - common);
      for (let k = firsts[r]; k < firsts[r + 1]; k++) g[k] *= factor;
    }
  };
  switch (training.optimizer) {
    case "gradient_descent":
      return (w) => {
        for (let r = 0; r < arrays.length; r++) {
          const half = Math.exp(logScales[r] / 2);
          for (let k = firsts[r]; k < firsts[r + 1]; k++) next[k] = w[k] - rate * (g[k] * half * half);
        }
        return false;
      };
    case "sign_descent":
      return (w) => {
        for (let k = 0; k < size; k++) next[k] = w[k] - rate * Math.sign(g[k]);
        return false;
      };
    case "greedy_coordinate_descent":
      return (w) => {
        gather();
        let first = 0;
        for (let k = 1; k < size; k++) if (Math.abs(g[k]) > Math.abs(g[first])) first = k;
        next.set(w);
        next[first] -= rate * Math.sign(g[first]);
        return false;
      };
    case "spectral_descent":
      return (w) => {
        for (let r = 0; r < arrays.length; r++) {
          const columns = arrays[r][1];
          if (columns === 1) addUnit(w, g, 2, firsts[r], firsts[r + 1], rate, next);
          else {
            const turned = polar(g.subarray(firsts[r], firsts[r + 1]), columns);
            for (let k = firsts[r]; k < firsts[r + 1]; k++) next[k] = w[k] - rate * turned[k - firsts[r]];
          }
        }
        return false;
      };
    case "mirror_descent":
      return mirror(training, start, g, firsts, next);
    default:
      return (w) => {
        gather();
        addUnit(w, g, 2, 0, size, rate, next);
        return false;
      };
  }
}

/** next = w - rate g / ||g||_q for a stretch of entries; w where the gradient is zero. */
function addUnit(
  w: Float64Array, g: Float64Array, q: number, first: number, end: number, rate: number, next: Float64Array,
): void {
  let top = 0;
  for (let k = first; k < end; k++) top = Math.max(top, Math.abs(g[k]));
  if (!(top > 0)) top = 1;
  let sum = 0;
  for (let k = first; k < end; k++) {
    const x = Math.abs(g[k]) / top;
    sum += q === 2 ? x * x : q === 3 ? x * x * x : q === 1.5 ? x * Math.sqrt(x) : x ** q;
  }
  const norm = (q === 2 ? Math.sqrt(sum) : sum ** (1 / q)) || 1;
  for (let k = first; k < end; k++) next[k] = w[k] - rate * (g[k] / top / norm);
}

/** Steps of the mirror image sign(w) |w|^(p - 1), each array by the dual norm of its own gradient. */
function mirror(
  training: Training, start: ArrayLike<number>, g: Float64Array, firsts: number[], next: Float64Array,
): (w: Float64Array) => boolean {
  const p = training.p ?? 1.5;
  const power = 1 / (p - 1);
  const y = Float64Array.from(start, (x) => Math.sign(x) * Math.abs(x) ** (p - 1));
  const moved = new Uint8Array(y.length);
  const image = (x: number): number => {
    const size = Math.abs(x);
    const grown = power === 1 ? size : power === 2 ? size * size : power === 0.5 ? Math.sqrt(size) : size ** power;
    return x < 0 ? -grown : grown;
  };
  return (w) => {
    let changed = false;
    for (let r = 0; r + 1 < firsts.length; r++) {
      addUnit(y, g, p / (p - 1), firsts[r], firsts[r + 1], training.learning_rate, next);
    }
    for (let k = 0; k < y.length; k++) {
      changed ||= next[k] !== y[k];
      if (g[k] !== 0) moved[k] = 1; // the rest keeps its first value, whose image may be rounded
      y[k] = next[k];
      next[k] = moved[k] ? image(y[k]) : w[k];
    }
    return changed;
  };
}
