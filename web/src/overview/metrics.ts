// Parses the gateway's metrics (Prometheus text exposition format, version 0.0.4).

export interface Sample { name: string; labels: Record<string, string>; value: number }

/** Parses the samples. It ignores comments and invalid lines. */
export function parse(text: string): Sample[] {
  const samples: Sample[] = [];
  for (const line of text.split("\n")) {
    const m = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})?\s+(\S+)/.exec(line);
    if (!m || line.startsWith("#")) continue;
    const value = Number(m[3] === "+Inf" ? Infinity : m[3]);
    if (Number.isNaN(value)) continue;
    const labels: Record<string, string> = {};
    for (const l of (m[2] ?? "").matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)) labels[l[1]!] = l[2]!.replace(/\\(.)/g, (_, c: string) => (c === "n" ? "\n" : c));
    samples.push({ name: m[1]!, labels, value });
  }
  return samples;
}

/** Returns the sum of the samples with a name, optionally only of those with matching labels. */
export function sum(samples: readonly Sample[], name: string, fits: (labels: Record<string, string>) => boolean = () => true): number {
  return samples.reduce((n, s) => (s.name === name && fits(s.labels) ? n + s.value : n), 0);
}

/** Returns a quantile of a histogram's observations between two readings, in the histogram's unit; undefined if there were none. */
export function quantile(before: readonly Sample[], current: readonly Sample[], name: string, q: number): number | undefined {
  const counts = new Map<number, number>();
  const add = (list: readonly Sample[], sign: number) => {
    for (const s of list) {
      if (s.name !== `${name}_bucket`) continue;
      const le = s.labels["le"] === "+Inf" ? Infinity : Number(s.labels["le"]);
      counts.set(le, (counts.get(le) ?? 0) + sign * s.value);
    }
  };
  add(current, 1);
  add(before, -1);
  const buckets = [...counts].toSorted((a, b) => a[0] - b[0]);
  const total = buckets.at(-1)?.[1] ?? 0;
  if (total <= 0) return undefined;
  let low = 0;
  let below = 0;
  for (const [le, n] of buckets) {
    if (n >= q * total) {
      if (le === Infinity) return low;
      return low + (le - low) * ((q * total - below) / (n - below || 1));
    }
    [low, below] = [le, n];
  }
  return undefined;
}
