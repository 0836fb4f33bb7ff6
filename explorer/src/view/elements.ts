// What is to be on the page, as lists; elements are kept and changed, not made again.

export type Attributes = Record<string, unknown>;

/** A tag, its attributes, and what is inside; the attribute `text` is its text, whatever that holds. */
export type Shape = [tag: string, attributes?: Attributes, inside?: Shape[]];

const written = new WeakMap<Element, Shape>();

/** Makes these the children of an element; a list that it has already is not read again. */
export function render(parent: Element | ShadowRoot, shapes: Shape[]): void {
  let element = parent.firstElementChild;
  for (const shape of shapes) {
    const [tag, { text } = {}, inside = []] = shape;
    if (element?.localName !== tag) {
      const drawn = tag === "svg" || parent instanceof SVGElement;
      const made = drawn ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
      if (element) element.replaceWith(made);
      else parent.append(made);
      element = made;
    }
    if (written.get(element) !== shape) {
      if (text === undefined) render(element, inside);
      else if (element.firstChild?.nodeValue !== text) element.textContent = String(text);
      set(element, shape);
    }
    element = element.nextElementSibling;
  }
  while (element) {
    const next: Element | null = element.nextElementSibling;
    element.remove();
    element = next;
  }
}

/** Writes those attributes that differ from what was written last; what is true or false is there or not. */
function set(element: Element, shape: Shape): void {
  const [, attributes = {}] = shape;
  const [, known = {}] = written.get(element) ?? shape;
  const first = known === attributes;
  for (const name in attributes) {
    const value = attributes[name];
    const changed = first || value !== known[name];
    if (name === "text") continue;
    if (typeof value === "function") property(element, name, value);
    // A reader changes values, too; what is being typed stays.
    else if (name === "value" || name === "checked") {
      if (changed || !element.matches(":focus")) property(element, name, value);
    } else if (changed) put(element, name, value);
  }
  for (const name in known) {
    if (name in attributes) continue;
    if (typeof known[name] === "function") property(element, name, null);
    else put(element, name);
  }
  written.set(element, shape);
}

function property(element: Element, name: string, value: unknown): void {
  const properties = element as unknown as Attributes;
  if (properties[name] !== value) properties[name] = value;
}

function put(element: Element, name: string, value?: unknown): void {
  if (value === undefined || value === false) element.removeAttribute(name);
  else element.setAttribute(name, value === true ? "" : String(value));
}

/** A list to choose from: values, and what they say. */
export const select = (name: string, value: unknown, choices: [value: unknown, words: string][], change: (value: string) => void, more?: Attributes): Shape =>
  ["select", { "aria-label": name, value: String(value), onchange: (event: Event) => change((event.target as HTMLSelectElement).value), ...more },
    choices.map(([value, words]) => ["option", { value: String(value), text: words }])];

export const button = (words: string, onclick: () => void, more?: Attributes): Shape => ["button", { type: "button", onclick, text: words, ...more }];
