// What can be dragged, by mouse, finger and keyboard alike.

export interface Drag {
  /** Where the thing is, in units of the picture. */
  at(): readonly [number, number];
  /** A pixel of the picture, and what it means. */
  world(x: number, y: number): [number, number];
  /** How far an arrow key goes. */
  step(): number;
  go(to: [number, number]): void;
  done(): void;
}

/** Makes a mark in a picture of `size` units draggable. */
export function draggable(picture: SVGSVGElement, mark: SVGElement, size: number, drag: Drag): void {
  let pointer = -1;
  let box = new DOMRect();
  let moved = false;
  mark.addEventListener("pointerdown", (event) => {
    if (event.button !== 0 || pointer >= 0) return;
    event.preventDefault();
    mark.focus({ preventScroll: true });
    pointer = event.pointerId;
    box = picture.getBoundingClientRect();
    moved = false;
    mark.setPointerCapture(pointer);
  });
  // A page that may scroll would take the finger away; groups of SVG have no touch-action in Chromium.
  mark.addEventListener("touchstart", (event) => event.preventDefault(), { passive: false });
  mark.addEventListener("pointermove", (event) => {
    if (event.pointerId !== pointer) return;
    moved = true;
    drag.go(drag.world(((event.clientX - box.left) / box.width) * size, ((event.clientY - box.top) / box.height) * size));
  });
  for (const name of ["pointerup", "pointercancel"] as const) {
    mark.addEventListener(name, (event) => {
      if (event.pointerId !== pointer) return;
      pointer = -1;
      if (moved) drag.done();
    });
  }
  let pressed = false;
  mark.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const step = drag.step() * (event.shiftKey ? 5 : 1);
    const by = { ArrowLeft: [-step, 0], ArrowRight: [step, 0], ArrowUp: [0, step], ArrowDown: [0, -step] }[event.key];
    if (!by) return;
    event.preventDefault();
    event.stopPropagation();
    const [x, y] = drag.at();
    pressed = true;
    drag.go([x + by[0], y + by[1]]);
  });
  const release = (): void => { if (pressed) { pressed = false; drag.done(); } };
  mark.addEventListener("keyup", release);
  mark.addEventListener("blur", release);
}
