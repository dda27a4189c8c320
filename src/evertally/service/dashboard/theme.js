// Light or dark: as the system says, unless the reader chose. Runs before the page is painted, so that nothing flashes.
(() => {
  const KEPT = "evertally-theme";
  const root = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)");
  let choice = null;
  try {
    choice = localStorage.getItem(KEPT);
  } catch {
    // Storage may be switched off: a choice then lasts until the page is left.
  }

  const apply = () => {
    root.dataset.theme = choice ?? (system.matches ? "dark" : "light");
    document.getElementById("theme")?.setAttribute("aria-pressed", String(root.dataset.theme === "dark"));
    document.dispatchEvent(new Event("themechange"));
  };

  const turn = () => {
    choice = root.dataset.theme === "dark" ? "light" : "dark";
    try {
      localStorage.setItem(KEPT, choice);
    } catch {
      // as above
    }
    apply();
  };

  apply();
  system.addEventListener("change", apply);
  document.addEventListener("DOMContentLoaded", () => {
    apply();
    document.getElementById("theme").addEventListener("click", turn);
  });
})();
