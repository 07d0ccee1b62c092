// Dark or light, before anything is painted: as chosen here before, or as the system has it.
(() => {
  const system = matchMedia("(prefers-color-scheme: dark)");
  let chosen = null;
  try { chosen = localStorage.getItem("bitscale-theme"); } catch { /* storage may be forbidden */ }
  const apply = () => { document.documentElement.dataset.theme = chosen || (system.matches ? "dark" : "light"); };
  apply();
  system.addEventListener("change", apply);
  addEventListener("DOMContentLoaded", () => {
    document.getElementById("theme")?.addEventListener("click", () => {
      chosen = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
      try { localStorage.setItem("bitscale-theme", chosen); } catch { /* then it is for this page only */ }
      apply();
    });
  });
})();
