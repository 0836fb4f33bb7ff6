// Scenes: each makes one point of a paper, which test/scenes.json tells by numbers.

import type { State, Training } from "./state";

export interface Scene {
  name: string;
  state: State;
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
      trainings: [{ ...ngd, learning_rate: 0.05 }, { ...ngd, learning_rate: 0.05, parameterization: "W" }],
      steps: 500,
    },
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
  },
  {
    name: "rounding",
    state: {
      ...base,
      title: "Rounding",
      point: "Past a gap of 36 between attention scores an ordinary gradient rounds to zero and training stalls; the exact one goes on.",
      source: PROMPTS,
      keys: [[[1, 0.6], [0, 0]], [[0.8, -0.9], [0, 0]]],
      scores: [[1, 0], [1, 0]],
      start: [-0.4, -0.5],
      trainings: [ngd, { ...ngd, plain: true }],
    },
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
  },
];

export const findScene = (name: string): Scene | undefined => SCENES.find((scene) => scene.name === name);
