// Training from one start, recorded at some steps.

import type { Training } from "../state";
import { gradientOf } from "./gradient";
import { vector, type Vector } from "./linear";
import { stepperOf } from "./optimizers";
import { effective, sizeOf, type Problem } from "./problem";

export interface Path {
  steps: Int32Array;
  /** One row of the effective matrix (of the prompt) a recorded step. */
  points: Vector;
  size: number;
  /** One row of parameters a recorded step: as `points`, but K and Q, or p and v. */
  parameters: Vector;
  /** The step at which training came to stand, and why; -1 where it did not. */
  ended: number;
  reason: "" | "stationary" | "below rounding" | "diverged";
}

/** Every step up to 64, then ever fewer: about 40 a doubling. */
export function recordedSteps(steps: number): Int32Array {
  const found: number[] = [];
  for (let k = 0; k < steps; k += Math.max(1, k >> 6)) found.push(k);
  return Int32Array.from([...found, steps]);
}

/** Trains as the library does: where a step moves nothing, or leads to infinity, training has ended. */
export function train(given: Problem, training: Training, start: ArrayLike<number>, steps: Int32Array): Path {
  const problem = { ...given, parameterization: training.parameterization ?? given.parameterization };
  // W beside its factors starts at their product.
  const first = problem.parameterization === given.parameterization ? start : effective(given, start);
  const gradient = gradientOf(problem, training.plain);
  const w = Float64Array.from(first);
  const { begin, step } = stepperOf(training, gradient);
  begin(first);
  const parameters = vector(steps.length * w.length);
  let ended = -1;
  let reason: Path["reason"] = "";
  let done = 0;
  steps.forEach((until, r) => {
    for (; done < until && ended < 0; done++) {
      gradient.at(w);
      const moved = step(w);
      if (moved === 1) continue;
      ended = done;
      gradient.at(w); // the step has changed it
      reason = moved < 0 ? "diverged" : gradient.mantissa.some((x) => x !== 0) ? "below rounding" : "stationary";
    }
    parameters.set(w, r * w.length);
  });
  return { ...pathOf(problem, steps, parameters), ended, reason };
}

/** Recorded parameters as a path. */
export function pathOf(problem: Problem, steps: Int32Array, parameters: Vector): Path {
  const [size, width] = [sizeOf(problem), parameters.length / steps.length];
  let points = parameters;
  if (size !== width) {
    points = vector(steps.length * size);
    steps.forEach((_, r) => points.set(effective(problem, parameters.subarray(r * width)), r * size));
  }
  return { steps, parameters, points, size, ended: -1, reason: "" };
}
