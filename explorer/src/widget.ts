// The module of the anywidget; on any page it fills the elements that ask for an explorer.

import { reason } from "./check";
import { explorerIn, type Explorer } from "./explorer";
import { findScene, SCENES } from "./scenes";
import type { Model } from "./state";

/** Returns what takes it away. */
function open(model: Model, el: HTMLElement, address = false, scene = ""): () => void {
  const host = document.createElement("div");
  host.className = "attractor-explorer";
  el.append(host);
  let explorer: Explorer | undefined;
  try {
    explorer = explorerIn(host, model, address, scene);
    Object.assign(host, { explorer });
  } catch (error) {
    host.textContent = `There is nothing to show here: ${reason(error)}.`;
  }
  return () => {
    explorer?.destroy();
    host.remove();
  };
}

/** A model that lives on the page alone, as JSON. */
function pageModel(text: string): Model {
  const listeners = new Set<() => void>();
  return {
    get: (name) => (name === "state" ? JSON.parse(text) : undefined),
    set: (_, value) => { text = JSON.stringify(value); },
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
    open(pageModel(text || JSON.stringify(scene.state)), el, dataset.address !== undefined || all.length === 1, text ? "" : scene.name);
  }
}

Object.assign(globalThis, {
  attractorExplorer: { render: ({ model, el }: { model: Model; el: HTMLElement }): (() => void) => open(model, el) },
});

if (typeof document !== "undefined") mount();
