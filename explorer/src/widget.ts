// The module of the anywidget; pages use `mount`.

import { Explorer } from "./explorer";
import { SCENES } from "./scenes";
import type { Model, State } from "./state";

export function render({ model, el }: { model: Model; el: HTMLElement }): () => void {
  const host = document.createElement("div");
  host.className = "attractor-explorer";
  el.append(host);
  const explorer = new Explorer(host, model);
  Object.assign(host, { explorer });
  return () => explorer.destroy();
}

/** A model that lives on the page alone. */
export function pageModel(state: State): Model {
  const listeners = new Set<() => void>();
  return {
    get: ((name: string) => (name === "state" ? state : undefined)) as Model["get"],
    set: (_, value) => { state = value; },
    save_changes: () => listeners.forEach((listener) => listener()),
    on: (_, listener) => listeners.add(listener),
    off: (_, listener) => listeners.delete(listener),
  };
}

/** Puts an explorer into every element that asks for one, by an example's name or a state. */
export function mount(root: ParentNode = document): void {
  for (const el of root.querySelectorAll<HTMLElement>("[data-attractor-explorer]")) {
    if (el.dataset.mounted) continue;
    el.dataset.mounted = "1";
    const text = el.querySelector("script[type='application/json']")?.textContent;
    const example = SCENES[el.dataset.attractorExplorer ?? ""] ?? SCENES["two basins"];
    render({ model: pageModel({ ...(text ? JSON.parse(text) : structuredClone(example)) }), el });
  }
}

export default { render };

if (typeof document !== "undefined") mount();
