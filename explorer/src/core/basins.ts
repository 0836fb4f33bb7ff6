// Which selection each start of a prompt vector ends on, by the rule of the library: a run has
// settled when one token holds nearly all attention in every sequence and better tokens pull almost
// nothing beside the weakest token that holds the solution (`analysis/basins/attractors.py`).

import { attractorOf, type Attractor } from "./analysis";
import { Gradient } from "./gradient";
import { vector } from "./linear";
import { normFor, makeStep } from "./optimizers";
import type { Training } from "../state";
import { ties, type Problem } from "./problem";

const SATURATED = 0.99;
const OPPOSING = Math.log(0.01);
const ACTIVE = 1e-6;
const CHECK_EVERY = 8;
/** Steps of the library after which runs are first judged. */
const STEPS = 1000;

export interface Held extends Attractor {
  index: number;
  /** Tokens that would lower the loss, and those that hold the solution: places, and logarithms of their pulls. */
  better: Pulls;
  holding: Pulls;
}

interface Pulls {
  place: number[];
  sequence: number[];
  log: number[];
}

export class Basins {
  readonly found: Held[] = [];
  private readonly gradient: Gradient;
  private readonly numbers = new Map<number, Held>();
  private readonly starts: number[] = [0];
  private readonly kept: Int32Array;
  private readonly offset: Float64Array;
  /** The first token with the same key and score, for every token. */
  private readonly copyOf: Int32Array;

  constructor(
    private readonly problem: Problem,
    private readonly training: Training,
  ) {
    this.gradient = new Gradient(problem, training.plain);
    const { keys, scores } = problem;
    for (const row of keys) this.starts.push(this.starts[this.starts.length - 1] + row.length);
    this.kept = new Int32Array(keys.length);
    this.offset = vector(keys.length);
    this.copyOf = Int32Array.from(keys.flatMap((row, i) => row.map((key, t) =>
      this.starts[i] + row.findIndex((other, s) => scores[i][s] === scores[i][t] && other.every((x, k) => x === key[k])))));
    this.hasCopies = this.copyOf.some((t, k) => t !== k);
  }

  private readonly hasCopies: boolean;

  /**
   * The attractor that a start reaches, or null where none is settled on. Runs are judged after
   * `steps`, twice as many, and so on up to `most`. A locally optimal selection is believed as soon
   * as it holds by the same rule; any other may hold for long, and lose.
   */
  follow(start: ArrayLike<number>, most: number, steps = Math.min(STEPS, most)): Held | null {
    const w = Float64Array.from(start);
    const { gradient } = this;
    const step = makeStep(this.training, gradient, start);
    let horizon = steps;
    for (let done = 0; ; done++) {
      if (done === horizon) {
        const held = this.settled(w, false);
        if (held || horizon === most) return held;
        horizon = Math.min(2 * horizon, most);
      } else if (done % CHECK_EVERY === 0) {
        const held = this.settled(w, true);
        if (held) return held;
      }
      gradient.at(w);
      if (step(w) !== 1) return this.settled(w, false);
    }
  }

  /** The selection that a run has settled on; early, only a locally optimal one. */
  settled(w: Float64Array, early: boolean): Held | null {
    const score = this.gradient.scores(w);
    const { starts, kept, offset, copyOf } = this;
    let number = 0;
    for (let i = 0; i < kept.length; i++) {
      let top = starts[i];
      for (let t = top + 1; t < starts[i + 1]; t++) if (score[t] > score[top]) top = t;
      let total = 0;
      let own = 0;
      for (let t = starts[i]; t < starts[i + 1]; t++) {
        const weight = Math.exp(score[t] - score[top]);
        total += weight;
        if (t === top || (this.hasCopies && copyOf[t] === copyOf[top])) own += weight;
      }
      if (!(own / total > SATURATED)) return null;
      kept[i] = copyOf[top] - starts[i];
      offset[i] = score[top] + Math.log(total);
      number = number * (starts[i + 1] - starts[i]) + kept[i];
    }
    const held = this.numbers.get(number) ?? this.meet(number);
    const { better, holding } = held;
    if (!holding.place.length || (early && !held.locallyOptimal)) return null;
    if (!better.place.length) return held;
    let weakest = Infinity;
    for (let k = 0; k < holding.place.length; k++) {
      weakest = Math.min(weakest, score[holding.place[k]] - offset[holding.sequence[k]] + holding.log[k]);
    }
    let sum = 0;
    for (let k = 0; k < better.place.length; k++) {
      sum += Math.exp(score[better.place[k]] - offset[better.sequence[k]] + better.log[k] - weakest);
    }
    return Math.log(sum) <= OPPOSING ? held : null;
  }

  /** Solves the margin problem of a selection met for the first time; tokens of equal score put no constraint. */
  private meet(number: number): Held {
    const { problem, training, starts } = this;
    const { scores, loss } = problem;
    const selection = Array.from(this.kept);
    const level = (i: number, t: number): boolean => ties(scores[i][selection[i]], scores[i][t]);
    const norm = normFor(training, problem.parameterization);
    const attractor = attractorOf(problem, norm, selection, undefined, level);
    const { solution, problem: rows } = attractor;
    const none = (): Pulls => ({ place: [], sequence: [], log: [] });
    const held: Held = { ...attractor, index: this.found.length, better: none(), holding: none() };
    const total = solution.multipliers.reduce((a, b) => a + b, 0);
    for (let j = 0; j < rows.count; j++) {
      const [i, t] = [rows.sequence[j], rows.token[j]];
      const kept = scores[i][selection[i]];
      const other = scores[i][t];
      const width = Math.hypot(...problem.keys[i][t].map((x, k) => x - problem.keys[i][selection[i]][k]));
      const slope = loss === "linear" ? 0 : loss === "exponential" ? -kept : -softplus(kept);
      const add = ({ place, sequence, log }: Pulls): void => {
        place.push(starts[i] + t);
        sequence.push(i);
        log.push(Math.log(Math.abs(other - kept) * width) + slope);
      };
      if (other > kept) add(held.better);
      if (solution.status === "solved" && solution.multipliers[j] > ACTIVE * total) add(held.holding);
    }
    this.numbers.set(number, held);
    this.found.push(held);
    return held;
  }
}

const softplus = (x: number): number => (x > 0 ? x + Math.log1p(Math.exp(-x)) : Math.log1p(Math.exp(x)));
