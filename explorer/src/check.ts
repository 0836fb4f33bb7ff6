// What comes from an address, a file or a notebook is data. What it may be says the schema that
// Python reads, too (`attractor/explorer/state.py`); how fields fit each other is written in both.

import schema from "../../src/attractor/explorer/schema.json";
import { dot, isPrompt } from "./mathematics";
import type { KernelReport, State } from "./state";

/** The name of another rule, the fields of a mapping ("?" where one may be missing), or what a value is and how large. */
type Rule = string | [kind: string, ...of: unknown[]] | { [field: string]: Rule };

/** Says in words why something from outside is not shown. */
export class Refused extends Error {}

export const reason = (error: unknown): string => (error instanceof Refused ? error.message : "it is damaged");

const RULES = schema as unknown as Record<string, Rule>;
/** Letters that nobody sees or that turn text around, and halves of letters (`attractor/support/visible.py`). */
const UNSEEN = /[\0-\x08\v-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff\ufffe\uffff]/u;
const WORK = 1e6; // steps of all trainings times tokens, where the page trains
const ROUNDING = 1e-6;

function need(met: unknown, place: string, why: string): void {
  if (!met) throw new Refused(`${place} ${why}`);
}

export function checkedReport(given: unknown): KernelReport {
  check(given, "report", "KernelReport");
  return given as KernelReport;
}

export function checkedState(given: unknown): State {
  check(given, "state", "State");
  fit(given as State);
  return given as State;
}

function check(value: unknown, place: string, rule: Rule): void {
  const must = (met: unknown, be: string): void => need(met, place, `has to be ${be}`);
  if (typeof rule === "string") return check(value, place, RULES[rule]);
  if (!Array.isArray(rule)) {
    must(typeof value === "object" && value && !Array.isArray(value), "a mapping");
    const own = value as Record<string, unknown>;
    for (const key of Object.keys(own)) {
      need(Object.hasOwn(rule, key) || Object.hasOwn(rule, `${key}?`), `${place}.${key.slice(0, 40)}`, "is not known");
    }
    for (const field in rule) {
      const key = field.replace("?", "");
      const found = own[key];
      if (found !== undefined) check(found, `${place}.${key}`, rule[field]);
      else need(key !== field, `${place}.${key}`, "is missing");
    }
    return;
  }
  const [kind, ...known] = rule;
  const [least, most, of] = known as [number, number, Rule];
  if (kind === "one of") must(known.includes(value), known.join(" or "));
  else if (kind === "list") {
    must(Array.isArray(value) && value.length >= least && value.length <= most, `a list of ${least} to ${most}`);
    const list = value as unknown[];
    // Of numbers there may be a million; what is a hole in the list is none.
    const wrong = of === "number" ? list.findIndex((x) => typeof x !== "number" || !(Math.abs(x) <= 1e100)) : 0;
    for (let k = wrong; k < list.length && k >= 0; k++) check(list[k], `${place}[${k}]`, of);
  } else if (kind === "text") {
    must(typeof value === "string" && [...value].length <= least && !UNSEEN.test(value), `a text of at most ${least} letters`);
  } else if (kind === "like") must(typeof value === "string" && new RegExp(String(least)).test(value), "one that a page has");
  else {
    const [x, above] = [value as number, kind === "above"];
    must((kind === "whole" ? Number.isInteger : Number.isFinite)(x) && (above ? x > least : x >= least) && x <= most,
      `a ${kind === "whole" ? "whole " : ""}number ${above ? "above" : "from"} ${least} to ${most}`);
  }
}

/** Whether fields fit each other. */
function fit({ keys, scores, labels, queries, parameterization: kind, start, trainings, selection, steps, solutions = [], paths, projection }: State): void {
  const ask = (met: unknown, place: string, why = "does not fit the tokens"): void => need(met, `state.${place}`, why);
  const long = (list: unknown[] | undefined, wanted: number, place: string): void => ask(list?.length === wanted, place, `has to be a list of ${wanted}`);
  const kept = (list: number[], place: string): void => {
    long(list, keys.length, place);
    list.forEach((t, i) => ask(keys[i][t], `${place}[${i}]`));
  };
  const [n, d, tokens] = [keys.length, keys[0][0].length, keys.flat().length];
  ask(tokens <= 240, "keys", "has to be at most 240 tokens");
  keys.forEach((row, i) => row.forEach((key, t) => long(key, d, `keys[${i}][${t}]`)));
  const shape = (rows?: unknown[][]): string => String(rows?.map((row) => row.length));
  if (kind === "pv") long(labels, n, "labels");
  else ask(shape(scores) === shape(keys), "scores");
  const prompt = isPrompt(kind);
  const e = prompt ? 1 : queries[0]?.length;
  ask(prompt || (queries.length >= n && queries.every((query) => query.length === e)), "queries");
  ask(projection || (d === 2 && (prompt || e === 2)), "projection", "is missing");
  const sizes = { "p": d, "W": d * e, "KQ": d * (d + e), "pv": 2 * d };
  long(start, sizes[kind], "start");
  trainings.forEach(({ parameterization: own = kind }, k) => ask(own === kind || (kind === "KQ" && own === "W"), `trainings[${k}].parameterization`));
  if (selection) kept(selection, "selection");
  solutions.forEach((one, k) => {
    kept(one.selection, `solutions[${k}].selection`);
    if (one.w) long(one.w, d * e, `solutions[${k}].w`);
  });
  if (projection) {
    const { origin, axes } = projection;
    long(origin, d, "projection.origin");
    axes.forEach((axis, k) => long(axis, d, `projection.axes[${k}]`));
    axes.forEach((one, a) => axes.forEach((other, b) =>
      ask(Math.abs(dot(one, other) - Number(a === b)) <= ROUNDING, "projection.axes", "has to be orthonormal")));
  }
  if (paths) long(paths, trainings.length, "paths");
  else {
    ask(!projection, "paths", "is missing");
    const most = Math.floor(WORK / tokens / trainings.length);
    ask(steps <= most, "steps", `has to be at most ${most} for ${tokens} tokens, as the page trains while something is dragged`);
  }
  paths?.forEach((path, k) => {
    ask(path.steps.every((step, r) => !r || step > path.steps[r - 1]), `paths[${k}].steps`, "has to increase");
    long(path.points, path.steps.length * sizes[trainings[k].parameterization ?? kind], `paths[${k}].points`);
  });
}
