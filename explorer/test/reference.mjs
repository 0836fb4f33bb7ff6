// Answers of the library: all of them where `dump_reference.py` was run, else the part kept with the source.

import { existsSync, readFileSync } from "node:fs";
import { gunzipSync } from "node:zlib";

export function reference(name) {
  const whole = new URL(`../build/reference/${name}.json`, import.meta.url);
  if (existsSync(whole) && !process.env.SMALL) return JSON.parse(readFileSync(whole));
  return JSON.parse(gunzipSync(readFileSync(new URL(`reference/${name}.json.gz`, import.meta.url))));
}
