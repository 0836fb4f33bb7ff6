// Numbers, names and sentences as a reader wants them.

import { saturated, type Answers, type Moment } from "./answers";
import type { Attractor } from "./core/analysis";
import { core } from "./mathematics";
import type { LossName, NormName, OptimizerName, Parameterization } from "./state";

export const OPTIMIZERS: [OptimizerName, string][] = [
  ["normalized_gradient_descent", "normalized gradient descent"],
  ["gradient_descent", "gradient descent"],
  ["mirror_descent", "mirror descent"],
  ["sign_descent", "sign descent"],
  ["greedy_coordinate_descent", "coordinate descent"],
  ["spectral_descent", "spectral descent"],
];

export const LOSSES: LossName[] = ["logistic", "exponential", "linear"];

export const TRAINED: [Parameterization, string][] = [
  ["p", "prompt p"], ["W", "matrix W"], ["KQ", "factors K, Q"], ["pv", "prompt p and head v"],
];

export const NORMS: NormName[] = ["frobenius", "l_1", "l_1.5", "l_3", "l_4", "l_inf", "spectral", "nuclear"];

export function normWords(name: NormName, prompt: boolean): string {
  if (name === "frobenius") return prompt ? "l₂" : "Frobenius";
  if (name === "l_inf") return "l∞";
  return name.startsWith("l_") ? `l${subscript(name.slice(2))}` : name;
}

export const subscript = (text: string): string => [...text].map((c) => "₀₁₂₃₄₅₆₇₈₉"[Number(c)] ?? c).join("");

/** A number in few letters; what is near one as its difference from one. */
export function number(x: number, short = false): string {
  if (!Number.isFinite(x)) return x > 0 ? "∞" : "–";
  const size = Math.abs(x);
  if (size === 0) return "0";
  if (size < (short ? 1e-2 : 1e-3) || size >= 1e5) return x.toExponential(1).replace("e+", "e");
  return String(Number(x.toPrecision(!short ? 4 : size < 1 ? 2 : 3)));
}

export const small = (x: number): string => (x === 0 ? "0" : x.toExponential(1));

/** "tokens 0 and 2", "token 3": counted from zero, as in Python. */
function tokens(kept: readonly number[]): string {
  if (kept.length === 1) return `token ${kept[0]}`;
  return `tokens ${kept.slice(0, -1).join(", ")} and ${kept[kept.length - 1]}`;
}

/** Whether no token scores more than the ones kept. */
export const best = (scores: number[][], kept: readonly number[]): boolean =>
  scores.every((row, i) => row[kept[i]] >= Math.max(...row));

/** Whether several tokens of a sequence share the best score. */
export const tied = (scores: number[][]): boolean =>
  scores.some((row) => core.bestTokens(row).length > 1);

/** What comes out, in a sentence or two. */
export function verdict(answers: Answers, ends: Moment[]): string {
  const { runs, predicted: [predicted], problem, state } = answers;
  const what = problem.parameterization === "p" ? "prompt" : "matrix";
  const parts: string[] = [];
  if (predicted.solution.status === "infeasible") {
    parts.push(state.selection ? `No ${what} keeps ${tokens(predicted.selection)}: the constraints contradict each other.`
      : `No ${what} keeps the best tokens: the constraints contradict each other.`);
  } else if (predicted.solution.status !== "solved") parts.push("The margin problem is not settled.");
  const settled = ends.every((end) => saturated(problem, end.attention));
  const both = settled && ends.length > 1 && ends[0].kept.join() === ends[1].kept.join();
  const margin = (end: Moment, k: number): string => {
    const { attractor: { solution, selection }, norm } = runs[k];
    const same = k === 0 && both && runs[1].norm === norm; // said once, with the second
    return solution.status === "solved" && selection.join() === end.kept.join()
      ? ratio(end.marginRatio) + (same ? "" : ` in ${normWords(norm, what === "prompt")}`) : "";
  };
  if (both) {
    const margins = ends.map(margin).filter(Boolean).join(" and ");
    parts.push(`Both keep ${tokens(ends[0].kept)}, ${best(ends[0].scores, ends[0].kept) ? "the best" : "not the best"}${margins && `; margin ratio ${margins}`}.`);
  } else ends.forEach((end, k) => {
    const who = runs.length > 1 ? ["The first training", "the second"][k] : "Training";
    if (!saturated(problem, end.attention)) {
      const sequence = problem.keys.length > 1 ? " in one of the sequences" : "";
      const size = normWords(runs[k].norm, what === "prompt");
      const verb = predicted.solution.status === "infeasible" ? "does not saturate" : "has not saturated";
      parts.push(`${runs.length > 1 ? who : "Attention"} ${verb}: after ${steps(end.step)} its largest weight${sequence} is ${leastShare(problem.keys, end.attention)}, at a norm of ${number(end.norm)} in ${size}.`);
      return;
    }
    const good = best(end.scores, end.kept) ? "the best" : "not the best";
    const kept = `${who} keeps ${tokens(end.kept)}, ${good}`;
    parts.push(`${kept}${margin(end, k) && `; margin ratio ${margin(end, k)}`}.`);
  });
  runs.forEach(({ ended, reason }, k) => {
    if (ended < 0) return;
    const who = runs.length > 1 ? ["The first", "The second"][k] : "It";
    const gap = `, at a gap of ${number(ends[k].scoreGap, true)} between attention scores`;
    const why = { stationary: `${runs[k].training.plain ? gap : ""}: its gradient is zero`, "below rounding": ": no digit changes any more" }[reason] ?? "";
    parts.push(reason === "diverged" ? `${who} diverged at step ${ended}.` : `${who} came to stand at step ${ended.toLocaleString("en")}${why}.`);
  });
  if (tied(problem.scores)) parts.push("Tokens that share the best score put no constraint on each other.");
  return parts.join(" ").replace(/\. the second/g, "; the second");
}

function leastShare(keys: number[][][], attention: ArrayLike<number>): string {
  let place = 0;
  const shares = keys.map((row) => {
    let top = 0;
    row.forEach(() => { top = Math.max(top, attention[place++]); });
    return top;
  });
  return `${(100 * Math.min(...shares)).toFixed(0)} %`;
}

export const steps = (n: number): string => `${n.toLocaleString("en")} steps`;

export function ratio(x: number): string {
  if (!Number.isFinite(x)) return "–";
  return x > 0.9995 && x < 1 ? `1 − ${(1 - x).toExponential(1)}` : x.toFixed(4);
}

/** The multipliers that combine constraints into a contradiction: sequence, token kept and token left. */
export function contradiction({ solution, problem, selection }: Attractor): string {
  const largest = Math.max(...solution.multipliers);
  const total = solution.multipliers.reduce((a, b) => a + b, 0);
  const parts: string[] = [];
  solution.multipliers.forEach((m, j) => {
    if (!(m > 1e-9 * largest)) return;
    const i = problem.sequence[j];
    const x = (t: number): string => `x${subscript(`${i}${i > 9 || t > 9 ? "," : ""}${t}`)}`;
    parts.push(`${(m / total).toFixed(2)} (${x(selection[i])} − ${x(problem.token[j])})`);
  });
  return `${parts.join(" + ")} = 0`;
}
