// Before the first paint: the theme that was chosen, else the system's.
{
  let chosen = null;
  try {
    chosen = localStorage.getItem("leat.theme");
  } catch {
    // A browser that keeps nothing.
  }
  const dark = chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  document.documentElement.dataset.theme = dark ? "dark" : "light";
}
