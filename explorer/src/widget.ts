// The module of the anywidget; on any page it fills the elements that ask for an explorer.

import { explorerIn } from "./explorer";
import { findScene, SCENES } from "./scenes";
import type { Model, State } from "./state";

/** Returns what takes it away. */
function open(model: Model, el: HTMLElement, address = false, scene = ""): () => void {
  const host = document.createElement("div");
  host.className = "attractor-explorer";
  el.append(host);
  const explorer = explorerIn(host, model, address, scene);
  Object.assign(host, { explorer });
  return () => {
    explorer.destroy();
    host.remove();
  };
}

/** A model that lives on the page alone. */
function pageModel(state: State): Model {
  const listeners = new Set<() => void>();
  return {
    get: ((name: string) => (name === "state" ? state : undefined)) as Model["get"],
    set: (_, value) => { state = value; },
    save_changes: () => listeners.forEach((listener) => listener()),
    on: (event, listener) => { if (event === "change:state") listeners.add(listener); },
    off: (_, listener) => listeners.delete(listener),
  };
}

/**
 * Puts an explorer into every element with `data-attractor-explorer`: the name of a scene, or empty
 * with a state as JSON in a script inside. One alone on a page, or with `data-address`, keeps its
 * state in the address.
 */
function mount(): void {
  const all = document.querySelectorAll<HTMLElement>("[data-attractor-explorer]");
  for (const el of all) {
    const { dataset } = el;
    if (dataset.mounted) continue;
    dataset.mounted = "1";
    const text = el.querySelector("script[type='application/json']")?.textContent;
    const scene = findScene(dataset.attractorExplorer!) ?? SCENES[0];
    const state = text ? (JSON.parse(text) as State) : structuredClone(scene.state);
    open(pageModel(state), el, dataset.address !== undefined || all.length === 1, text ? "" : scene.name);
  }
}

export default { render: ({ model, el }: { model: Model; el: HTMLElement }): (() => void) => open(model, el) };

if (typeof document !== "undefined") mount();
