// A token file as the library reads it: arrays of NumPy in an archive that is not compressed.

import { isPrompt } from "../mathematics";
import type { State } from "../state";
import { factorsOf, named, paddedArrays, settings } from "./arrays";

type Entry = [name: string, bytes: Uint8Array];

/** What `attractor solve FILE` and `attractor check FILE` take. */
export function tokenFile(state: State): Uint8Array<ArrayBuffer> {
  const { labels, queries, start, selection, steps, parameterization: kind, trainings: [training] } = state;
  const { keys, scores, mask, shape: [n, T, d] } = paddedArrays(state);
  const entries: Entry[] = [["keys", floats(keys.flat(2), [n, T, d])]];
  const add = (name: string, values: number[], shape: number[]): void => void entries.push([name, floats(values, shape)]);
  if (mask) entries.push(["mask", bytes("|b1", [n, T], Uint8Array.from(mask.flat()))]);
  const e = isPrompt(kind) ? 0 : queries[0].length;
  if (e) add("queries", queries.slice(0, n).flat(), [n, e]);
  if (kind === "pv") {
    add("labels", labels!, [n]);
    add("initial_head", start.slice(d), [d]);
  } else add("scores", scores.flat(), [n, T]);
  if (kind === "KQ") {
    for (const [name, factor] of Object.entries(factorsOf(state))) add(`initial_${name}`, factor.flat(), [factor.length, factor[0].length]);
  } else add("initial", start.slice(0, d * (e || 1)), e ? [d, e] : [d]);
  if (selection) entries.push(["selection", integers(selection, [n])]);
  entries.push(["steps", integers([steps], [])], ["parameterization", text(kind === "pv" ? "v, p" : kind)],
    ["optimizer", text(`${named(training.optimizer)}:${settings(training).map(([name, value]) => `${name}=${value}`).join(",")}`)]);
  return archive(entries.map(([entry, content]) => [`${entry}.npy`, content]));
}

const floats = (values: number[], shape: number[]): Uint8Array => bytes("<f8", shape, new Uint8Array(Float64Array.from(values).buffer));
const integers = (values: number[], shape: number[]): Uint8Array =>
  bytes("<i8", shape, new Uint8Array(BigInt64Array.from(values.map(BigInt)).buffer));
const text = (words: string): Uint8Array =>
  bytes(`<U${words.length}`, [], new Uint8Array(Uint32Array.from([...words].map((c) => c.codePointAt(0)!)).buffer));

/** An array of NumPy, format 1.0. */
function bytes(descr: string, shape: number[], data: Uint8Array): Uint8Array {
  const dict = `{'descr': '${descr}', 'fortran_order': False, 'shape': (${shape.map((k) => `${k},`).join(" ")}), }`;
  const length = 64 * Math.ceil((dict.length + 11) / 64) - 10;
  const head = `${dict.padEnd(length - 1)}\n`;
  const out = new Uint8Array(10 + length + data.length);
  out.set([0x93, ...[..."NUMPY"].map((c) => c.charCodeAt(0)), 1, 0, length & 255, length >> 8]);
  out.set(new TextEncoder().encode(head), 10);
  out.set(data, 10 + length);
  return out;
}

/** A zip archive whose entries are stored as they are. */
function archive(entries: Entry[]): Uint8Array<ArrayBuffer> {
  const parts: Uint8Array[] = [];
  const directory: Uint8Array[] = [];
  const length = (list: Uint8Array[]): number => list.reduce((sum, part) => sum + part.length, 0);
  for (const [name, content] of entries) {
    const title = new TextEncoder().encode(name);
    const offset = length(parts);
    const common: Field[] = [[20], [0], [0], [0x210000, 4], [crc32(content), 4], [content.length, 4], [content.length, 4], [title.length], [0]]; // 1980-01-01
    parts.push(record(0x04034b50, common), title, content);
    directory.push(record(0x02014b50, [[20], ...common, [0], [0], [0], [0, 4], [offset, 4]]), title);
  }
  const count = entries.length;
  const all = [...parts, ...directory, record(0x06054b50, [[0], [0], [count], [count], [length(directory), 4], [length(parts), 4], [0]])];
  const out = new Uint8Array(length(all));
  let at = 0;
  for (const part of all) {
    out.set(part, at);
    at += part.length;
  }
  return out;
}

/** A number, and its bytes: two, or as many as said. */
type Field = [value: number, width?: number];

const record = (mark: number, fields: Field[]): Uint8Array => Uint8Array.from(([[mark, 4], ...fields] as Field[]).flatMap(([value, width = 2]) =>
  Array.from({ length: width }, (_, k) => value >>> (8 * k))));

function crc32(data: Uint8Array): number {
  let sum = ~0;
  for (const byte of data) {
    sum ^= byte;
    for (let k = 0; k < 8; k++) sum = (sum >>> 1) ^ (sum & 1 ? 0xedb88320 : 0);
  }
  return ~sum >>> 0;
}
