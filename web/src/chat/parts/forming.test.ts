import { expect, test } from "vitest";

import { formed, Forming } from "./forming";

const documents = [
  '{"command":"ls -l","n":-12.5e+3,"deep":{"a":[1,{"b":null}],"t":true},"esc":"a\\n\\u00e9\\ud83d\\ude00\\\\","__proto__":{"x":1},"":""}',
  '["a",false,[],{}, 0]', '"text"', "null", " { \"a\" : [ ] } ",
];

test.each(documents)("every prefix of %s says what is certain, and no field goes or shrinks", (text) => {
  const reader = new Forming();
  let before = "";
  for (let n = 1; n <= text.length; n++) {
    const prefix = text.slice(0, n);
    const { value, state } = formed(prefix);
    expect(state, prefix).not.toBe("broken");
    const partial = reader.parse(prefix).value;
    const json = partial === undefined ? "" : JSON.stringify(partial);
    // Shown values only grow. They may lose characters only by closing brackets, or because a number continues.
    expect(json.replace(/["\]}\d.e+-]/g, "").length, prefix).toBeGreaterThanOrEqual(before.replace(/["\]}\d.e+-]/g, "").length);
    before = json;
    if (n === text.length) expect([JSON.stringify(value), state]).toEqual([JSON.stringify(JSON.parse(text)), "whole"]);
  }
});

test.each([
  ['{"a":-', "{}"], ['{"a":1.', '{"a":1}'], ['{"a":12e', '{"a":12}'], ['{"a":"x\\', '{"a":"x"}'], ['{"a":"x\\u00', '{"a":"x"}'], ['{"a":"\\ud83d', '{"a":""}'], ['{"a":tru', "{}"], ['{"a', "{}"], ['{"a":"b","c', '{"a":"b"}'], ["[1,", "[1]"], ["-", undefined],
])("%s is %s so far", (text, want) => {
  const { value, state } = formed(text);
  expect(JSON.stringify(value)).toBe(want);
  expect(state).toBe("growing");
});

test.each(["{'a':1}", "{a:1}", '{"a" 1}', '{"a":1 "b"', "[1 2", "nulL", "{}x", '{"a":"\n"}', '{"a":"\\x"}', "01", "+1", "ls -l", `${"[".repeat(100)}`])("%s is not JSON", (text) => {
  expect(formed(text)).toEqual({ value: undefined, state: "broken" });
});

test("the parsed part stays if the rest isn't JSON", () => {
  const f = new Forming();
  expect(JSON.stringify(f.parse('{"path":"/tmp/x"').value)).toBe('{"path":"/tmp/x"}');
  const result = f.parse('{"path":"/tmp/x"; and more');
  expect([JSON.stringify(result.value), result.state]).toEqual(['{"path":"/tmp/x"}', "broken"]);
  expect(f.parse("something else").value).toBeUndefined(); // it was replaced
});

test("a key is a key, whatever it is called", () => {
  const { value } = formed('{"__proto__":{"polluted":1},"constructor":2}');
  expect(Object.keys(value as object)).toEqual(["__proto__", "constructor"]);
  expect(({} as { polluted?: number }).polluted).toBeUndefined();
});
