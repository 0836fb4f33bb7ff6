// A state in the address of a page: the scene it began with, and only what differs from it.

import { checkedState, Refused } from "./check";
import type { State } from "./state";

const MARK = "#explorer:";

type Plain = unknown;

/** `#explorer:two-basins&start=0.1,2&trainings.0.learning_rate=0.2` */
export function addressOf(state: State, scene: string, base: State): string {
  const found: string[] = [];
  const hidden = (s: State): Plain => ({ ...s, id: undefined, theme: undefined, title: undefined, point: undefined, source: undefined });
  differences("", hidden(base), hidden(state), found);
  return MARK + [encodeURIComponent(scene), ...found].join("&");
}

/**
 * The scene and the state that an address tells, or null where it is none of an explorer.
 *
 * @throws Refused where it cannot be shown; another error where it is damaged.
 */
export function readAddress(hash: string, scenes: (name: string) => State | undefined): { scene: string; state: State } | null {
  if (!hash.startsWith(MARK)) return null;
  const [name, ...changes] = hash.slice(MARK.length).split("&");
  const scene = decodeURIComponent(name);
  const base = scenes(scene);
  if (!base) throw new Refused("there is no such scene");
  const state = structuredClone(base);
  for (const change of changes) {
    const [path, value = ""] = change.split("=", 2).map(decodeURIComponent);
    put(state, path.split("."), value === "" ? undefined : parse(value));
  }
  return { scene, state: checkedState(state) };
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

/** Changes what is there, adds a field, or an item at the end of a list: nothing else has a place. */
function put(state: object, path: string[], value: Plain): void {
  let at = state as Record<string, Plain>;
  path.forEach((key, k) => {
    const last = k === path.length - 1;
    const list = Array.isArray(at);
    const known = Object.hasOwn(at, key) && !(list && key === "length");
    const added = last && (list ? key === String(at.length) : !(key in at));
    if (!known && !added) throw new Refused(`it changes ${path.join(".").slice(0, 40)}, which is not there`);
    if (!last) at = Object(at[key]) as Record<string, Plain>;
    else if (value !== undefined) at[key] = value;
    else delete at[key];
  });
}
