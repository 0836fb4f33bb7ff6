// The lines of Python that compute what the page shows.

import { sameSelection, type Answers } from "../answers";
import { parseNorm } from "../mathematics";
import type { NormName } from "../state";
import { tied } from "../words";
import { factorsOf, literal, named, paddedArrays, rows, settings } from "./arrays";

/** Solutions are those that the page shows: of the tokens that are kept, in the norm of every training. */
export function pythonLines({ state, prompt, problem, runs }: Answers): string {
  const { labels, queries, start, parameterization, trainings, loss, steps } = state;
  const { keys, scores, mask, shape: [n, T, d] } = paddedArrays(state);
  const head = parameterization === "pv";
  const lines = [
    "import numpy as np", "", "import attractor as at", "", `keys = np.array(${literal(keys)})`,
    `queries = ${prompt ? `np.ones((${n}, 1))` : `np.array(${literal(queries.slice(0, n))})`}`,
  ];
  if (mask) lines.push(`mask = np.arange(${T}) < np.array(${literal(mask.map((row) => [row.reduce((a, b) => a + b)]))})`);
  const tokens = (given: string): string => `tokens = at.Tokens(keys, queries, labels=${given}${mask ? ", mask=mask" : ""})`;
  if (head) lines.push(tokens(literal(labels!)), `head = at.LinearHead(${literal(start.slice(d))})`);
  else lines.push(`scores = np.array(${literal(scores)})`, tokens(`np.ones(${n}), values=scores[..., None]`), "head = at.LinearHead([1.0])");
  const ties = tied(problem.scores);
  if (ties) lines.push("selection = at.optimal_tokens(tokens, head)  # some share the best score");
  let last: number[] = [];
  const solved = new Set<string>();
  for (const { norm, attractor: { selection } } of runs) {
    if (!ties && !sameSelection(selection, last)) {
      lines.push(`selection = at.Selection.from_index(tokens, ${literal(selection)})`, ...(head ? [
        "label = at.solve(at.label_problem(tokens, selection), at.Frobenius())",
        "problem = at.relaxed_problem(tokens, selection, at.label_support(label))",
      ] : ["problem = at.MarginProblem.from_selection(tokens, selection)"]));
      last = selection;
      solved.clear();
    }
    if (!solved.has(norm)) lines.push(`print(at.solve${ties ? "_several(tokens, selection" : "(problem"}, ${geometry(norm)}))`);
    solved.add(norm);
  }
  trainings.forEach((training, k) => {
    const kind = training.parameterization ?? parameterization;
    let initial = literal(kind === "W" ? rows(start, queries[0].length) : start.slice(0, d));
    if (parameterization === "KQ") {
      const [K, Q] = Object.values(factorsOf(state)).map(literal);
      initial = `{"K": np.array(${K}), "Q": np.array(${Q})}`;
      if (kind === "W") {
        initial = "np.array(K) @ np.array(Q).T";
        lines.push(`K, Q = ${K}, ${Q}`);
      }
    }
    const options = [`steps=${literal(steps)}`, `initial=${initial}`, `parameterization=${literal(kind === "pv" ? "(v, p)" : kind)}`];
    if (loss !== "logistic") options.push(`loss=${literal(loss)}`);
    if (training.plain) options.push('kernel="plain"');
    const values = settings(training).map(([name, value], j) => (j ? `${name}=${value}` : value));
    lines.push("", `run${k + 1} = at.train(`, `    tokens, head, at.${named(training.optimizer)}(${values.join(", ")}),`,
      ...options.map((option) => `    ${option},`), ")", `print(run${k + 1})`);
  });
  return `${lines.join("\n")}\n`;
}

function geometry(norm: NormName): string {
  const { p, schatten } = parseNorm(norm)!;
  if (schatten) return p === 1 ? "at.Nuclear()" : "at.Spectral()";
  return p === 2 ? "at.Frobenius()" : `at.Lp(${p === Infinity ? "np.inf" : literal(p)})`;
}
