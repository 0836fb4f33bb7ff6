// The page as one picture: SVG with its style inside, and PNG made of it.

import { RADIUS, SIZE } from "../view/disk";
import { html, svg } from "../view/svg";

const STYLES = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray", "stroke-linecap", "stroke-linejoin",
  "opacity", "font-size", "font-weight", "text-anchor", "paint-order"];
const [WIDTH, GAP, SIDE] = [1000, 24, 470];
const FONT = "Inter, system-ui, -apple-system, 'Segoe UI', Roboto, sans-serif";

export interface Sheet {
  /** Whose colors are taken. */
  root: HTMLElement;
  /** A title, and what is said below it. */
  words: string[];
  /** Side by side, as squares; a canvas lies below its picture. */
  pictures: { svg: SVGSVGElement; below?: HTMLCanvasElement }[];
  bars: SVGSVGElement;
  charts: { name: string; svg: SVGSVGElement }[];
  table: HTMLTableElement;
  notes: string[];
}

/** Everything in one SVG, which needs no other file. */
export function sheetSvg(sheet: Sheet): string {
  const style = getComputedStyle(sheet.root);
  const [ink, soft, paper, basins] = ["ink", "soft", "paper", "basins"].map((name) => style.getPropertyValue(`--${name}`).trim());
  const [title, ...said] = sheet.words;
  const out = svg("svg", { xmlns: "http://www.w3.org/2000/svg", width: WIDTH, "font-family": FONT, "font-size": 12, fill: ink });
  const text = (words: string, x: number, y: number, more: Record<string, string | number> = {}): void => {
    out.append(svg("text", { x, y, fill: ink, ...more }, words));
  };
  const back = svg("rect", { width: WIDTH, fill: paper });
  out.append(back);
  text(title, GAP, 38, { "font-size": 20, "font-weight": 600 });
  let y = 60;
  for (const words of said.flatMap((one) => wrap(one, 140))) { text(words, GAP, y, { fill: soft, "font-size": 13 }); y += 18; }
  sheet.pictures.forEach((picture, k) => {
    const x = GAP + k * (SIDE + 12);
    if (picture.below && picture.below.width > 1) {
      const inset = (SIDE * (SIZE - 2 * RADIUS)) / 2 / SIZE;
      const clip = `round${k}`;
      const side = SIDE - 2 * inset;
      out.append(svg("clipPath", { id: clip }, svg("circle", { cx: x + SIDE / 2, cy: y + SIDE / 2, r: side / 2 })),
        svg("image", { href: picture.below.toDataURL(), x: x + inset, y: y + inset, width: side, height: side,
          opacity: basins, "clip-path": `url(#${clip})` }));
    }
    out.append(placed(picture.svg, x, y, SIDE, SIDE));
  });
  y += SIDE + 20;
  const columns = [GAP, GAP + 270, GAP + 270 + 410];
  text("Attention", columns[0], y, { "font-weight": 600 });
  text("Certificate", columns[2], y, { "font-weight": 600 });
  const bars = sheet.bars.viewBox.baseVal;
  const high = (250 * bars.height) / bars.width;
  out.append(placed(sheet.bars, columns[0], y + 8, 250, high));
  sheet.charts.forEach((chart, k) => {
    const [x, top] = [columns[1] + (k % 2) * 200, y + Math.floor(k / 2) * 104];
    text(chart.name, x, top, { "font-weight": 600 });
    out.append(placed(chart.svg, x, top + 6, 190, (190 * 92) / 220));
  });
  let at = y + 20;
  for (const row of sheet.table.querySelectorAll("tbody tr")) {
    const [name, ...values] = Array.from(row.children, (cell) => cell.textContent ?? "").filter((_, k) => k < 3);
    text(name, columns[2], at, { fill: soft });
    text(values.filter(Boolean).join("   |   "), WIDTH - GAP, at, { "text-anchor": "end" });
    at += 18;
  }
  for (const note of sheet.notes) {
    for (const words of wrap(note, 44)) { text(words, columns[2], at, { fill: soft, "font-size": 11 }); at += 15; }
  }
  const height = Math.max(y + 222, y + high + 24, at + 8);
  out.setAttribute("height", String(height));
  out.setAttribute("viewBox", `0 0 ${WIDTH} ${height}`);
  back.setAttribute("height", String(height));
  return new XMLSerializer().serializeToString(out);
}

/** A picture with what its style computes to written into it. */
function placed(picture: SVGSVGElement, x: number, y: number, width: number, height: number): SVGSVGElement {
  const copy = picture.cloneNode(true) as SVGSVGElement;
  const [from, to] = [picture, copy].map((root) => [root, ...root.querySelectorAll<SVGElement>("*")]);
  const away: Element[] = [];
  from.forEach((element, k) => {
    const style = getComputedStyle(element);
    if (style.display === "none") away.push(to[k]);
    for (const name of STYLES) {
      const value = style.getPropertyValue(name);
      if (value) to[k].setAttribute(name, value.replace(/px/g, ""));
    }
    for (const name of ["class", "style", "tabindex", "role"]) to[k].removeAttribute(name);
  });
  away.forEach((element) => element.remove());
  for (const [name, value] of Object.entries({ x, y, width, height })) copy.setAttribute(name, String(value));
  return copy;
}

function wrap(words: string, most: number): string[] {
  const lines: string[] = [];
  for (const word of words.split(/\s+/).filter(Boolean)) {
    const last = lines[lines.length - 1];
    if (last !== undefined && last.length + word.length < most) lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(word);
  }
  return lines;
}

/** Twice as fine as the screen. */
export async function pngOf(text: string): Promise<Blob> {
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
  await image.decode();
  const canvas = html("canvas", { width: 2 * image.naturalWidth, height: 2 * image.naturalHeight });
  canvas.getContext("2d")!.drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((resolve, reject) =>
    canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error("no picture"))), "image/png"));
}

export function download(name: string, content: Blob): void {
  const address = URL.createObjectURL(content);
  const link = html("a", { href: address, download: name });
  document.body.append(link); // Firefox wants it on the page
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}
