// What the page says, as numbers.

import type { Answers } from "./answers";
import type { Attractor } from "./core/analysis";

const solutionOf = ({ selection, solution: { status, w, value, lower, gap, multipliers } }: Attractor): object =>
  ({ selection, status, w: Array.from(w), value, lower, gap, multipliers: Array.from(multipliers) });

/** Solutions, and trainings at their ends. */
export const readingsOf = (answers: Answers): object => ({
  predicted: answers.predicted.map(solutionOf),
  locallyOptimal: answers.attractors.map(({ selection }) => selection),
  trainings: answers.runs.map((run) => {
    const end = answers.moment(run, -1);
    return { ...end, point: Array.from(end.point), attention: Array.from(end.attention), normName: run.norm,
      attractor: solutionOf(run.attractor) };
  }),
});
