// Before the first paint: the theme that was chosen, else the system's. src/theme.ts follows later changes.
{
  let chosen = null;
  try {
    chosen = localStorage.getItem("leat.theme");
  } catch {
    // A browser that keeps nothing.
  }
  const dark = chosen === "dark" || (chosen !== "light" && matchMedia("(prefers-color-scheme: dark)").matches);
  document.documentElement.dataset.theme = dark ? "dark" : "light";
  document.querySelector('meta[name="theme-color"]').content = dark ? "#111416" : "#fbfbfa";
}
