import { expect, test } from "vitest";

import { markdown } from "./export";

test("a conversation as Markdown", () => {
  const text = markdown("A talk", [
    { id: "1", role: "user", at: Date.UTC(2026, 0, 2, 3, 4, 5), parts: [{ id: "p", kind: "text", text: "Look!" }, { id: "q", kind: "media", media: { url: "/f", name: "a.png" } }] },
    { id: "2", role: "assistant", parts: [{ id: "t", kind: "tool", name: "bash", state: "failed", input: "{}", output: "```\nfence\n```\n" }, { id: "p", kind: "text", text: "Done." }] },
  ]);
  expect(text).toBe("# A talk\n\n## You, 2026-01-02T03:04:05.000Z\n\nLook!\n\n[a.png](/f)\n\n## Agent\n\n*Tool bash, failed*\n\n````\n{}\n````\n\n````\n```\nfence\n```\n````\n\nDone.\n");
});
