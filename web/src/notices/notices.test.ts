// @vitest-environment jsdom
import { expect, test, vi } from "vitest";

vi.stubGlobal("matchMedia", () => ({ matches: false, addEventListener() {} }));

test("what is possible depends on the browser and the address", async () => {
  const { possible } = await import("./notices");
  expect(possible(false, true, "granted")).toBe("insecure");
  expect(possible(false, false, undefined)).toBe("insecure");
  expect(possible(true, false, undefined)).toBe("unsupported");
  expect(possible(true, true, "denied")).toBe("denied");
  expect(possible(true, true, "default")).toBe("off");
  expect(possible(true, true, "granted")).toBe("off");
});
