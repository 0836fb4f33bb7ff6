// Light or dark, as the page around it is, also while that changes.

/** Calls back at once and whenever the page changes its theme; returns what stops it. */
export function followTheme(host: HTMLElement, change: (dark: boolean) => void): () => void {
  const media = matchMedia("(prefers-color-scheme: dark)");
  let last: boolean | null = null;
  const look = (): void => {
    const dark = isDark(host) ?? media.matches;
    if (dark !== last) change((last = dark));
  };
  const observer = new MutationObserver(look);
  for (const element of [document.documentElement, document.body]) observer.observe(element, { attributes: true });
  media.addEventListener("change", look);
  look();
  return () => {
    observer.disconnect();
    media.removeEventListener("change", look);
  };
}

/** Notebooks and documentation say by attributes what the browser's setting does not; undefined where they do not either. */
function isDark(host: HTMLElement): boolean | undefined {
  const closest = (name: string): string | null | undefined =>
    [host.closest(`[${name}]`), document.body, document.documentElement].map((one) => one?.getAttribute(name)).find(Boolean);
  const notebook = closest("data-jp-theme-light");
  if (notebook) return notebook === "false";
  for (const name of ["data-theme", "data-bs-theme", "data-md-color-scheme", "data-color-mode"]) {
    const said = closest(name);
    if (said === "dark" || said === "slate") return true;
    if (said === "light" || said === "default") return false;
  }
  if (host.closest(".dark, .dark-theme, .vscode-dark, .theme-dark")) return true;
  return host.closest(".light, .light-theme, .vscode-light") ? false : undefined;
}
