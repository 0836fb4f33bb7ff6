// Which selection each start of a prompt vector ends on.

import { attractorOf, ties, type Attractor } from "./analysis";
import { Gradient } from "./gradient";
import { normFor, makeStep } from "./optimizers";
import type { Training } from "../state";
import type { Problem } from "./problem";

/** The rule of `analysis/basins/attractors.py` in the library. */
const SATURATED = 0.99;
const OPPOSING = Math.log(0.01);
const ACTIVE = 1e-6;
const CHECK_EVERY = 16;

interface Held extends Attractor {
  index: number;
  better: { i: number; t: number; log: number }[];
  holding: { i: number; t: number; log: number }[];
}

export class Basins {
  readonly found: Held[] = [];
  private readonly gradient: Gradient;
  private readonly numbers = new Map<number, Held>();
  private readonly starts: number[] = [0];
  private readonly kept: Int32Array;
  private readonly offset: Float64Array;

  constructor(
    private readonly problem: Problem,
    private readonly training: Training,
  ) {
    this.gradient = new Gradient(problem);
    for (const keys of problem.keys) this.starts.push(this.starts[this.starts.length - 1] + keys.length);
    this.kept = new Int32Array(problem.keys.length);
    this.offset = new Float64Array(problem.keys.length);
  }

  /** The attractor that a start reaches, or null where it has not settled after `steps`. */
  follow(start: ArrayLike<number>, steps: number): Held | null {
    const w = Float64Array.from(start);
    const { gradient } = this;
    const step = makeStep(this.training, gradient, start);
    for (let done = 0; ; done++) {
      if (done % CHECK_EVERY === 0 || done === steps) {
        const held = this.settled(w, done === steps);
        if (held) return held;
        if (done === steps) return null;
      }
      gradient.at(w);
      step(w);
    }
  }

  /** Before the end only locally optimal selections count: others may hold for long, and lose. */
  private settled(w: Float64Array, atEnd: boolean): Held | null {
    const score = this.gradient.scores(w);
    const { starts, kept, offset } = this;
    let number = 0;
    for (let i = 0; i < kept.length; i++) {
      let top = starts[i];
      for (let t = top + 1; t < starts[i + 1]; t++) if (score[t] > score[top]) top = t;
      let total = 0;
      for (let t = starts[i]; t < starts[i + 1]; t++) total += Math.exp(score[t] - score[top]);
      if (1 / total <= SATURATED) return null;
      kept[i] = top - starts[i];
      offset[i] = score[top] + Math.log(total);
      number = number * (starts[i + 1] - starts[i]) + kept[i];
    }
    const held = this.held(number);
    if (!held.holding.length || !(held.locallyOptimal || atEnd)) return null;
    if (!held.better.length) return held;
    let weakest = Infinity;
    for (const { i, t, log } of held.holding) {
      weakest = Math.min(weakest, score[starts[i] + t] - offset[i] + log);
    }
    let sum = 0;
    for (const { i, t, log } of held.better) {
      sum += Math.exp(Math.min(score[starts[i] + t] - offset[i] + log - weakest, 700));
    }
    return Math.log(sum) <= OPPOSING ? held : null;
  }

  private held(number: number): Held {
    const known = this.numbers.get(number);
    if (known) return known;
    const selection = Array.from(this.kept);
    const attractor = attractorOf(this.problem, normFor(this.training, this.problem.parameterization), selection);
    const { solution, problem: rows } = attractor;
    const held: Held = { ...attractor, index: this.found.length, better: [], holding: [] };
    const total = solution.multipliers.reduce((a, b) => a + b, 0);
    for (let j = 0; j < rows.count; j++) {
      const [i, t] = [rows.sequence[j], rows.token[j]];
      const kept = this.problem.scores[i][selection[i]];
      const other = this.problem.scores[i][t];
      if (ties(kept, other)) continue;
      const width = Math.hypot(rows.rows[2 * j], rows.rows[2 * j + 1]);
      const log = Math.log(Math.abs(other - kept) * width) - Math.log1p(Math.exp(kept));
      if (other > kept) held.better.push({ i, t, log });
      if (solution.status === "solved" && solution.multipliers[j] > ACTIVE * total) {
        held.holding.push({ i, t, log });
      }
    }
    this.numbers.set(number, held);
    this.found.push(held);
    return held;
  }
}
