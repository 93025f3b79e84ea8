import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { Client, turnText } from "../src/index.js";
import { BadNetwork, Gateway } from "./gateway.js";
import { MemoryStorage } from "./storage.js";

// How often each client is disconnected; LEAT_FULL runs the number of the release test.
const cuts = process.env["LEAT_FULL"] ? 200 : 25;

let gateway: Gateway;
before(async () => void (gateway = await Gateway.start()));
after(() => gateway.stop());

for (const transport of ["websocket", "http"] as const) {
  test(`${transport}: a client that is disconnected ${cuts} times ends with the exact transcript`, { timeout: 600_000 }, async (t) => {
    const network = await BadNetwork.start(gateway.host, { mean: 4000 });
    t.after(() => network.stop());
    const id = await gateway.create();
    const client = new Client({ url: network.url, transport, storage: new MemoryStorage() });
    t.after(() => client.close());
    // A user who retries most of the time, so that the test doesn't take as long as the waits.
    let losses = 0; // of the client; the network counts other connections too
    client.onState((s) => s === "reconnecting" && losses++ % 8 !== 0 && client.connect());
    const c = client.conversation(id);
    const texts: string[] = [];
    let backwards = 0;
    let isActive = true; // something of the client, since the last words
    client.onState(() => (isActive = true));
    t.after(c.subscribe(() => {
      isActive = true;
      const text = c.state.turns[0] ? turnText(c.state, c.state.turns[0].id) : "";
      if (!text.startsWith(texts.at(-1) ?? "")) backwards++;
      texts.push(text);
    }));

    let expected = "";
    let isFinished = false;
    async function* words(): AsyncGenerator<string> {
      const kinds = ["plain words ", "ä é ß ", "漢字と", "😀👩‍🚀 ", "\n\n"];
      for (let i = 0; !isFinished; i++) {
        const word = kinds[i % kinds.length]! + i + " ";
        expected += word;
        yield word;
        // The amount of text must not depend on the machine's speed.
        do await new Promise((resolve) => setTimeout(resolve, 2));
        while (i % 25 === 24 && !isActive && !isFinished);
        if (i % 25 === 24) isActive = false;
      }
    }
    const push = gateway.push(id, words());
    // Meanwhile a user sends messages, which wait in the queue until the stream has ended.
    const sends = Array.from({ length: 5 }, (_, i) => c.send(`${i} + 1`));
    while (losses < cuts && (await network.cuts()) < 10 * cuts) await new Promise((resolve) => setTimeout(resolve, 20));
    await network.mend();
    isFinished = true;
    await push;
    const acks = await Promise.all(sends);
    await c.waitFor((s) => s.turns.length === 6 && s.turns.every((turn) => turn.state === "ended"));

    const state = c.state;
    assert.equal(new Set(acks.map((a) => a.turn)).size, 5, "each message was answered by a separate turn");
    assert.equal(turnText(state, state.turns[0]!.id), expected);
    assert.equal(backwards, 0, "no visible text was removed");
    assert.deepEqual(state.pending, []);
    const { transcript } = (await (await gateway.call("GET", `/api/conversations/${id}/transcript`)).json()) as { transcript: { messages: unknown; turns: unknown } };
    assert.deepEqual(state.messages, transcript.messages);
    assert.deepEqual(state.turns, transcript.turns);
    assert.ok(losses >= cuts, `the client was cut ${losses} times`);
    t.diagnostic(`${losses} connections lost, ${await network.cuts()} cut; ${expected.length} characters`);
  });
}
