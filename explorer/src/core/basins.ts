// Which selection each start of a prompt vector ends on, by the rule of the library: a run has
// settled when one token holds nearly all attention in every sequence and better tokens pull almost
// nothing beside the weakest token that holds the solution (`analysis/basins/attractors.py`).

import type { Training } from "../state";
import { attractorOf, type Attractor } from "./analysis";
import { gradientOf, logSlope } from "./gradient";
import { vector, type Vector } from "./linear";
import { normFor, stepperOf } from "./optimizers";
import { ties, type Problem } from "./problem";

const SATURATED = 0.99;
const OPPOSING = Math.log(0.01);
const ACTIVE = 1e-6;
const CHECK_EVERY = 8;
/** Steps of the library after which runs are first judged. */
const STEPS = 1000;

/** A token that pulls: its place, its sequence, and the logarithm of its pull. */
type Pull = [place: number, sequence: number, log: number];

export interface Held extends Attractor {
  /** Tokens that would lower the loss, and those that hold the solution. */
  better: Pull[];
  holding: Pull[];
}

export interface Basins {
  /**
   * The attractor that a start reaches, or null where none is settled on. Runs are judged after
   * `steps`, twice as many, and so on up to `most`. A locally optimal selection is believed as soon
   * as it holds by the same rule; any other may hold for long, and lose.
   */
  follow(start: ArrayLike<number>, most: number, steps?: number): Held | null;
}

export function basinsOf(problem: Problem, training: Training): Basins {
  const gradient = gradientOf(problem, training.plain);
  const { keys, scores, loss } = problem;
  const { begin, step } = stepperOf(training, gradient);
  const met = new Map<number, Held>();
  const starts = [0];
  for (const row of keys) starts.push(starts[starts.length - 1] + row.length);
  const kept = new Int32Array(keys.length);
  const offset = vector(keys.length);
  /** The first token with the same key and score, for every token. */
  const copyOf = keys.flatMap((row, i) => row.map((key, t) =>
    starts[i] + row.findIndex((other, s) => scores[i][s] === scores[i][t] && other.join() === key.join())));
  const hasCopies = copyOf.some((t, k) => t !== k);

  function follow(start: ArrayLike<number>, most: number, steps = Math.min(STEPS, most)): Held | null {
    const w = Float64Array.from(start);
    begin(start);
    let horizon = steps;
    for (let done = 0; ; done++) {
      const judged = done === horizon;
      if (judged || done % CHECK_EVERY === 0) {
        const held = settled(w, !judged);
        if (held || (judged && horizon === most)) return held;
        if (judged) horizon = Math.min(2 * horizon, most);
      }
      gradient.at(w);
      if (step(w) !== 1) return settled(w, false);
    }
  }

  /** The selection that a run has settled on; early, only a locally optimal one. */
  function settled(w: Vector, early: boolean): Held | null {
    const score = gradient.scores(w);
    let number = 0;
    for (let i = 0; i < kept.length; i++) {
      const end = starts[i + 1];
      let top = starts[i];
      for (let t = top + 1; t < end; t++) if (score[t] > score[top]) top = t;
      let total = 0;
      let own = 0;
      for (let t = starts[i]; t < end; t++) {
        const weight = Math.exp(score[t] - score[top]);
        total += weight;
        if (t === top || (hasCopies && copyOf[t] === copyOf[top])) own += weight;
      }
      if (!(own / total > SATURATED)) return null;
      kept[i] = copyOf[top] - starts[i];
      offset[i] = score[top] + Math.log(total);
      number = number * (end - starts[i]) + kept[i];
    }
    let held = met.get(number);
    if (!held) met.set(number, (held = meet()));
    const { better, holding } = held;
    if (!holding.length || (early && !held.locallyOptimal)) return null;
    if (!better.length) return held;
    const pull = ([place, sequence, log]: Pull): number => score[place] - offset[sequence] + log;
    const weakest = Math.min(...holding.map(pull));
    const sum = better.reduce((all, one) => all + Math.exp(pull(one) - weakest), 0);
    return Math.log(sum) <= OPPOSING ? held : null;
  }

  /** Solves the margin problem of a selection met for the first time; tokens of equal score put no constraint. */
  function meet(): Held {
    const selection = Array.from(kept);
    const attractor = attractorOf(problem, normFor(training, problem.parameterization), selection, undefined,
      (i, t) => ties(scores[i][selection[i]], scores[i][t]));
    const { solution: { status, multipliers }, constraints } = attractor;
    const held: Held = { ...attractor, better: [], holding: [] };
    const total = multipliers.reduce((a, b) => a + b, 0);
    constraints.forEach(({ sequence: i, token: t, row }, j) => {
      const [own, other] = [scores[i][selection[i]], scores[i][t]];
      const pull: Pull = [starts[i] + t, i, Math.log(Math.abs(other - own) * Math.hypot(...row)) + logSlope(loss, own)];
      if (other > own) held.better.push(pull);
      if (status === "solved" && multipliers[j] > ACTIVE * total) held.holding.push(pull);
    });
    return held;
  }

  return { follow };
}
