// Bundles the explorer into the one file that ships with the package, and its scenes as data for Python;
// with --core, its mathematics and its checks for tests too.

import { build } from "esbuild";
import { writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { minify } from "terser";

const options = { bundle: true, format: "esm", target: "es2022", logLevel: "warning" };

const plugins = [{
  name: "text",
  setup({ onResolve, onLoad }) {
    // `core:function` exports one function that holds all mathematics, so that its text is what a worker runs.
    onResolve({ filter: /^core:function$/ }, ({ path }) => ({ path, namespace: "core" }));
    onLoad({ filter: /./, namespace: "core" }, async () => {
      const { outputFiles: [file] } = await build({
        ...options, entryPoints: ["src/mathematics/inside.ts"], write: false,
      });
      const inside = file.text.replace(/export (\{[^}]*\});\s*$/, (_, names) => `return ${names.replace(/(\w+) as (\w+)/g, "$2: $1")};`);
      return { contents: `export function makeCore() {\n${inside}\n}` };
    });
    onLoad({ filter: /\.css$/ }, async ({ path }) => {
      const { outputFiles: [file] } = await build({ entryPoints: [path], minify: true, write: false, target: "es2022" });
      return { contents: file.text, loader: "text" };
    });
  },
}];

const out = process.argv.find((a) => a.startsWith("--out="))?.slice(6) ?? "../src/attractor/explorer/static/explorer.js";
// A classic script, as browsers run no other from a folder; notebooks load it with a line that exports what it leaves.
const { outputFiles: [bundle] } = await build({
  ...options, entryPoints: ["src/widget.ts"], format: "iife", write: false, minifySyntax: true, plugins,
});
// Names are reused in every function, which compresses better than esbuild's own.
const { code } = await minify(bundle.text, { ecma: 2020 });
writeFileSync(out, code);
await build({ ...options, entryPoints: ["src/scenes.ts"], outfile: "build/scenes.mjs" });
const { SCENES } = await import(pathToFileURL("build/scenes.mjs"));
writeFileSync(join(dirname(out), "scenes.json"), `${JSON.stringify(SCENES, null, 1)}\n`);
if (process.argv.includes("--core")) {
  await build({ ...options, entryPoints: ["src/core/index.ts"], outfile: "build/core.mjs" });
  await build({ ...options, entryPoints: ["src/check.ts"], outfile: "build/check.mjs", plugins });
}
