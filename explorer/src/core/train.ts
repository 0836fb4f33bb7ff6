// Training from one start, recorded at some steps.

import { Gradient } from "./gradient";
import { vector } from "./linear";
import { makeStep } from "./optimizers";
import type { Training } from "../state";
import { effective, sizeOf, type Problem } from "./problem";

export interface Path {
  steps: Int32Array;
  /** One row of the effective matrix (of the prompt) a recorded step. */
  points: Float64Array;
  size: number;
  /** One row of parameters a recorded step: as `points`, but K and Q, or p and v. */
  parameters: Float64Array;
  parameterSize: number;
  /** The step at which training came to stand, and why; -1 where it did not. */
  ended: number;
  reason: "" | "stationary" | "below rounding" | "diverged";
}

/** Every step up to 64, then ever fewer: about 40 a doubling. */
export function recordedSteps(steps: number): Int32Array {
  const found: number[] = [];
  for (let k = 0; k < steps; k += Math.max(1, Math.floor(k / 64))) found.push(k);
  found.push(steps);
  return Int32Array.from(found);
}

/** Trains as the library does: where a step moves nothing, or leads to infinity, training has ended. */
export function train(given: Problem, training: Training, start: ArrayLike<number>, steps: Int32Array): Path {
  const problem = training.parameterization ? { ...given, parameterization: training.parameterization } : given;
  // W beside its factors starts at their product.
  const product = training.parameterization === "W" && given.parameterization === "KQ";
  const first = product ? effective(given, start) : Float64Array.from(start);
  const gradient = new Gradient(problem, training.plain);
  const w = first.slice();
  const step = makeStep(training, gradient, first);
  const size = sizeOf(problem);
  const parameters = vector(steps.length * w.length);
  let ended = -1;
  let reason: Path["reason"] = "";
  let done = 0;
  for (let r = 0; r < steps.length; r++) {
    for (; done < steps[r] && ended < 0; done++) {
      gradient.at(w);
      const moved = step(w);
      if (moved === 1) continue;
      ended = done;
      reason = moved < 0 ? "diverged" : gradient.mantissa.some((x) => x !== 0) ? "below rounding" : "stationary";
    }
    parameters.set(w, r * w.length);
  }
  let points = parameters;
  if (size !== w.length) {
    points = vector(steps.length * size);
    for (let r = 0; r < steps.length; r++) {
      points.set(effective(problem, parameters.subarray(r * w.length, (r + 1) * w.length)), r * size);
    }
  }
  return { steps, points, size, parameters, parameterSize: w.length, ended, reason };
}
