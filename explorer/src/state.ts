// What a page shows, as plain JSON: the contract between Python, notebooks, addresses and pages.
// `attractor/explorer/schema.json` says what each field may be, and both sides check it; version 1 may only grow.

import type { Problem } from "./core/problem";

/** What is trained: a prompt, the matrix, its factors W = K Q^T, or a prompt with the head v. */
export type Parameterization = "p" | "W" | "KQ" | "pv";

export type LossName = "logistic" | "exponential" | "linear";

export type OptimizerName =
  | "gradient_descent"
  | "normalized_gradient_descent"
  | "mirror_descent"
  | "sign_descent"
  | "greedy_coordinate_descent"
  | "spectral_descent";

/** One training, from the start that all share. Names and settings are the library's. */
export interface Training {
  optimizer: OptimizerName;
  learning_rate: number;
  /** The exponent of mirror descent. */
  p?: number;
  weight_decay?: number;
  /** Ordinary floating point, in which gradients of saturated attention vanish. */
  plain?: boolean;
  /** "W" where the state trains its factors "KQ", to compare the two: it starts at K Q^T. */
  parameterization?: Parameterization;
}

/** Names of the library: "frobenius", "l_1.5", "l_inf", "spectral", "nuclear". */
export type NormName = string;

/** A margin solution that the library found, for problems that the page does not solve. */
export interface GivenSolution {
  norm: NormName;
  selection: number[];
  status: "solved" | "infeasible" | "not converged" | "empty";
  /** Row-major; absent where there is none. */
  w?: number[];
  value?: number;
  lower?: number;
}

/** A training that the library ran, for problems that the page does not train. */
export interface GivenPath {
  steps: number[];
  /** One row of parameters, in the order of `start`, a recorded step. */
  points: number[];
}

/** Where tokens have more than two coordinates: what is seen is (x - origin) in the span of two axes.
 * Keys, queries, start, solutions and paths keep all of theirs. */
export interface Projection {
  kind: "solutions" | "principal";
  origin: number[];
  /** Two orthonormal directions. */
  axes: [number[], number[]];
  /** The part of the squared distances between tokens that is not seen. */
  hidden: number;
  /** How the axes were chosen, in words. */
  words: string;
}

export interface State {
  version: 1;
  /** Names this state: the page writes another with every change that it saves, and reports name what they answer. */
  id?: string;
  /** What this shows, and the point that it makes. */
  title?: string;
  point?: string;
  /** The paper that makes it. */
  source?: string;
  /** keys[i][t]: token t of sequence i. */
  keys: number[][][];
  /** scores[i][t] = y_i h(x_it): what attention gains by keeping a token. With "pv": absent. */
  scores?: number[][];
  /** With "pv": y_i; the score of a token is y_i <v, x_it>. */
  labels?: number[];
  queries: number[][];
  parameterization: Parameterization;
  /** p; W by rows; K then Q by rows; p then v. */
  start: number[];
  loss: LossName;
  /** One or two. The first decides the norm where `norm` does not say it. */
  trainings: Training[];
  norm?: NormName;
  /** The token of each sequence that the margin problem keeps, where it is not the best. */
  selection?: number[];
  steps: number;
  solutions?: GivenSolution[];
  /** One for each of the trainings. */
  paths?: GivenPath[];
  projection?: Projection;
  theme: "auto" | "light" | "dark";
}

/** What Python found for the same state, where there is a kernel. */
export interface KernelReport {
  /** The `id` of the state that this answers, or "": the page ignores answers to another. */
  state: string;
  status?: string;
  value?: number;
  gap?: number;
  /** The last point of each training. */
  ends?: number[][];
  milliseconds?: number;
  message?: string;
}

/** Where the state lives: an anywidget model in notebooks, a plain object on a page. */
export interface Model {
  /** What others wrote, which is to be checked. */
  get(name: "state" | "kernel"): unknown;
  set(name: "state", value: State): void;
  save_changes(): void;
  on(event: string, listener: () => void): void;
  off?(event: string, listener: () => void): void;
}

export const problemOf = (state: State): Problem => ({ ...state, scores: state.scores ?? [] });
