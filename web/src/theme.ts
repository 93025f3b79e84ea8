// The theme: light or dark, or that of the system, whose changes are followed.

import { Store } from "./store";

export type Theme = "light" | "dark";
export const themes = ["system", "light", "dark"] as const;
export type ThemeChoice = (typeof themes)[number];

const key = "leat.theme";
const system = matchMedia("(prefers-color-scheme: dark)");
const systemTheme = (): Theme => (system.matches ? "dark" : "light");

// The ground of the page, for the browser's own controls. tokens.css and public/ui/theme.js have the same colours.
const grounds: Record<Theme, string> = { light: "#fbfbfa", dark: "#111416" };

function readChoice(): ThemeChoice {
  try {
    const value = localStorage.getItem(key);
    return value === "light" || value === "dark" ? value : "system";
  } catch {
    return "system"; // without storage
  }
}

/** The user's choice, stored in this browser. */
export const themeChoice = new Store<ThemeChoice>(readChoice());

const chosenTheme = (): Theme => {
  const choice = themeChoice.get();
  return choice === "system" ? systemTheme() : choice;
};

/** The theme that is shown. public/ui/theme.js selects it before the first paint. */
export const theme = new Store<Theme>(chosenTheme());

theme.subscribe(() => {
  document.documentElement.dataset["theme"] = theme.get();
  document.querySelector<HTMLMetaElement>('meta[name="theme-color"]')!.content = grounds[theme.get()];
});

themeChoice.subscribe(() => {
  theme.set(chosenTheme());
  try {
    if (themeChoice.get() === "system") localStorage.removeItem(key);
    else localStorage.setItem(key, themeChoice.get());
  } catch {
    // Without storage the choice lasts until the page is closed.
  }
});

system.addEventListener("change", () => theme.set(chosenTheme()));
addEventListener("storage", (e) => {
  if (e.key === key || e.key === null) themeChoice.set(readChoice()); // another tab's choice
});

/** Shows the other theme. If that is the system's, the page follows the system again. */
export function toggleTheme(): void {
  const other = theme.get() === "dark" ? "light" : "dark";
  themeChoice.set(other === systemTheme() ? "system" : other);
}
