import { Store } from "./store";

export type Theme = "light" | "dark";

/** The theme. public/ui/theme.js selects it before the first paint. */
export const theme = new Store<Theme>(document.documentElement.dataset["theme"] === "dark" ? "dark" : "light");

theme.subscribe(() => {
  document.documentElement.dataset["theme"] = theme.get();
  try {
    localStorage.setItem("leat.theme", theme.get());
  } catch {
    // Without storage the theme lasts until the page is closed.
  }
});
