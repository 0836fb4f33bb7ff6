// What a page of fuzzed states is asked: it takes one as a link, a file or a notebook would, and says what came of it.

const ran = [];
globalThis.canary = () => ran.push("canary");
for (const name of ["alert", "prompt", "confirm"]) globalThis[name] = () => ran.push(name);
const KNOWN = ["DIV", "H2", "H3", "P", "B", "SPAN", "BUTTON", "SELECT", "OPTION", "INPUT", "LABEL", "DETAILS", "SUMMARY", "FIGURE",
  "FIGCAPTION", "SECTION", "HEADER", "CANVAS", "OUTPUT", "PRE", "TABLE", "THEAD", "TBODY", "TR", "TD", "TH", "STYLE",
  "svg", "g", "path", "circle", "rect", "text", "tspan", "clipPath"];
const downloads = [];
const objectUrl = URL.createObjectURL;
URL.createObjectURL = (blob) => (blob.type === "text/javascript" ? objectUrl.call(URL, blob) : (downloads.push(blob), "blob:nothing"));
HTMLAnchorElement.prototype.click = function () { downloads.push(this.download); };

if (!location.search) globalThis.Worker = class { postMessage() {} terminate() {} };
let pictures = 0;

const drawn = () => new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve)));
const until = (event, act) => new Promise((resolve) => {
  addEventListener(event, resolve, { once: true });
  setTimeout(resolve, 5000);
  act();
});

/** Elements and attributes that no explorer has, and what a script has left. */
function strange(host) {
  const found = [];
  for (const one of host.shadowRoot?.querySelectorAll("*") ?? []) {
    if (!KNOWN.includes(one.tagName)) found.push(one.tagName);
    if (one.tagName === "STYLE" && one.textContent.includes("url(")) found.push("style");
    for (const { name, value } of one.attributes) {
      if (/^on|^src|^href|^action|^form/i.test(name) || /javascript:|url\(https?:/i.test(value)) found.push(`${name}=${value}`.slice(0, 80));
    }
  }
  for (const object of [{}, [], () => 0]) if (object.polluted !== undefined) found.push("prototype");
  return found;
}

const button = (host, words) => [...host.shadowRoot.querySelectorAll("button")].find((one) => one.textContent === words);

/** Everything that can be saved of what is shown. */
function saved(host) {
  downloads.length = 0;
  button(host, "Python lines").click();
  const lines = host.shadowRoot.querySelector("pre").textContent;
  button(host, "Token file, .npz").click();
  if (pictures++ % 20 === 0) button(host, "Picture, SVG").click(); // which takes long
  button(host, "Close").click();
  const names = downloads.filter((one) => typeof one === "string");
  const wrong = /^tokens.npz(,attractor.svg)?$/.test(names) ? [] : [`saved as ${names}`];
  return { lines, wrong };
}

const models = (state, kernel) => {
  const listeners = {};
  const model = { state, kernel };
  return {
    get: (name) => model[name],
    set: (name, value) => { model[name] = value; },
    save_changes: () => undefined,
    on: (event, act) => (listeners[event] = act),
    off: () => undefined,
    send: (name, value) => {
      model[name] = value;
      listeners[`change:${name}`]?.();
    },
  };
};

let now;

/** Takes a state; the milliseconds until it was drawn. */
async function give(kind, text) {
  ran.length = 0;
  const el = document.createElement("div");
  let host = document.querySelector(".attractor-explorer");
  const shown = host.explorer;
  let parsed;
  try { parsed = JSON.parse(text); } catch { /* it is cut */ }
  const fine = structuredClone(shown.state);
  if (kind !== "link") document.body.append(el);
  const begun = performance.now();
  if (kind === "link") {
    if (location.hash.slice(1) !== text) {
      history.replaceState(null, "", location.pathname);
      await until("hashchange", () => { location.hash = text; });
    }
  } else if (kind === "file") {
    el.dataset.attractorExplorer = "";
    const data = el.appendChild(document.createElement("script"));
    data.type = "application/json";
    data.textContent = text;
    const code = document.createElement("script");
    code.textContent = document.getElementById("code").textContent;
    el.append(code);
  } else {
    const first = kind === "notebook" && text.length % 2 ? parsed : fine;
    const model = models(first);
    attractorExplorer.render({ model, el });
    if (first === fine) model.send(kind === "answer" ? "kernel" : "state", parsed);
  }
  if (kind !== "link") host = el.querySelector(".attractor-explorer");
  await drawn();
  now = { kind, el, host };
  return performance.now() - begun;
}

/** What came of the last one. */
async function looked() {
  const { kind, el, host } = now;
  await new Promise((resolve) => setTimeout(resolve, 5)); // time for what was to run
  const root = host.shadowRoot;
  const refused = root?.querySelector(".refused:not([hidden])")?.textContent ?? "";
  const kernel = root?.querySelector(".kernel")?.textContent ?? "";
  const why = kind === "answer" ? kernel : host.explorer ? refused : host.textContent;
  const is = kind === "answer" ? !kernel.includes("cannot be read") : !why && !!host.explorer;
  const found = { shown: is, why, lines: "", state: "", strange: [] };
  if (is && host.explorer) {
    found.state = JSON.stringify(host.explorer.state);
    const { lines, wrong } = saved(host);
    Object.assign(found, { lines, strange: wrong });
  }
  found.strange.push(...strange(host));
  if (kind !== "link") {
    host.explorer?.destroy();
    el.remove();
  }
  return { ...found, ran: [...ran] };
}
