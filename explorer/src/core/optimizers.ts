// One step of every optimizer, on mantissas: what of a gradient each reads is as in the library.

import { dual, normOf, steepest, type Norm } from "./norms";
import type { Parameterization, Training } from "../state";

/** The norm whose margin the optimizer is predicted to maximize. */
export function normFor(training: Training, parameterization: Parameterization): Norm {
  switch (training.optimizer) {
    case "mirror_descent":
      return { kind: "lp", p: training.p ?? 1.5 };
    case "sign_descent":
      return { kind: "lp", p: Infinity };
    case "greedy_coordinate_descent":
      return { kind: "lp", p: 1 };
    case "spectral_descent":
      return parameterization !== "p" ? { kind: "spectral" } : { kind: "lp", p: 2 };
    default:
      return { kind: "lp", p: 2 };
  }
}

/** Changes w in place by one step. */
export type Step = (w: Float64Array, mantissa: Float64Array, logScale: number) => void;

export function makeStep(training: Training, start: ArrayLike<number>): Step {
  const rate = training.learning_rate;
  switch (training.optimizer) {
    case "normalized_gradient_descent":
      return (w, g) => {
        let sum = 0;
        let top = 0;
        for (let k = 0; k < g.length; k++) top = Math.max(top, Math.abs(g[k]));
        if (top === 0) return;
        for (let k = 0; k < g.length; k++) sum += (g[k] / top) ** 2;
        const scale = rate / (top * Math.sqrt(sum));
        for (let k = 0; k < g.length; k++) w[k] -= scale * g[k];
      };
    case "gradient_descent":
      return (w, g, logScale) => {
        const scale = rate * Math.exp(logScale);
        for (let k = 0; k < g.length; k++) w[k] -= scale * g[k];
      };
    case "sign_descent":
      return (w, g) => {
        for (let k = 0; k < g.length; k++) w[k] -= rate * Math.sign(g[k]);
      };
    case "greedy_coordinate_descent":
      return (w, g) => {
        let first = 0;
        for (let k = 1; k < g.length; k++) if (Math.abs(g[k]) > Math.abs(g[first])) first = k;
        w[first] -= rate * Math.sign(g[first]);
      };
    case "spectral_descent":
      return (w, g) => {
        const d = steepest({ kind: "spectral" }, g);
        for (let k = 0; k < g.length; k++) w[k] -= rate * d[k];
      };
    case "mirror_descent":
      return mirrorStep(rate, training.p ?? 1.5, start);
  }
}

function mirrorStep(rate: number, p: number, start: ArrayLike<number>): Step {
  const power = 1 / (p - 1);
  const dualNorm = dual({ kind: "lp", p });
  const y = Float64Array.from(start, (x) => Math.sign(x) * Math.abs(x) ** (p - 1));
  return (w, g) => {
    const size = normOf(dualNorm, g);
    if (size === 0) return;
    for (let k = 0; k < g.length; k++) {
      y[k] -= (rate * g[k]) / size;
      w[k] = p === 2 ? y[k] : Math.sign(y[k]) * Math.abs(y[k]) ** power;
    }
  };
}
