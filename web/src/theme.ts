import { Store } from "./store";

export type Theme = "light" | "dark";

/** The theme, which public/ui/theme.js has chosen before the first paint. */
export const theme = new Store<Theme>(document.documentElement.dataset["theme"] === "dark" ? "dark" : "light");

theme.subscribe(() => {
  document.documentElement.dataset["theme"] = theme.get();
  try {
    localStorage.setItem("leat.theme", theme.get());
  } catch {
    // It lasts as long as the page.
  }
});
