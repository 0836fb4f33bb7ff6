// A state in the address of a page: the scene it began with, and only what differs from it.

import { answersTo } from "./answers";
import type { State } from "./state";
import { LOSSES, OPTIMIZERS } from "./words";

const MARK = "#explorer:";

type Plain = unknown;

/** `#explorer:two-basins&start=0.1,2&trainings.0.learning_rate=0.2` */
export function addressOf(state: State, scene: string, base: State): string {
  const found: string[] = [];
  const hidden = (s: State): Plain => ({ ...s, id: undefined, theme: undefined, title: undefined, point: undefined, source: undefined });
  differences("", hidden(base), hidden(state), found);
  return MARK + [encodeURIComponent(scene), ...found].join("&");
}

/** The scene and the state that an address tells, or null where it tells none. */
export function readAddress(hash: string, scenes: (name: string) => State | undefined): { scene: string; state: State } | null {
  if (!hash.startsWith(MARK)) return null;
  try {
    const [name, ...changes] = hash.slice(MARK.length).split("&");
    const scene = decodeURIComponent(name);
    const base = scenes(scene);
    if (!base) return null;
    const state = structuredClone(base);
    for (const change of changes) {
      const [path, value] = change.split("=", 2).map(decodeURIComponent);
      put(state, path.split("."), value === "" ? undefined : parse(value));
    }
    return isState(state) ? { scene, state } : null;
  } catch {
    return null; // an address that somebody has cut
  }
}

function differences(path: string, a: Plain, b: Plain, found: string[]): void {
  if (JSON.stringify(a) === JSON.stringify(b)) return;
  const numbers = Array.isArray(b) && b.length > 0 && b.every((x) => typeof x === "number");
  const both = typeof a === "object" && typeof b === "object" && a && b && Array.isArray(a) === Array.isArray(b);
  if (both && !numbers && !(Array.isArray(a) && a.length > (b as unknown[]).length)) {
    const [from, to] = [a, b] as Record<string, Plain>[];
    for (const key of new Set([...Object.keys(from), ...Object.keys(to)])) {
      differences(path ? `${path}.${key}` : key, from[key], to[key], found);
    }
    return;
  }
  const words = b === undefined ? "" : numbers ? `${(b as number[]).join(",")}${(b as number[]).length === 1 ? "," : ""}`
    : typeof b === "string" ? `'${b}` : JSON.stringify(b);
  found.push(`${path}=${encodeURIComponent(words).replace(/%2C/g, ",").replace(/%27/g, "'")}`);
}

function parse(words: string): Plain {
  if (words.startsWith("'")) return words.slice(1);
  if (/^[-+\d.e]+,/.test(words)) return words.split(",").filter((x) => x !== "").map(Number);
  return JSON.parse(words) as Plain;
}

function put(state: object, path: string[], value: Plain): void {
  let at = state as Record<string, Plain>;
  for (const key of path.slice(0, -1)) {
    if (!Object.hasOwn(at, key)) throw new RangeError(key);
    at = at[key] as Record<string, Plain>;
  }
  const last = path[path.length - 1];
  if (value === undefined) delete at[last];
  else at[last] = value;
}

/** Whether what came from outside can be shown: numbers where there have to be some, and an answer. */
function isState(state: State): boolean {
  const finite = (x: Plain): boolean => (Array.isArray(x) ? x.every(finite) : typeof x === "number" && Number.isFinite(x));
  const { keys, scores = [], queries, start, trainings, steps, loss, selection = [], labels = [] } = state;
  const d = keys[0][0].length;
  return keys.every((row) => row.every((key) => key.length === d)) && selection.every((t, i) => t in keys[i])
    && (state.parameterization !== "pv" || labels.length === keys.length) && Number.isInteger(steps) && finite([keys, scores, queries, start, trainings.map((t) => t.learning_rate)])
    && scores.every((row, i) => row.length === keys[i].length) && LOSSES.includes(loss)
    && trainings.every((t) => OPTIMIZERS.some(([name]) => name === t.optimizer)) && [1, 2].includes(trainings.length)
    && steps > 0 && steps <= 1e5 && answersTo(state).runs.every((run) => finite(Array.from(run.points)));
}
