// What follows from a state: solutions, paths, and what both say at a step.

import type { Attractor, Measures } from "./core/analysis";
import type { Vector } from "./core/linear";
import type { Problem } from "./core/problem";
import type { Path } from "./core/train";
import {
  attractorFrom, attractorOf, bestTokens, direction, dot, formatNorm, gradientOf, headScores, headSupport, isPredicted,
  isPrompt, locallyOptimal, lossOf, measure, normFor, optimalTokens, parseNorm, pathOf, product, queriesOf,
  recordedSteps, sizeOf, ties, train,
} from "./mathematics";
import type { NormName, State, Training } from "./state";
import { problemOf } from "./state";

export type Point = [x: number, y: number];

/** A training; its points are prompts or matrices: W where K and Q are trained, p beside v. */
export interface Run extends Path {
  training: Training;
  norm: NormName;
  /** What it is measured against: the solution of the tokens kept in the end, else of the best ones. */
  attractor: Attractor;
  /** Whether theory says which norm it minimizes, or the state does. */
  known: boolean;
  /** v at a row of the record, where it is trained too. */
  head?(row: number): Vector;
}

/** What a training is at one of its steps. */
export interface Moment extends Measures {
  row: number;
  step: number;
  point: Vector;
  /** One number a token. */
  attention: Vector;
  scores: number[][];
  kept: number[];
  /** The least, over sequences, of the largest attention, and whether it is nearly all. */
  share: number;
  saturated: boolean;
  loss: number;
  /** The least difference, over sequences, of the two largest attention scores. */
  scoreGap: number;
}

export interface Answers {
  state: State;
  /** The problem of a prompt or a matrix: what is drawn. */
  problem: Problem;
  /** Whether that is a prompt, so that one vector scores all tokens. */
  prompt: boolean;
  /** Those with a vector of their own: of a prompt the first alone. */
  sequences: number[];
  runs: Run[];
  /** Every run at its end. */
  ends: Moment[];
  /** The solution for the tokens asked for, in the norm of every training, each once. */
  predicted: Attractor[];
  /** All locally optimal ones of a prompt, in the norm of the first training. */
  attractors: Attractor[];
  /** Whether every start of a prompt in the plane can be followed. */
  hasBasins: boolean;
  /** Whether there is no direction that training could end in. */
  nothingAttracts: boolean;
  /** A training at the row of its record. */
  moment(run: Run, row: number): Moment;
  /** The vector that scores the tokens of a sequence; the point begins at an entry of an array. */
  direction(points: ArrayLike<number>, i: number, first?: number): Vector;
  /** The same, as it is seen. */
  arrow(points: ArrayLike<number>, i: number, first?: number): Point;
  /** A vector in the plane that is seen. */
  seen(x: ArrayLike<number>): Point;
  /** Where a token is seen. */
  place(key: readonly number[]): Point;
}

const SATURATED = 0.99;
const OWN = 4; // entries of a matrix that the page solves for itself: l_inf alone has 2^d corners
const CHOICES = 64; // of tied tokens

export const isSolved = ({ solution }: Attractor): boolean => solution.status === "solved";
export const isInfeasible = ({ solution }: Attractor): boolean => solution.status === "infeasible";
export const sameSelection = (a: readonly number[], b: readonly number[]): boolean => a.join() === b.join();

export function answersTo(state: State): Answers {
  const trained = problemOf(state);
  const { trainings, parameterization: kind, projection, keys, paths: given } = state;
  const d = keys[0][0].length;
  const prompt = isPrompt(kind);

  const paths = trainings.map((training, k) => {
    const own = training.parameterization ?? kind;
    const path = given ? pathOf(trained, Int32Array.from(given[k].steps), Float64Array.from(given[k].points))
      : train(trained, training, state.start, recordedSteps(state.steps));
    return {
      ...path, training,
      norm: state.norm ?? formatNorm(normFor(training, own)),
      known: !!state.norm || isPredicted(training, own),
      head: kind === "pv" ? (row: number) => path.parameters.subarray(2 * d * row + d, 2 * d * (row + 1)) : undefined,
    };
  });
  const scoresOf = ({ head }: Pick<Run, "head">, row: number): number[][] => (head ? headScores(trained, head(row)) : trained.scores);
  const problem: Problem = {
    ...trained, parameterization: prompt ? "p" : "W", scores: scoresOf(paths[0], paths[0].steps.length - 1),
  };
  const gradient = gradientOf(problem);
  const queries = queriesOf(problem);

  /** The solution for a selection; tokens that score as much as the kept one put no constraint on it. */
  const solved = (selection: number[], name: NormName): Attractor => {
    const norm = parseNorm(name)!;
    const level = (i: number, t: number): boolean => ties(problem.scores[i][t], problem.scores[i][selection[i]]);
    if (sizeOf(problem) <= OWN) {
      const supports = kind === "pv" ? headSupport(trained, selection).support : undefined;
      return attractorOf(problem, norm, selection, supports, level);
    }
    const known = state.solutions?.find((one) => one.norm === name && sameSelection(one.selection, selection));
    return attractorFrom(problem, norm, selection, level, known);
  };

  // All selections of best tokens, where some are tied.
  const asked = state.selection ?? optimalTokens(problem);
  const choices = product(asked.map((t, i) => (t < 0 ? bestTokens(problem.scores[i]) : [t])), CHOICES);
  const least = (a: Attractor, b: Attractor): Attractor => (b.solution.value < a.solution.value ? b : a);
  const best = new Map([...new Set(paths.map(({ norm }) => norm))].map((name) =>
    [name, choices.map((one) => solved(one, name)).reduce(least)]));
  const predicted = [...best.values()];
  const hasBasins = kind === "p" && !projection && d === 2;
  const attractors = hasBasins ? locallyOptimal(problem, parseNorm(paths[0].norm)!) : [];

  const moment = (run: Run, row: number): Moment => {
    const point = run.points.subarray(row * run.size, (row + 1) * run.size);
    const scores = scoresOf(run, row);
    const attention = gradient.attention(point).slice();
    const logits = gradient.scores(point);
    let [place, loss, scoreGap, share] = [0, 0, Infinity, 1];
    const kept = scores.map((own) => {
      let [top, output, first, second] = [0, 0, -Infinity, -Infinity];
      const from = place;
      own.forEach((score, t) => {
        output += attention[place] * score;
        const logit = logits[place++];
        if (logit > first) [top, first, second] = [t, logit, first];
        else second = Math.max(second, logit);
      });
      scoreGap = Math.min(scoreGap, first - second);
      share = Math.min(share, attention[from + top]);
      loss += lossOf(state.loss, output) / scores.length;
      return top;
    });
    return { ...measure(problem, point, run.attractor), row, step: run.steps[row], point, attention, scores, kept,
      share, saturated: share > SATURATED, loss, scoreGap };
  };

  const ends: Moment[] = [];
  const runs = paths.map((path, k): Run => {
    const run = { ...path, attractor: best.get(path.norm)! };
    const last = path.steps.length - 1;
    const { kept, saturated } = moment(run, last);
    if (saturated && !sameSelection(kept, run.attractor.selection)) {
      const reached = attractors.find((one) => k === 0 && sameSelection(one.selection, kept)) ?? solved(kept, path.norm);
      if (isSolved(reached)) run.attractor = reached;
    }
    ends.push(moment(run, last));
    return run;
  });

  const seen = (x: ArrayLike<number>): Point =>
    (projection ? projection.axes.map((axis) => dot(axis, x)) as Point : [x[0], x[1]]);
  const scorer = (points: ArrayLike<number>, i: number, first?: number): Vector => direction(d, queries[i], points, first);
  return {
    state, problem, prompt, runs, ends, predicted, attractors, hasBasins, moment, seen,
    sequences: prompt ? [0] : [...keys.keys()],
    nothingAttracts: isInfeasible(predicted[0]) && !attractors.length,
    direction: scorer,
    arrow: (points, i, first) => seen(scorer(points, i, first)),
    place: (key) => seen(projection ? key.map((x, k) => x - projection.origin[k]) : key),
  };
}
