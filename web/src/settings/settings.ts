// What a person has chosen about this page, in this browser.

import { persistent } from "../store";

export const readings = ["end", "sentence", "off"] as const;

/** When a screen reader is given an answer's text: when it is there, sentence by sentence as it grows, or never by itself. */
export type ReadAloud = (typeof readings)[number];

export const readAloud = persistent<ReadAloud>("reading", "end", (v): v is ReadAloud => readings.includes(v as ReadAloud));

/** Whether the page has keys of its own, beside those of a field or a list that has the focus. */
export const shortcutsOn = persistent<boolean>("shortcuts", true, (v): v is boolean => typeof v === "boolean");
