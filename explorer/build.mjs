// Bundles the explorer into the one file that ships with the package, and its scenes as data for Python;
// with --core, its mathematics for tests too.

import { build } from "esbuild";
import { writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";

const options = { bundle: true, format: "esm", target: "es2022", logLevel: "warning" };
const out = process.argv.find((a) => a.startsWith("--out="))?.slice(6) ?? "../src/attractor/explorer/static/explorer.js";
await build({ ...options, entryPoints: ["src/widget.ts"], minify: true, outfile: out });
await build({ ...options, entryPoints: ["src/scenes.ts"], outfile: "build/scenes.mjs" });
const { SCENES } = await import(pathToFileURL("build/scenes.mjs"));
writeFileSync(join(dirname(out), "scenes.json"), `${JSON.stringify(SCENES, null, 1)}\n`);
if (process.argv.includes("--core")) {
  await build({ ...options, entryPoints: ["src/core/index.ts"], outfile: "build/core.mjs" });
}
