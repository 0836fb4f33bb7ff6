// One step of every optimizer, on mantissas: what of a gradient each reads is as in the library.

import type { Parameterization, Training } from "../state";
import type { Gradient } from "./gradient";
import { largest, vector, type Vector } from "./linear";
import { dualExponent, FROBENIUS, lpNorm, NUCLEAR, polar, power, SPECTRAL, type Norm } from "./norms";

/** The norm that the optimizer descends in, in its own parameters. */
function descended({ optimizer, p = 1.5 }: Training): Norm {
  if (optimizer === "mirror_descent") return { p };
  if (optimizer === "sign_descent") return { p: Infinity };
  if (optimizer === "greedy_coordinate_descent") return { p: 1 };
  return optimizer === "spectral_descent" ? SPECTRAL : FROBENIUS;
}

/** Whether the norm that training minimizes is known: of factors it is for gradient descent alone. */
export const isPredicted = (training: Training, kind: Parameterization): boolean => kind !== "KQ" || descended(training).p === 2;

/** The norm whose margin the optimizer is predicted to maximize; Frobenius where none is known. */
export function normFor(training: Training, kind: Parameterization): Norm {
  const norm = descended(training);
  if (kind === "W") return norm;
  if (kind === "KQ") return norm.p === 2 ? NUCLEAR : FROBENIUS;
  return norm.schatten ? FROBENIUS : norm;
}

export interface Stepper {
  /** Forgets what was before a start. */
  begin(start: ArrayLike<number>): void;
  /** Changes w in place by one step along the gradient last computed: whether it moved; -1 if it would to infinity. */
  step(w: Vector): -1 | 0 | 1;
}

/** The steps of an optimizer. */
export function stepperOf(training: Training, gradient: Gradient): Stepper {
  const { optimizer, weight_decay: decay = 0 } = training;
  const { size } = gradient;
  const next = vector(size);
  const { begin, move } = mover(training, gradient, next);
  const byEntry = optimizer === "sign_descent";
  const step = (w: Vector): -1 | 0 | 1 => {
    if (byEntry) gradient.signed(w);
    if (decay > 0) addDecay(gradient, w, decay, byEntry);
    let moved = move(w);
    for (let k = 0; k < size; k++) if (!Number.isFinite(next[k])) return -1;
    for (let k = 0; k < size; k++) {
      moved ||= next[k] !== w[k];
      w[k] = next[k];
    }
    return moved ? 1 : 0;
  };
  return { begin, step };
}

/** Adds a multiple of the parameters to the gradient, with neither lost where it is small. */
function addDecay({ mantissa: g, logScales, entryScales, arrays }: Gradient, w: Vector, decay: number, byEntry: boolean): void {
  const own = Math.log(decay);
  arrays.forEach(({ from, to }, r) => {
    const common = w.subarray(from, to).some((x) => x !== 0) ? Math.max(logScales[r], own) : logScales[r];
    for (let k = from; k < to; k++) {
      const was = byEntry ? entryScales[k] : logScales[r];
      const scale = byEntry ? Math.max(was, w[k] !== 0 ? own : -Infinity) : common;
      g[k] = scale === -Infinity ? 0 : g[k] * Math.exp(was - scale) + w[k] * Math.exp(own - scale);
    }
    logScales[r] = common;
  });
}

/** `move` fills `next` with the parameters after a step, and says whether what it remembers has changed. */
function mover(
  { optimizer, learning_rate: rate, p = 1.5 }: Training, { mantissa: g, logScales, arrays, size }: Gradient, next: Vector,
): { begin(start: ArrayLike<number>): void; move(w: Vector): boolean } {
  const parts = arrays.map(({ from, to }) => g.subarray(from, to));
  const divide = (part: Vector, by: number): void => {
    if (by > 0) for (let k = 0; k < part.length; k++) part[k] /= by;
  };
  /** Brings all arrays to one scale. */
  const gather = (): void => {
    if (parts.length === 1) return;
    const common = largest(logScales);
    parts.forEach((part, r) => {
      const factor = common === -Infinity ? 0 : Math.exp(logScales[r] - common);
      for (let k = 0; k < part.length; k++) part[k] *= factor;
    });
  };
  if (optimizer === "mirror_descent") {
    // The mirror image sign(w) |w|^(p - 1) steps, each array by the dual norm of its own gradient.
    const image = (x: number, by: number): number => Math.sign(x) * power(Math.abs(x), by);
    const [q, grown] = [dualExponent(p), 1 / (p - 1)];
    const [y, moved] = [vector(size), new Uint8Array(size)];
    const begin = (start: ArrayLike<number>): void => {
      y.set(Float64Array.from(start, (x) => image(x, p - 1)));
      moved.fill(0);
    };
    const move = (w: Vector): boolean => {
      let changed = false;
      for (const part of parts) divide(part, lpNorm(q, part));
      for (let k = 0; k < size; k++) {
        const to = y[k] - rate * g[k];
        changed ||= to !== y[k];
        if (g[k] !== 0) moved[k] = 1; // the rest keeps its first value, whose image may be rounded
        y[k] = to;
        next[k] = moved[k] ? image(to, grown) : w[k];
      }
      return changed;
    };
    return { begin, move };
  }
  const turn: Partial<Record<Training["optimizer"], () => void>> = {
    gradient_descent: () => parts.forEach((part, r) => {
      const half = Math.exp(logScales[r] / 2); // the whole may be too small for a number
      for (let k = 0; k < part.length; k++) part[k] *= half * half;
    }),
    normalized_gradient_descent: () => {
      gather();
      divide(g, lpNorm(2, g));
    },
    sign_descent: () => {
      for (let k = 0; k < size; k++) g[k] = Math.sign(g[k]);
    },
    greedy_coordinate_descent: () => {
      gather();
      let first = 0;
      for (let k = 1; k < size; k++) if (Math.abs(g[k]) > Math.abs(g[first])) first = k;
      const sign = Math.sign(g[first]);
      g.fill(0);
      g[first] = sign;
    },
    spectral_descent: () => parts.forEach((part, r) => part.set(polar(part, arrays[r].columns))),
  };
  const own = turn[optimizer]!;
  return {
    begin: () => undefined,
    move: (w) => {
      own();
      for (let k = 0; k < size; k++) next[k] = w[k] - rate * g[k];
      return false;
    },
  };
}
