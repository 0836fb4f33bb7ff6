// Training from one start, recorded at some steps.

import { Gradient } from "./gradient";
import { makeStep } from "./optimizers";
import type { Training } from "../state";
import type { Problem } from "./problem";

export interface Path {
  steps: Int32Array;
  /** One row of parameters a recorded step. */
  points: Float64Array;
  size: number;
}

/** Every step up to 64, then ever fewer: about 40 a doubling. */
export function recordedSteps(steps: number): Int32Array {
  const found: number[] = [];
  for (let k = 0; k < steps; k += Math.max(1, Math.floor(k / 64))) found.push(k);
  found.push(steps);
  return Int32Array.from(found);
}

export function train(
  problem: Problem,
  training: Training,
  start: ArrayLike<number>,
  steps: Int32Array,
): Path {
  const gradient = new Gradient(problem);
  const w = Float64Array.from(start);
  const step = makeStep(training, start);
  const points = new Float64Array(steps.length * w.length);
  let done = 0;
  for (let r = 0; r < steps.length; r++) {
    for (; done < steps[r]; done++) {
      gradient.at(w);
      step(w, gradient.mantissa, gradient.logScale);
    }
    points.set(w, r * w.length);
  }
  return { steps, points, size: w.length };
}
