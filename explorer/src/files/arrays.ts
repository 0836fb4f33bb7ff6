// A state as arrays: what token files and the lines of Python share.

import type { State, Training } from "../state";

export interface PaddedArrays {
  /** Sequences, the most tokens of one, and their dimension. */
  shape: [n: number, T: number, d: number];
  keys: number[][][];
  /** Empty where the head is trained. */
  scores: number[][];
  /** One for every token, and zero for padding; null where there is none. */
  mask: number[][] | null;
}

/** Sequences, filled up with zeros to one length. */
export function paddedArrays({ keys, scores = [] }: State): PaddedArrays {
  const [T, d] = [Math.max(...keys.map((row) => row.length)), keys[0][0].length];
  const fill = <X>(row: X[], x: X): X[] => Array.from({ length: T }, (_, t) => row[t] ?? x);
  return {
    shape: [keys.length, T, d],
    keys: keys.map((row) => fill(row, new Array<number>(d).fill(0))),
    scores: scores.map((row) => fill(row, 0)),
    mask: keys.some((row) => row.length < T) ? keys.map((row) => fill(row.map(() => 1), 0)) : null,
  };
}

export const rows = (flat: number[], columns: number): number[][] =>
  Array.from({ length: flat.length / columns }, (_, r) => flat.slice(r * columns, (r + 1) * columns));

/** The factors K and Q of a start. */
export function factorsOf({ start, keys, queries }: State): { "K": number[][]; "Q": number[][] } {
  const d = keys[0][0].length;
  const columns = start.length / (d + queries[0].length);
  return { "K": rows(start.slice(0, d * columns), columns), "Q": rows(start.slice(d * columns), columns) };
}

/** The settings of an optimizer, by the names of the library, as Python writes their values. */
export const settings = ({ learning_rate, p, weight_decay }: Training): [string, string][] =>
  Object.entries({ "learning_rate": learning_rate, "p": p, "weight_decay": weight_decay })
    .flatMap(([name, value]) => (value === undefined ? [] : [[name, literal(value)]]));

export type Literal = number | string | readonly Literal[];

/** A value as Python writes it: a finite number, a text in quotes, or a list. What is anything else is no value. */
export function literal(value: Literal): string {
  if (Array.isArray(value)) return `[${value.map(literal).join(", ")}]`;
  if (typeof value !== "string" && !Number.isFinite(value)) throw new TypeError("no literal of Python");
  return JSON.stringify(value);
}

/** A name of the library; a text of any other kind is none. */
export function named(name: string): string {
  if (!/^\w+$/.test(name)) throw new TypeError("no name of Python");
  return name;
}
