// The page as one picture: SVG with its style inside, and PNG made of it.

import { render, type Attributes, type Shape } from "../view/elements";
import { RADIUS } from "../view/disk";
import { HALF } from "../view/marks";

const STYLES = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray", "stroke-linecap", "stroke-linejoin",
  "opacity", "font-size", "font-weight", "text-anchor", "paint-order"];
const [WIDTH, GAP, SIDE] = [1000, 24, 470];
const [BOLD, SMALL] = [{ "font-weight": 600 }, { "font-size": 11 }];
const [BARS, CHART] = [250, 190]; // widths

/** Everything that is on a page in one SVG, which needs no other file. */
export function sheetSvg(root: HTMLElement): string {
  const style = getComputedStyle(root);
  const color = (name: string): string => style.getPropertyValue(`--${name}`).trim();
  const [ink, soft] = ["ink", "soft"].map(color);
  const words = (selector: string): string[] => Array.from(root.querySelectorAll(selector), (one) => one.textContent!).filter(Boolean);
  const copies: SVGSVGElement[] = [];
  const shapes: Shape[] = [];
  const text = (words: string, x: number, y: number, more: Attributes = {}): void => void shapes.push(["text", { x, y, fill: ink, text: words, ...more }]);
  /** A copy of a picture, as high as its width asks for. */
  const place = (picture: Element, x: number, y: number, width: number): number => {
    const box = (picture as SVGSVGElement).viewBox.baseVal;
    const height = (width * box.height) / box.width;
    copies.push(placed(picture as SVGSVGElement, { x, y, width, height }));
    return height;
  };
  text(words("h2")[0], GAP, 38, { "font-size": 20, ...BOLD });
  let y = 60;
  for (const line of words(".point, .verdict").flatMap((one) => wrap(one, 140))) {
    text(line, GAP, y, { fill: soft, "font-size": 13 });
    y += 18;
  }
  const right = GAP + SIDE + 12;
  const canvas = root.querySelector("canvas")!;
  if (canvas.width > 1) { // basins lie below their picture
    const r = (SIDE * RADIUS) / HALF / 2;
    const [cx, cy] = [right + SIDE / 2, y + SIDE / 2];
    shapes.push(["clipPath", { id: "round" }, [["circle", { cx, cy, r }]]], ["image", {
      href: canvas.toDataURL(), x: cx - r, y: cy - r, width: 2 * r, height: 2 * r, opacity: color("basins"), "clip-path": "url(#round)",
    }]);
  }
  place(root.querySelector(".plane")!, GAP, y, SIDE);
  place(root.querySelector(".disk")!, right, y, SIDE);
  y += SIDE + 20;
  const [second, third] = [GAP + 270, GAP + 270 + 410];
  text("Attention", GAP, y, BOLD);
  text("Certificate", third, y, BOLD);
  const high = place(root.querySelector(".bars")!, GAP, y + 8, BARS);
  root.querySelectorAll(".chart").forEach((chart, k) => {
    const [x, top] = [second + (k % 2) * 200, y + (k >> 1) * 104];
    text(chart.querySelector("span")!.textContent!, x, top, BOLD);
    place(chart.lastElementChild!, x, top + 6, CHART);
  });
  let at = y + 20;
  for (const row of root.querySelectorAll("tbody tr")) {
    const [name, ...values] = Array.from(row.children, (cell) => cell.textContent!);
    text(name, third, at, { fill: soft });
    text(values.join("   |   "), WIDTH - GAP, at, { "text-anchor": "end" });
    at += 18;
  }
  for (const line of words(".note").flatMap((note) => wrap(note, 44))) {
    text(line, third, at, { fill: soft, ...SMALL });
    at += 15;
  }
  const height = Math.max(y + 222, y + high + 24, at + 8);
  const sheet = document.createElement("div");
  render(sheet, [["svg", {
    width: WIDTH, height, viewBox: `0 0 ${WIDTH} ${height}`, "font-size": 12, fill: ink, "font-family": style.fontFamily,
  }, [["rect", { width: WIDTH, height, fill: color("paper") }], ...shapes]]]);
  const [out] = sheet.children;
  out.append(...copies);
  return new XMLSerializer().serializeToString(out);
}

/** A picture with what its style computes to written into it. */
function placed(picture: SVGSVGElement, box: Attributes): SVGSVGElement {
  const copy = picture.cloneNode(true) as SVGSVGElement;
  const [from, to] = [picture, copy].map((root) => [root, ...root.querySelectorAll<SVGElement>("*")]);
  from.forEach((element, k) => {
    const style = getComputedStyle(element);
    for (const name of STYLES) to[k].setAttribute(name, style.getPropertyValue(name).replace(/px/g, ""));
    for (const name of ["class", "style", "tabindex", "role"]) to[k].removeAttribute(name);
  });
  for (const name in box) copy.setAttribute(name, String(box[name]));
  return copy;
}

function wrap(words: string, most: number): string[] {
  const lines = [""];
  for (const word of words.split(/\s+/)) {
    const last = lines[lines.length - 1];
    if (!last || last.length + word.length < most) lines[lines.length - 1] = last ? `${last} ${word}` : word;
    else lines.push(word);
  }
  return lines;
}

/** Twice as fine as the screen. */
export async function pngOf(text: string): Promise<Blob> {
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
  await image.decode();
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [2 * image.naturalWidth, 2 * image.naturalHeight];
  canvas.getContext("2d")!.drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((resolve, reject) => canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error("no picture")))));
}

export function download(name: string, content: BlobPart, type: string): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([content], { type }));
  link.download = name;
  document.body.append(link); // Firefox wants it on the page
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
