// Scenes: each makes one point of a paper, and says how a test sees it.

import type { State } from "./state";

export interface Scene {
  name: string;
  state: State;
}

const base = {
  version: 1 as const,
  queries: [] as number[][],
  parameterization: "p" as const,
  loss: "logistic" as const,
  trainings: [{ optimizer: "normalized_gradient_descent" as const, learning_rate: 0.1 }],
  steps: 2000,
  theme: "auto" as const,
};

export const SCENES: Scene[] = [
  {
    name: "two-basins",
    state: {
      ...base,
      title: "Two basins",
      point: "Which tokens attention keeps depends on where training starts.",
      source: "Max-Margin Token Selection, 2023",
      keys: [[[0.9, 1.0], [-1.1, 0.4], [0.2, -0.9], [0, 0]], [[1.3, 0.2], [-0.4, -1.2], [-0.8, 0.9]]],
      scores: [[1, 0.8, 0.7, 0], [1, 0.75, 0.6]],
      start: [-0.5, -0.1],
    },
  },
];

export const findScene = (name: string): Scene | undefined => SCENES.find((scene) => scene.name === name);
