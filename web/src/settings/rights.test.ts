import { expect, test } from "vitest";

import { rights, source } from "./rights";

const user = { tokenNeeded: true, authenticated: true, subject: "alice" };

test("rights are those of the widest scope", () => {
  expect(rights({ ...user, admin: true, scopes: ["read"] })).toMatch(/^Do everything/);
  expect(rights(user)).toBe("Read, write and share own conversations");
  expect(rights({ ...user, scopes: ["write"] })).toBe("Read, write and share own conversations");
  expect(rights({ ...user, scopes: ["read"] })).toBe("Read own conversations");
  expect(rights({ ...user, scopes: ["agent"] })).toBe("Read, write and share own conversations, and speak as an agent in them");
  expect(rights({ ...user, scopes: [] })).toMatch(/^Nothing/);
});

test("the source of a session names the operator's settings only to the operator", () => {
  expect(source({ tokenNeeded: false, authenticated: true, admin: true })).toMatch(/no token/);
  expect(source({ tokenNeeded: true, authenticated: true, admin: true })).toMatch(/LEAT_API_TOKEN/);
  expect(source(user)).not.toMatch(/LEAT|scope/);
  expect(source({ ...user, admin: true })).toMatch(/scope admin/);
});
