// What is to be on the page, as lists; elements are kept and changed, not made again.

export type Attributes = Record<string, unknown>;

/** A tag, its attributes, and its text or what is inside. */
export type Shape = [tag: string, attributes?: Attributes, inside?: string | Shape[]];

const written = new WeakMap<Element, Attributes>();

/** Makes these the children of an element. */
export function render(parent: Element, shapes: Shape[]): void {
  shapes.forEach(([tag, attributes = {}, inside], k) => {
    let element = parent.children[k];
    if (element?.localName !== tag) {
      const made = document.createElementNS(tag === "svg" ? "http://www.w3.org/2000/svg" : parent.namespaceURI, tag);
      if (element) element.replaceWith(made);
      else parent.append(made);
      element = made;
    }
    if (typeof inside !== "string") render(element, inside ?? []);
    else if (element.firstChild?.nodeValue !== inside) element.textContent = inside;
    set(element, attributes);
  });
  while (parent.children.length > shapes.length) parent.lastElementChild!.remove();
}

/** Writes those attributes that differ from what was written last; what is true or false is there or not. */
function set(element: Element, attributes: Attributes): void {
  const known = written.get(element) ?? {};
  for (const name in { ...known, ...attributes }) {
    const value = attributes[name];
    // A reader changes values, and listeners are properties.
    if (name === "value" || name === "checked" || typeof value === "function") {
      if ((element as unknown as Attributes)[name] !== value) (element as unknown as Attributes)[name] = value;
    } else if (value === known[name]) continue;
    else if (value === undefined || value === false) element.removeAttribute(name);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  written.set(element, attributes);
}

/** A list to choose from: values, and what they say. */
export const select = (name: string, value: unknown, choices: [value: unknown, words: string][], change: (value: string) => void, more?: Attributes): Shape =>
  ["select", { "aria-label": name, value: String(value), onchange: (event: Event) => change((event.target as HTMLSelectElement).value), ...more },
    choices.map(([value, words]) => ["option", { value: String(value) }, words])];

export const button = (words: string, onclick: () => void, more?: Attributes): Shape => ["button", { type: "button", onclick, ...more }, words];
