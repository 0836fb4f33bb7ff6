// Scenes: each makes one point.

import type { State } from "./state";

const base = {
  version: 1 as const,
  queries: [[1, 0], [0, 1], [0.7, 0.7]],
  parameterization: "p" as const,
  start: [0.3, -0.2],
  loss: "logistic" as const,
  trainings: [{ optimizer: "normalized_gradient_descent" as const, learning_rate: 0.1 }],
  steps: 2000,
  theme: "auto" as const,
};

export const SCENES: Record<string, State> = {
  "two basins": {
    ...base,
    keys: [[[0.9, 1.0], [-1.1, 0.4], [0.2, -0.9], [0, 0]], [[1.3, 0.2], [-0.4, -1.2], [-0.8, 0.9]]],
    scores: [[1, 0.8, 0.7, 0], [1, 0.75, 0.6]],
    start: [-0.5, -0.1],
  },
  "trapped": {
    ...base,
    keys: [[[1, 0], [0, 0]], [[-2, 3], [0, 0]]],
    scores: [[1, 0], [1, 0]],
    start: [5, 0],
  },
  "one matrix, three queries": {
    ...base,
    parameterization: "W",
    keys: [
      [[1.1, 0.6], [-0.9, 0.2], [0.1, -1.0]],
      [[-0.6, 1.2], [0.8, -0.5], [-1.0, -0.6]],
      [[1.2, -0.4], [-0.5, 1.1], [-0.7, -0.8]],
    ],
    scores: [[1, 0.5, 0.4], [1, 0.5, 0.4], [1, 0.5, 0.4]],
    queries: [[0.9, 0.2], [-0.3, 0.9], [0.5, -0.8]],
    start: [0, 0, 0, 0],
  },
};
