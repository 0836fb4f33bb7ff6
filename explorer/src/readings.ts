// What the page says, as numbers.

import type { Answers } from "./answers";
import type { Attractor } from "./core/analysis";

const solutionOf = ({ selection, solution: { status, w, value, lower, gap, multipliers } }: Attractor): object =>
  ({ selection, status, w: [...w], value, lower, gap, multipliers: [...multipliers] });

/** Solutions, and trainings at their ends. */
export const readingsOf = ({ predicted, attractors, runs, ends }: Answers): object => ({
  predicted: predicted.map(solutionOf),
  locallyOptimal: attractors.map(({ selection }) => selection),
  trainings: runs.map(({ norm, attractor, parameters, steps }, k) => ({
    ...ends[k], point: [...ends[k].point], attention: [...ends[k].attention], normName: norm, attractor: solutionOf(attractor),
    // The parameters as they are trained.
    end: [...parameters.subarray(-parameters.length / steps.length)],
  })),
});
