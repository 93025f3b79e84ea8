// The user's settings for this page, stored in this browser.

import { persistent } from "../store";

export const readings = ["end", "sentence", "off"] as const;

/** When a screen reader gets an answer's text: at its end, sentence by sentence, or only on demand. */
export type ReadAloud = (typeof readings)[number];

export const readAloud = persistent<ReadAloud>("reading", "end", (v): v is ReadAloud => readings.includes(v as ReadAloud));

/** Whether the page's keyboard shortcuts are on. Keys of a focused field or list always work. */
export const shortcutsOn = persistent<boolean>("shortcuts", true, (v): v is boolean => typeof v === "boolean");
