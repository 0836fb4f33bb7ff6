// What follows from a state: solutions, paths, and what both say at a step.

import type { Attractor, Measures } from "./core/analysis";
import type { Norm } from "./core/norms";
import type { Constraints, Problem } from "./core/problem";
import type { Path } from "./core/train";
import { core } from "./mathematics";
import type { NormName, State, Training } from "./state";
import { problemOf } from "./state";

/** A training; its points are prompts or matrices: W where K and Q are trained, p beside v. */
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
  /** The step at which it came to stand, and why; -1 where it did not. */
  ended: number;
  reason: string;
  /** What it is measured against: the solution of the tokens kept in the end, else of the best ones. */
  attractor: Attractor;
}

/** What a training is at one of its steps. */
export interface Moment extends Measures {
  row: number;
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
const OWN = 64; // entries of a matrix that the page solves for itself
const CHOICES = 64; // of tied tokens

export class Answers {
  /** The problem of a prompt or a matrix: what is drawn. */
  readonly problem: Problem;
  readonly runs: Run[];
  /** The solution for the tokens asked for, in the norm of every training, each once. */
  readonly predicted: Attractor[];
  /** All locally optimal ones of a prompt, in the norm of the first training. */
  readonly attractors: Attractor[];
  private readonly gradient: InstanceType<typeof core.Gradient>;

  constructor(readonly state: State) {
    const trained = problemOf(state);
    const { trainings, norm, parameterization: kind } = state;
    const linear: Problem = { ...trained, parameterization: kind === "KQ" ? "W" : kind === "pv" ? "p" : kind };
    const norms = trainings.map((t) => norm ?? core.formatNorm(core.normFor(t, t.parameterization ?? kind)));
    const paths = trainings.map((training, k) => this.path(trained, training, k));
    this.problem = kind === "pv" ? { ...linear, scores: this.scoresOf(paths[0], -1) } : linear;
    this.gradient = new core.Gradient(this.problem);
    const choices = this.choices(state.selection ?? core.optimalTokens(this.problem));
    const predicted = new Map<NormName, Attractor>();
    for (const name of norms) {
      if (!predicted.has(name)) predicted.set(name, choices.map((one) => this.solved(one, name)).reduce(least));
    }
    this.predicted = [...predicted.values()];
    this.attractors = this.hasBasins ? core.locallyOptimal(this.problem, core.parseNorm(norms[0])!) : [];
    this.runs = paths.map((path, k) => {
      const run = { ...path, norm: norms[k], attractor: predicted.get(norms[k])! };
      const { attention, kept } = this.moment(run, -1);
      if (saturated(this.problem, attention) && kept.join() !== run.attractor.selection.join()) {
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
    const attention = this.gradient.attention(point).slice();
    const logits = this.gradient.scores(point);
    const kept: number[] = [];
    let [place, loss, scoreGap] = [0, 0, Infinity];
    for (const row of scores) {
      let [top, output, first, second] = [0, 0, -Infinity, -Infinity];
      row.forEach((score, t) => {
        output += attention[place] * score;
        const logit = logits[place++];
        if (logit > first) [top, first, second] = [t, logit, first];
        else second = Math.max(second, logit);
      });
      kept.push(top);
      scoreGap = Math.min(scoreGap, first - second);
      loss += lossOf(this.state.loss, output) / scores.length;
    }
    const { solution } = run.attractor;
    const measured = solution.status === "solved" ? core.measure(point, run.attractor)
      : { marginRatio: NaN, correlation: NaN, norm: this.size(solution.norm, point) };
    return { ...measured, row: at, step: run.steps[at], point, attention, scores, kept, loss, scoreGap };
  }

  /** Whether every start of a prompt in the plane can be followed. */
  get hasBasins(): boolean {
    const { parameterization, projection, keys } = this.state;
    return parameterization === "p" && !projection && keys[0][0].length === 2;
  }

  /** Whether there is no direction that training could end in. */
  get nothingAttracts(): boolean {
    return this.predicted[0].solution.status === "infeasible" && !this.attractors.length;
  }

  /** Whether theory says which norm a training minimizes, or the state does. */
  known(k: number): boolean {
    const { norm, trainings, parameterization } = this.state;
    return !!norm || core.isPredicted(trainings[k], trainings[k].parameterization ?? parameterization);
  }

  /** The vector that scores the tokens of a sequence, as seen; the point begins at an entry of an array. */
  direction(points: ArrayLike<number>, i: number, first = 0): [number, number] {
    if (this.state.projection) return this.onto(this.full(Array.from(points).slice(first), i));
    if (this.problem.parameterization === "p") return [points[first], points[first + 1]];
    const z = this.state.queries[i];
    const seen: [number, number] = [0, 0];
    for (let a = 0; a < 2; a++) for (let b = 0; b < z.length; b++) seen[a] += points[first + a * z.length + b] * z[b];
    return seen;
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

  /** v at a row of the record, as seen. */
  head({ heads, steps }: Run, row: number): [number, number] {
    const d = heads!.length / steps.length;
    const v = heads!.subarray(row * d, (row + 1) * d);
    return this.state.projection ? this.onto(v) : [v[0], v[1]];
  }

  private onto(x: ArrayLike<number>): [number, number] {
    const [a, b] = this.state.projection!.axes.map((axis) => axis.reduce((sum, v, k) => sum + v * x[k], 0));
    return [a, b];
  }

  private size(norm: Norm, point: Float64Array): number {
    return core.normOf(norm, point, core.shapeOf(this.problem)[1]);
  }

  private path(trained: Problem, training: Training, k: number): Omit<Run, "norm" | "attractor"> {
    const { start, steps: horizon, paths } = this.state;
    const { steps, parameters, points, size, ended, reason } = paths?.[k] ? given(trained, paths[k], start.length)
      : core.train(trained, training, start, core.recordedSteps(horizon));
    const width = parameters.length / steps.length;
    const rest = trained.parameterization === "pv" ? width - size : 0;
    const heads = rest ? new Float64Array(rest * steps.length) : null;
    if (heads) steps.forEach((_, r) => heads.set(parameters.subarray(r * width + size, (r + 1) * width), r * rest));
    return { training, steps, size, points, end: parameters.subarray(-width), heads, ended, reason };
  }

  private scoresOf({ heads, steps }: Pick<Run, "heads" | "steps">, row: number): number[][] {
    const at = row < 0 ? steps.length + row : row;
    const d = heads!.length / steps.length;
    return core.headScores(problemOf(this.state), heads!.subarray(at * d, (at + 1) * d));
  }

  /** All selections of best tokens, where some are tied. */
  private choices(selection: number[]): number[][] {
    let found: number[][] = [[]];
    selection.forEach((t, i) => {
      const offered = t >= 0 ? [t] : core.bestTokens(this.problem.scores[i]);
      found = found.flatMap((one) => offered.map((s) => [...one, s])).slice(0, CHOICES);
    });
    return found;
  }

  /** The solution for a selection; tokens that score as much as the kept one put no constraint on it. */
  private solved(selection: number[], name: NormName): Attractor {
    const { state, problem } = this;
    const norm = core.parseNorm(name)!;
    const known = state.solutions?.find((one) => one.norm === name && one.selection.join() === selection.join());
    if (known && core.sizeOf(problem) > OWN) return fromPython(known, core.constraints(problem, selection), norm);
    const supports = state.parameterization === "pv"
      ? core.headSupport(problemOf(state), selection).supports : undefined;
    return core.attractorOf(problem, norm, selection, supports, (i, t) =>
      core.ties(problem.scores[i][t], problem.scores[i][selection[i]]));
  }
}

const least = (a: Attractor, b: Attractor): Attractor => (b.solution.value < a.solution.value ? b : a);

function given(problem: Problem, path: NonNullable<State["paths"]>[number], width: number): Omit<Path, "parameterSize"> {
  const size = core.sizeOf(problem);
  const parameters = Float64Array.from(path.points);
  const points = new Float64Array(size * path.steps.length);
  path.steps.forEach((_, r) => points.set(core.effective(problem, parameters.subarray(r * width, (r + 1) * width)), r * size));
  return { steps: Int32Array.from(path.steps), parameters, points, size, ended: -1, reason: "" };
}

function fromPython(known: NonNullable<State["solutions"]>[number], problem: Constraints, norm: Norm): Attractor {
  const { selection, status, w = [], value = Infinity, lower = 0 } = known;
  return {
    selection, problem, locallyOptimal: false, globallyOptimal: false,
    solution: { status: status as Attractor["solution"]["status"], norm, w: Float64Array.from(w), value, lower,
      gap: 1 - lower / value, feasible: status === "solved", multipliers: new Float64Array(problem.count), support: [] },
  };
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
