// Reads the fields of frames, whose contents come from other programs.

export type Fields = { readonly [key: string]: unknown };

/** Returns an object's fields; undefined for anything else. */
export const fieldsOf = (v: unknown): Fields | undefined => (typeof v === "object" && v !== null && !Array.isArray(v) ? v as Fields : undefined);

export const text = (v: unknown): string | undefined => (typeof v === "string" ? v : undefined);

/** Returns a number that isn't negative. */
export const amount = (v: unknown): number | undefined => (typeof v === "number" && Number.isFinite(v) && v >= 0 ? v : undefined);

export const flag = (v: unknown): boolean => v === true;

/** The maximum length of a text of a list's entry. Longer ones don't help in a list, and would let it grow without a limit. */
const maxText = 500;

/** Returns a text's beginning. */
export const short = (v: unknown): string => {
  const s = text(v) ?? "";
  return s.length > maxText ? `${s.slice(0, maxText)}…` : s;
};
