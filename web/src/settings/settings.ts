// What a person has chosen about this page, in this browser.

import { kept } from "../store";

export const readings = ["end", "sentence", "off"] as const;

/** When a screen reader is given an answer's text: when it is there, sentence by sentence as it grows, or never by itself. */
export type Reading = (typeof readings)[number];

export const reading = kept<Reading>("reading", "end", (v): v is Reading => readings.includes(v as Reading));

/** Whether the page has keys of its own, beside those of a field or a list that has the focus. */
export const shortcutsOn = kept<boolean>("shortcuts", true, (v): v is boolean => typeof v === "boolean");
