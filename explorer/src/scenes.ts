// Scenes: each makes one point of a paper, and says by which numbers a test sees it.

import type { State, Training } from "./state";

/** What has to hold of `Explorer.readings()` for the point to be made. */
export interface Expectation {
  words: string;
  /** What differs from the scene. */
  change?: Partial<State>;
  /** "trainings.0.kept": members of the readings, one after another. */
  reading: string;
  is?: unknown;
  /** Of a number, or of the largest where it is several. */
  above?: number;
  below?: number;
}

export interface Scene {
  name: string;
  state: State;
  expectations: Expectation[];
}

const ngd: Training = { optimizer: "normalized_gradient_descent", learning_rate: 0.1 };
const PROMPTS = "Max-Margin Token Selection in Attention Mechanism, arXiv 2306.13596";
const MATRICES = "Transformers as Support Vector Machines, arXiv 2308.16898";
const MIRRORS = "Optimizing Attention with Mirror Descent, arXiv 2410.14581";

const base = {
  version: 1 as const,
  queries: [] as number[][],
  parameterization: "p" as const,
  loss: "logistic" as const,
  trainings: [ngd],
  steps: 2000,
  theme: "auto" as const,
};

export const SCENES: Scene[] = [
  {
    name: "two-basins",
    state: {
      ...base,
      title: "Two basins",
      point: "The start decides which tokens attention keeps: from here not the best ones. Drag the start over the border.",
      source: PROMPTS,
      keys: [[[0.9, 1.0], [-1.1, 0.4], [0.2, -0.9], [0, 0]], [[1.3, 0.2], [-0.4, -1.2], [-0.8, 0.9]]],
      scores: [[1, 0.8, 0.7, 0], [1, 0.75, 0.6]],
      start: [-1.1, 0.2],
    },
    expectations: [
      { words: "training keeps tokens that are not the best", reading: "trainings.0.kept", is: [1, 1] },
      { words: "with the margin of their own solution", reading: "trainings.0.marginRatio", above: 0.99 },
      { words: "from a start nearby it keeps the best", change: { start: [-0.5, -0.1] }, reading: "trainings.0.kept", is: [0, 0] },
      { words: "three directions are locally optimal", reading: "locallyOptimal.length", is: 3 },
    ],
  },
  {
    name: "trapped",
    state: {
      ...base,
      title: "Trapped for ever",
      point: "The second sequence keeps its worse token for ever: in this direction it is far ahead, and no support constraint holds it.",
      source: PROMPTS,
      keys: [[[1, 0], [0, 0]], [[-2, 2], [0, -1]]],
      scores: [[1, 0], [1, 0]],
      start: [5, 0],
    },
    expectations: [
      { words: "a worse token is kept", reading: "trainings.0.kept", is: [0, 1] },
      { words: "also after ten times as many steps", change: { steps: 20000 }, reading: "trainings.0.kept", is: [0, 1] },
      { words: "at the margin of its own solution", reading: "trainings.0.marginRatio", above: 0.999 },
      { words: "though the best tokens can be kept", reading: "predicted.0.status", is: "solved" },
      { words: "and are, from the middle", change: { start: [0, 0] }, reading: "trainings.0.kept", is: [0, 0] },
    ],
  },
  {
    name: "infeasible",
    state: {
      ...base,
      title: "No direction at all",
      point: "The best token lies between the others, so no prompt keeps it alone: attention does not saturate, and p stops at a finite point.",
      source: MATRICES,
      keys: [[[0.15, 0.1], [1.1, -0.5], [-0.9, -0.7], [-0.1, 1.2]]],
      scores: [[1, 0.1, 0, 0.05]],
      start: [3, -2],
      trainings: [{ optimizer: "gradient_descent", learning_rate: 1 }],
    },
    expectations: [
      { words: "the multipliers contradict", reading: "predicted.0.status", is: "infeasible" },
      { words: "no selection is locally optimal", reading: "locallyOptimal.length", is: 0 },
      { words: "attention stays spread", reading: "trainings.0.attention", below: 0.4 },
      { words: "the prompt is finite", reading: "trainings.0.norm", below: 0.5 },
      { words: "and the same from another start", change: { start: [0, 0.5] }, reading: "trainings.0.norm", below: 0.5 },
    ],
  },
  {
    name: "ties",
    state: {
      ...base,
      title: "Ties",
      point: "Two tokens share the best score, and the loss does not care which is kept: training looks for a margin over the third alone.",
      source: PROMPTS,
      keys: [[[1, 0.7], [1.1, -0.6], [-0.9, -0.2]]],
      scores: [[1, 1, 0]],
      start: [-0.6, 1.2],
    },
    expectations: [],
  },
  {
    name: "factors",
    state: {
      ...base,
      title: "(K, Q) against W",
      point: "From one start, W goes to the solution of least Frobenius norm, and its factors to that of least nuclear norm, of rank one.",
      source: MATRICES,
      parameterization: "KQ",
      keys: [[[-0.3, -0.6], [1.2, 1.2], [1.3, 0.2]], [[-1.1, 0.6], [1, 0.4], [0.3, 1]], [[1.4, -0.2], [-1.5, 0.8], [-1.4, 0.9]]],
      scores: [[1, 0.5, 0.3], [1, 0.5, 0.3], [1, 0.5, 0.3]],
      queries: [[-0.4, 0.4], [0.9, 1.1], [-0.9, -0.1]],
      start: [0.1, 0.05, -0.05, 0.1, 0.1, -0.05, 0.05, 0.1],
      trainings: [ngd, { ...ngd, parameterization: "W" }],
    },
    expectations: [
      { words: "the factors reach the nuclear margin", reading: "trainings.0.marginRatio", above: 0.995 },
      { words: "W reaches the Frobenius margin", reading: "trainings.1.marginRatio", above: 0.995 },
      { words: "the two norms differ", reading: "trainings.0.normName", is: "nuclear" },
      { words: "for W and its factors", reading: "trainings.1.normName", is: "frobenius" },
      { words: "seen from the factors, the Frobenius margin is missed", change: { norm: "frobenius" }, reading: "trainings.0.marginRatio", below: 0.85 },
    ],
  },
  {
    name: "l1-linf",
    state: {
      ...base,
      title: "l₁ against l∞",
      point: "The optimizer decides the norm: coordinate descent ends on an axis, sign descent on a diagonal, from one start on the same tokens.",
      source: MIRRORS,
      keys: [[[1, 0.8], [-1.4, 0.6], [-1.2, 0.4]], [[1.4, -1.2], [0.1, 1.1], [0.6, -0.8]]],
      scores: [[1, 0.5, 0.3], [1, 0.5, 0.3]],
      start: [-0.4, 0.3],
      trainings: [{ optimizer: "greedy_coordinate_descent", learning_rate: 0.1 }, { optimizer: "sign_descent", learning_rate: 0.1 }],
    },
    expectations: [
      { words: "coordinate descent has the l_1 margin", reading: "trainings.0.marginRatio", above: 0.99 },
      { words: "sign descent has the l_inf margin", reading: "trainings.1.marginRatio", above: 0.99 },
      { words: "and not the l_1 margin", change: { norm: "l_1" }, reading: "trainings.1.marginRatio", below: 0.8 },
      { words: "nor coordinate descent the l_inf one", change: { norm: "l_inf" }, reading: "trainings.0.marginRatio", below: 0.8 },
    ],
  },
  {
    name: "rounding",
    state: {
      ...base,
      title: "Rounding",
      point: "Past a gap of 36 between attention scores an ordinary gradient is zero or noise, and training stalls: the exact one goes on.",
      source: PROMPTS,
      keys: [[[-0.1, 1], [1, 0], [0, 0]]],
      scores: [[1, 0.9, 0.9]],
      start: [0, 0],
      trainings: [ngd, { ...ngd, plain: true }],
    },
    expectations: [
      { words: "the exact gradient goes on", reading: "trainings.0.scoreGap", above: 150 },
      { words: "the plain one stalls at a gap of 36", reading: "trainings.1.scoreGap", below: 40 },
      { words: "and not before", reading: "trainings.1.scoreGap", above: 30 },
    ],
  },
  {
    name: "joint",
    state: {
      ...base,
      title: "Prompt and head together",
      point: "The head v has no support at the third sequence, which p then need not separate by a margin: p goes to (1, 0), not to (1.25, 0.25).",
      source: PROMPTS,
      parameterization: "pv",
      keys: [[[0, 0], [1, 1]], [[0, 0], [1, -1]], [[0, 0], [0.5, 1.5]]],
      scores: undefined,
      labels: [1, -1, 1],
      start: [0, -1, -1, 0],
      selection: [1, 1, 1],
      trainings: [{ optimizer: "mirror_descent", p: 2, learning_rate: 0.1 }],
    },
    expectations: [
      { words: "the relaxed problem is solved by (1, 0)", reading: "predicted.0.value", above: 0.9999999, below: 1.0000001 },
      { words: "training goes there", reading: "trainings.0.correlation", above: 0.9999 },
      { words: "with all tokens kept", reading: "trainings.0.kept", is: [1, 1, 1] },
    ],
  },
];

export const findScene = (name: string): Scene | undefined => SCENES.find((scene) => scene.name === name);
