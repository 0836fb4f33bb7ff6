// The lines of Python that compute what the page shows.

import type { NormName, State, Training } from "../state";

/** How a training is spelled on the command line and in token files. */
export function optimizerText(training: Training): string {
  return `${training.optimizer}:${settings(training).map(([name, value]) => `${name}=${value}`).join(",")}`;
}

function settings({ learning_rate, p, weight_decay }: Training): [string, number][] {
  const found: [string, number | undefined][] = [["learning_rate", learning_rate], ["p", p], ["weight_decay", weight_decay]];
  return found.filter((one): one is [string, number] => one[1] !== undefined);
}

/** Selection and norms are those whose solutions the page shows. */
export function pythonLines(state: State, selection: readonly number[], norms: readonly NormName[], tied: boolean): string {
  const { keys, scores, labels, queries, start, parameterization, trainings, loss, steps } = state;
  const [n, d] = [keys.length, keys[0][0].length];
  const T = Math.max(...keys.map((row) => row.length));
  const ragged = keys.some((row) => row.length < T);
  const fill = <X>(row: X[], x: X): X[] => [...row, ...Array.from({ length: T - row.length }, () => x)];
  const prompt = parameterization === "p" || parameterization === "pv";
  const lines = ["import numpy as np", "", "import attractor as at", ""];
  lines.push(`keys = np.array(${array(keys.map((row) => fill(row, new Array<number>(d).fill(0))))})`);
  lines.push(prompt ? `queries = np.ones((${n}, 1))` : `queries = np.array(${array(queries)})`);
  const mask = ragged ? ", mask=mask" : "";
  if (ragged) lines.push(`mask = np.arange(${T}) < np.array(${array(keys.map((row) => [row.length]))})`);
  if (parameterization === "pv") {
    lines.push(`tokens = at.Tokens(keys, queries, labels=${array(labels!)}${mask})`, `head = at.LinearHead(${array(start.slice(d))})`);
  } else {
    lines.push(`scores = np.array(${array(scores!.map((row) => fill(row, 0)))})`,
      `tokens = at.Tokens(keys, queries, labels=np.ones(${n}), values=scores[..., None]${mask})`, "head = at.LinearHead([1.0])");
  }
  if (!tied) lines.push(`selection = at.Selection.from_index(tokens, ${array([...selection])})`);
  if (tied) lines.push("selection = at.optimal_tokens(tokens, head)  # some share the best score");
  else if (parameterization === "pv") {
    lines.push("label = at.solve(at.label_problem(tokens, selection), at.Frobenius())",
      "problem = at.relaxed_problem(tokens, selection, at.label_support(label))");
  } else lines.push("problem = at.MarginProblem.from_selection(tokens, selection)");
  for (const norm of norms) {
    lines.push(tied ? `print(at.solve_several(tokens, selection, ${geometry(norm)}))` : `print(at.solve(problem, ${geometry(norm)}))`);
  }
  trainings.forEach((training, k) => {
    const kind = training.parameterization ?? parameterization;
    const initial = kind === parameterization ? initialOf(state) : "np.array(K) @ np.array(Q).T";
    if (kind !== parameterization) {
      const { K, Q } = factors(state);
      lines.push(`K, Q = ${array(K)}, ${array(Q)}`);
    }
    const options = [`steps=${steps}`, `initial=${initial}`, `parameterization="${kind === "pv" ? "(v, p)" : kind}"`];
    if (loss !== "logistic") options.push(`loss="${loss}"`);
    if (training.plain) options.push('kernel="plain"');
    const values = settings(training).map(([name, value], j) => (j ? `${name}=${value}` : String(value)));
    lines.push("", `run${k + 1} = at.train(`, `    tokens, head, at.${training.optimizer}(${values.join(", ")}),`,
      ...options.map((option) => `    ${option},`), ")", `print(run${k + 1})`);
  });
  return `${lines.join("\n")}\n`;
}

function initialOf(state: State): string {
  const { parameterization, start, keys, queries } = state;
  const d = keys[0][0].length;
  if (parameterization === "p") return array(start);
  if (parameterization === "pv") return array(start.slice(0, d));
  if (parameterization === "W") return array(rows(start, queries[0].length));
  const { K, Q } = factors(state);
  return `{"K": np.array(${array(K)}), "Q": np.array(${array(Q)})}`;
}

function factors({ start, keys, queries }: State): { K: number[][]; Q: number[][] } {
  const [d, e] = [keys[0][0].length, queries[0].length];
  const columns = start.length / (d + e);
  return { K: rows(start.slice(0, d * columns), columns), Q: rows(start.slice(d * columns), columns) };
}

const rows = (flat: number[], columns: number): number[][] =>
  Array.from({ length: flat.length / columns }, (_, r) => flat.slice(r * columns, (r + 1) * columns));

function geometry(norm: NormName): string {
  if (norm === "frobenius" || norm === "l_2") return "at.Frobenius()";
  if (norm.startsWith("l_")) return `at.Lp(${norm === "l_inf" ? "np.inf" : norm.slice(2)})`;
  return norm === "spectral" ? "at.Spectral()" : "at.Nuclear()";
}

type Nested = number | Nested[];

const array = (value: Nested): string => (Array.isArray(value) ? `[${value.map(array).join(", ")}]` : String(value));
