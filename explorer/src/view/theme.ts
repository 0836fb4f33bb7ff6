// Light or dark, as the page around it is, also while that changes.

const ATTRIBUTES = ["data-theme", "data-mode", "data-bs-theme", "data-color-mode", "data-md-color-scheme", "data-jp-theme-light", "class", "style"];

/** Calls back at once and whenever the page changes its theme; returns what stops it. */
export function followTheme(host: HTMLElement, change: (dark: boolean) => void): () => void {
  const media = matchMedia("(prefers-color-scheme: dark)");
  let last: boolean | null = null;
  const look = (): void => {
    const dark = isDark(host, media.matches);
    if (dark !== last) change((last = dark));
  };
  const observer = new MutationObserver(look);
  for (const element of [document.documentElement, document.body]) {
    observer.observe(element, { attributes: true, attributeFilter: ATTRIBUTES });
  }
  media.addEventListener("change", look);
  look();
  return () => {
    observer.disconnect();
    media.removeEventListener("change", look);
  };
}

/** Notebooks and documentation say by attributes what the browser's setting does not. */
function isDark(host: HTMLElement, preferred: boolean): boolean {
  const closest = (name: string): string | null => host.closest(`[${name}]`)?.getAttribute(name)
    ?? document.body.getAttribute(name) ?? document.documentElement.getAttribute(name);
  const notebook = closest("data-jp-theme-light");
  if (notebook) return notebook === "false";
  for (const name of ["data-theme", "data-bs-theme", "data-md-color-scheme", "data-color-mode"]) {
    const said = closest(name);
    if (said === "dark" || said === "slate") return true;
    if (said === "light" || said === "default") return false;
  }
  if (host.closest(".dark, .dark-theme, .vscode-dark, .theme-dark")) return true;
  if (host.closest(".light, .light-theme, .vscode-light")) return false;
  return preferred;
}
