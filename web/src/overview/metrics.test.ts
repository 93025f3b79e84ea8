import { expect, test } from "vitest";

import { parse, quantile, sum } from "./metrics";

test("the text format", () => {
  const samples = parse('# HELP a b\n# TYPE a counter\na{x="1",y="q\\"uote\\n"} 2\na{x="2"} 3.5 1700000000\nb 1e3\nc_bucket{le="+Inf"} 4\nrubbish\n');
  expect(samples).toEqual([
    { name: "a", labels: { x: "1", y: 'q"uote\n' }, value: 2 }, { name: "a", labels: { x: "2" }, value: 3.5 }, { name: "b", labels: {}, value: 1000 }, { name: "c_bucket", labels: { le: "+Inf" }, value: 4 },
  ]);
  expect(sum(samples, "a")).toBe(5.5);
  expect(sum(samples, "a", (l) => l["x"] === "2")).toBe(3.5);
});

test("quantiles of what came between two readings", () => {
  const makeReading = (...n: number[]) => parse(["0.1", "1", "+Inf"].map((le, i) => `h_bucket{le="${le}"} ${n[i]}`).join("\n"));
  expect(quantile(makeReading(0, 0, 0), makeReading(0, 0, 0), "h", 0.5)).toBeUndefined();
  expect(quantile(makeReading(5, 5, 5), makeReading(5, 15, 15), "h", 0.5)).toBeCloseTo(0.55);
  expect(quantile(makeReading(0, 0, 0), makeReading(10, 10, 10), "h", 0.99)).toBeCloseTo(0.099);
  expect(quantile(makeReading(0, 0, 0), makeReading(0, 0, 10), "h", 0.99)).toBe(1);
});
