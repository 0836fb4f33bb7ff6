// What follows from a state: solutions, paths, and what both say at a step.

import type { Attractor, Measures } from "./core/analysis";
import type { Norm } from "./core/norms";
import type { Problem } from "./core/problem";
import { core } from "./mathematics";
import type { NormName, State, Training } from "./state";
import { problemOf } from "./state";

/** A training, its points as prompts or matrices: W where K and Q are trained, p beside v. */
export interface Run {
  training: Training;
  norm: NormName;
  steps: Int32Array;
  size: number;
  points: Float64Array;
  /** The last point as it was trained. */
  end: Float64Array;
  /** v of every point, where it is trained too. */
  heads: Float64Array | null;
  /** What it is measured against: the solution of the tokens kept in the end, else of the best ones. */
  attractor: Attractor;
}

/** What a training is at one of its steps. */
export interface Moment extends Measures {
  step: number;
  point: Float64Array;
  /** One number a token. */
  attention: Float64Array;
  scores: number[][];
  kept: number[];
  loss: number;
  /** The least difference, over sequences, of the two largest attention scores. */
  scoreGap: number;
}

const SATURATED = 0.99;

export class Answers {
  /** The problem of a prompt or a matrix: what is drawn. */
  readonly problem: Problem;
  readonly runs: Run[];
  /** The solution for the tokens asked for, in the norm of every training, each once. */
  readonly predicted: Attractor[];
  /** All locally optimal ones of a prompt, in the norm of the first training. */
  readonly attractors: Attractor[];

  constructor(readonly state: State) {
    const trained = problemOf(state);
    this.problem = this.linear(trained);
    const { trainings, norm } = state;
    const norms = trainings.map((t) => norm ?? nameOf(core.normFor(t, t.parameterization ?? state.parameterization)));
    const paths = trainings.map((training, k) => this.path(trained, training, k));
    if (state.parameterization === "pv") this.problem = { ...this.problem, scores: this.scoresOf(paths[0], -1) };
    const selection = state.selection ?? core.optimalTokens(this.problem);
    const predicted = new Map<NormName, Attractor>();
    for (const name of norms) if (!predicted.has(name)) predicted.set(name, this.solved(selection, name));
    this.predicted = [...predicted.values()];
    this.attractors = this.problem.parameterization === "p" && state.parameterization === "p" && !state.projection
      ? core.locallyOptimal(this.problem, normNamed(norms[0])) : [];
    this.runs = paths.map((path, k) => {
      const run = { ...path, norm: norms[k], attractor: predicted.get(norms[k])! };
      const { attention, kept } = this.moment(run, -1);
      if (saturated(this.problem, attention) && kept.join() !== selection.join()) {
        const reached = this.attractors.find((one) => k === 0 && one.selection.join() === kept.join())
          ?? this.solved(kept, norms[k]);
        if (reached.solution.status === "solved") run.attractor = reached;
      }
      return run;
    });
  }

  /** A training at the row of its record, counted from the end where negative. */
  moment(run: Run, row: number): Moment {
    const at = row < 0 ? run.steps.length + row : row;
    const point = run.points.subarray(at * run.size, (at + 1) * run.size);
    const scores = run.heads ? this.scoresOf(run, at) : this.problem.scores;
    const gradient = new core.Gradient(this.problem);
    const attention = gradient.attention(point).slice();
    const kept: number[] = [];
    let place = 0;
    let loss = 0;
    let scoreGap = Infinity;
    const logits = gradient.scores(point);
    scores.forEach((row, i) => {
      let [top, output, first, second] = [0, 0, -Infinity, -Infinity];
      row.forEach((score, t) => {
        output += attention[place] * score;
        const logit = logits[place++];
        if (logit > first) [top, first, second] = [t, logit, first];
        else second = Math.max(second, logit);
      });
      kept[i] = top;
      scoreGap = Math.min(scoreGap, first - second);
      loss += lossOf(this.state.loss, output) / scores.length;
    });
    const measured = run.attractor.solution.status === "solved" ? core.measure(point, run.attractor)
      : { marginRatio: NaN, correlation: NaN, norm: core.normOf(run.attractor.solution.norm, point) };
    return { ...measured, step: run.steps[at], point, attention, scores, kept, loss, scoreGap };
  }

  /** The vector that scores the tokens of a sequence, as seen. */
  direction(point: ArrayLike<number>, i: number): [number, number] {
    const p = this.full(point, i);
    return this.state.projection ? this.onto(p) : [p[0], p[1]];
  }

  /** The same in all of its dimensions. */
  full(point: ArrayLike<number>, i: number): ArrayLike<number> {
    return core.direction(this.problem, point, i);
  }

  /** Where a token is seen. */
  place(key: readonly number[]): [number, number] {
    const { projection } = this.state;
    return projection ? this.onto(key.map((x, k) => x - projection.origin[k])) : [key[0], key[1]];
  }

  private onto(x: ArrayLike<number>): [number, number] {
    const [a, b] = this.state.projection!.axes.map((axis) => axis.reduce((sum, v, k) => sum + v * x[k], 0));
    return [a, b];
  }

  private linear(problem: Problem): Problem {
    const { parameterization: kind } = problem;
    return { ...problem, parameterization: kind === "KQ" ? "W" : kind === "pv" ? "p" : kind };
  }

  private path(trained: Problem, training: Training, k: number): Omit<Run, "norm" | "attractor"> {
    const { state } = this;
    const kind = training.parameterization ?? state.parameterization;
    const [d, e] = [state.keys[0][0].length, state.queries[0]?.length ?? 1];
    const given = state.paths?.[k];
    const product = kind === "W" && state.parameterization === "KQ";
    const start = product ? Array.from(productOf(Float64Array.from(state.start), d, e)) : state.start;
    const path = given
      ? { steps: Int32Array.from(given.steps), points: Float64Array.from(given.points), size: start.length }
      : core.train({ ...trained, parameterization: kind }, training, start, core.recordedSteps(state.steps));
    const { steps, points, size } = path;
    const end = points.subarray(points.length - size);
    const rows = (make: (row: Float64Array) => Float64Array): Float64Array => {
      const all = Array.from(steps, (_, r) => make(points.subarray(r * size, (r + 1) * size)));
      const out = new Float64Array(all.length * all[0].length);
      all.forEach((row, r) => out.set(row, r * row.length));
      return out;
    };
    if (kind === "KQ") return { training, steps, size: d * e, points: rows((row) => productOf(row, d, e)), end, heads: null };
    if (kind !== "pv") return { training, steps, size, points, end, heads: null };
    return { training, steps, size: d, points: rows((row) => row.subarray(0, d)), end, heads: rows((row) => row.subarray(d)) };
  }

  private scoresOf({ heads, steps }: Pick<Run, "heads" | "steps">, row: number): number[][] {
    const at = row < 0 ? steps.length + row : row;
    const d = heads!.length / steps.length;
    const v = heads!.subarray(at * d, (at + 1) * d);
    return this.state.keys.map((keys, i) =>
      keys.map((key) => this.state.labels![i] * key.reduce((sum, x, k) => sum + x * v[k], 0)));
  }

  private solved(selection: number[], name: NormName): Attractor {
    const given = this.state.solutions?.find((one) => one.norm === name && one.selection.join() === selection.join());
    const norm = normNamed(name);
    if (!given) return core.attractorOf(this.problem, norm, selection);
    const problem = core.constraints(this.problem, selection);
    const w = Float64Array.from(given.w ?? []);
    const value = given.value ?? Infinity;
    return {
      selection, problem, locallyOptimal: given.status === "solved", globallyOptimal: false,
      solution: {
        status: given.status as Attractor["solution"]["status"], norm, w, value, lower: given.lower ?? 0,
        gap: 1 - (given.lower ?? 0) / value, multipliers: new Float64Array(problem.count), support: [],
      },
    };
  }
}

/** W = K Q^T, from K and Q by rows; of K and Q both have as many columns as a token has numbers. */
function productOf(row: Float64Array, d: number, e: number): Float64Array {
  const columns = row.length / (d + e);
  const out = new Float64Array(d * e);
  for (let a = 0; a < d; a++) {
    for (let b = 0; b < e; b++) {
      for (let k = 0; k < columns; k++) out[a * e + b] += row[a * columns + k] * row[d * columns + b * columns + k];
    }
  }
  return out;
}

function lossOf(loss: State["loss"], output: number): number {
  if (loss === "linear") return -output;
  if (loss === "exponential") return Math.exp(-output);
  return output > 0 ? Math.log1p(Math.exp(-output)) : Math.log1p(Math.exp(output)) - output;
}

/** Whether every sequence has one token with nearly all of the attention. */
export function saturated(problem: Problem, attention: ArrayLike<number>): boolean {
  let place = 0;
  return problem.keys.every((keys) => {
    const first = place;
    place += keys.length;
    return keys.some((_, t) => attention[first + t] > SATURATED);
  });
}

export function normNamed(name: NormName): Norm {
  if (name === "spectral" || name === "nuclear") return { kind: name };
  if (name === "frobenius") return { kind: "lp", p: 2 };
  return { kind: "lp", p: name === "l_inf" ? Infinity : Number(name.slice(2)) };
}

export function nameOf(norm: Norm): NormName {
  if (norm.kind !== "lp") return norm.kind;
  return norm.p === 2 ? "frobenius" : norm.p === Infinity ? "l_inf" : `l_${norm.p}`;
}
