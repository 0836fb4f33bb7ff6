// Bundles the explorer into the one file that ships with the package; with --core, its mathematics for tests too.

import { build } from "esbuild";

const options = { bundle: true, format: "esm", target: "es2022", logLevel: "warning" };
const out = process.argv.find((a) => a.startsWith("--out="))?.slice(6) ?? "../src/attractor/explorer/static/explorer.js";
await build({ ...options, entryPoints: ["src/widget.ts"], minify: true, outfile: out });
if (process.argv.includes("--core")) {
  await build({ ...options, entryPoints: ["src/core/index.ts"], outfile: "build/core.mjs" });
}
