// A token file as the library reads it: arrays of NumPy in an archive that is not compressed.

import type { State } from "../state";
import { optimizerText } from "./python";

type Entry = [name: string, bytes: Uint8Array];

/** What `attractor solve FILE` and `attractor check FILE` take. */
export function tokenFile(state: State): Uint8Array<ArrayBuffer> {
  const { keys, scores, labels, queries, start, selection, steps, parameterization, trainings: [training] } = state;
  const [n, T, d] = [keys.length, Math.max(...keys.map((row) => row.length)), keys[0][0].length];
  const padded = (row: number[][]): number[][] => [...row, ...Array.from({ length: T - row.length }, () => new Array<number>(d).fill(0))];
  const entries: Entry[] = [["keys", floats(keys.map(padded).flat(2), [n, T, d])]];
  const ragged = keys.some((row) => row.length < T);
  if (ragged) entries.push(["mask", bytes("|b1", [n, T], Uint8Array.from(keys.flatMap((row) => Array.from({ length: T }, (_, t) => Number(t < row.length)))))]);
  const matrix = parameterization === "W" || parameterization === "KQ";
  if (matrix) entries.push(["queries", floats(queries.flat(), [n, queries[0].length])]);
  const e = matrix ? queries[0].length : 1;
  if (parameterization === "pv") {
    entries.push(["labels", floats(labels!, [n])], ["initial_head", floats(start.slice(d), [d])], ["initial", floats(start.slice(0, d), [d])]);
  } else {
    entries.push(["scores", floats(scores!.flatMap((row) => [...row, ...new Array<number>(T - row.length).fill(0)]), [n, T])]);
    if (parameterization === "p") entries.push(["initial", floats(start, [d])]);
    if (parameterization === "W") entries.push(["initial", floats(start, [d, e])]);
    if (parameterization === "KQ") {
      const columns = start.length / (d + e);
      entries.push(["initial_K", floats(start.slice(0, d * columns), [d, columns])], ["initial_Q", floats(start.slice(d * columns), [e, columns])]);
    }
  }
  if (selection) entries.push(["selection", integers(selection, [n])]);
  entries.push(["steps", integers([steps], [])]);
  const name = { p: "p", W: "W", KQ: "KQ", pv: "v, p" }[parameterization];
  entries.push(["parameterization", text(name)], ["optimizer", text(optimizerText(training))]);
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
  let offset = 0;
  for (const [name, content] of entries) {
    const title = new TextEncoder().encode(name);
    const sum = crc32(content);
    const common = [20, 0, 0, 0x210000, sum, content.length, content.length, title.length, 0]; // 1980-01-01
    const widths = [2, 2, 2, 4, 4, 4, 4, 2, 2];
    const local = record(0x04034b50, common, widths);
    directory.push(record(0x02014b50, [20, ...common, 0, 0, 0, 0, offset], [2, ...widths, 2, 2, 2, 4, 4]), title);
    parts.push(local, title, content);
    offset += local.length + title.length + content.length;
  }
  const size = directory.reduce((a, part) => a + part.length, 0);
  const end = record(0x06054b50, [0, 0, entries.length, entries.length, size, offset, 0], [2, 2, 2, 2, 4, 4, 2]);
  return joined([...parts, ...directory, end]);
}

function record(mark: number, values: number[], widths: number[]): Uint8Array {
  const out = new DataView(new ArrayBuffer(4 + widths.reduce((a, b) => a + b, 0)));
  out.setUint32(0, mark, true);
  let at = 4;
  values.forEach((value, k) => {
    if (widths[k] === 2) out.setUint16(at, value, true);
    else out.setUint32(at, value, true);
    at += widths[k];
  });
  return new Uint8Array(out.buffer);
}

function joined(parts: Uint8Array[]): Uint8Array<ArrayBuffer> {
  const out = new Uint8Array(parts.reduce((a, part) => a + part.length, 0));
  let at = 0;
  for (const part of parts) { out.set(part, at); at += part.length; }
  return out;
}

function crc32(data: Uint8Array): number {
  let sum = ~0;
  for (const byte of data) {
    sum ^= byte;
    for (let k = 0; k < 8; k++) sum = (sum >>> 1) ^ (sum & 1 ? 0xedb88320 : 0);
  }
  return ~sum >>> 0;
}
