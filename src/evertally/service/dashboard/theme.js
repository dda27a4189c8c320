// Light, dark, or as the device: the address says it, else what the reader chose before. Runs before the page is
// painted, so that nothing flashes.
(() => {
  const KEPT = "evertally-theme";
  const NAMES = ["light", "dark", "auto"];
  const root = document.documentElement;
  const system = matchMedia("(prefers-color-scheme: dark)");

  const kept = () => {
    try {
      return localStorage.getItem(KEPT);
    } catch {
      return null; // Storage may be switched off: a choice then lasts until the page is left.
    }
  };

  const given = new URLSearchParams(location.hash.slice(1)).get("theme");
  let choice = [given, kept()].find((name) => NAMES.includes(name)) ?? "auto";

  const apply = () => {
    root.dataset.choice = choice;
    root.dataset.theme = choice !== "auto" ? choice : system.matches ? "dark" : "light";
    document.dispatchEvent(new Event("themechange"));
  };

  document.addEventListener("themewanted", (event) => {
    choice = event.detail;
    try {
      localStorage.setItem(KEPT, choice);
    } catch {
      // as above
    }
    apply();
  });
  system.addEventListener("change", apply);
  apply();
})();
