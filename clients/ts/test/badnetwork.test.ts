import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { Client, turnText } from "../src/index.js";
import { BadNetwork, Gateway } from "./gateway.js";
import { MemoryStorage } from "./storage.js";

// How often each client is cut; LEAT_FULL asks for the number that the client is measured by.
const cuts = process.env["LEAT_FULL"] ? 200 : 25;

let gateway: Gateway;
before(async () => void (gateway = await Gateway.start()));
after(() => gateway.stop());

for (const transport of ["websocket", "http"] as const) {
  test(`${transport}: a client that is cut ${cuts} times ends with the exact transcript`, { timeout: 600_000 }, async (t) => {
    const network = await BadNetwork.start(gateway.host, { mean: 4000 });
    t.after(() => network.stop());
    const id = await gateway.create();
    const client = new Client({ url: network.url, transport, storage: new MemoryStorage() });
    t.after(() => client.close());
    // A person who presses "try again" most of the time, so that the test does not take as long as the waits.
    let lost = 0; // connections of the client's stream; the network counts others too
    client.onState((s) => s === "reconnecting" && lost++ % 8 !== 0 && client.connect());
    const c = client.conversation(id);
    const seen: string[] = [];
    let backwards = 0;
    let heard = true; // something of the client, since the last words
    client.onState(() => (heard = true));
    t.after(c.subscribe(() => {
      heard = true;
      const text = c.state.turns[0] ? turnText(c.state, c.state.turns[0].id) : "";
      if (!text.startsWith(seen.at(-1) ?? "")) backwards++;
      seen.push(text);
    }));

    let said = "";
    let over = false;
    async function* words(): AsyncGenerator<string> {
      const kinds = ["plain words ", "ä é ß ", "漢字と", "😀👩‍🚀 ", "\n\n"];
      for (let i = 0; !over; i++) {
        const word = kinds[i % kinds.length]! + i + " ";
        said += word;
        yield word;
        // How much is said is not the machine's speed to say.
        do await new Promise((resolve) => setTimeout(resolve, 2));
        while (i % 25 === 24 && !heard && !over);
        if (i % 25 === 24) heard = false;
      }
    }
    const pushed = gateway.push(id, words());
    // Meanwhile a person writes, too: injected notes need no turn, sends wait in the queue until the stream is over.
    const sends = Array.from({ length: 5 }, (_, i) => c.send(`${i} + 1`));
    while (lost < cuts && (await network.cuts()) < 10 * cuts) await new Promise((resolve) => setTimeout(resolve, 20));
    await network.mend();
    over = true;
    await pushed;
    const acks = await Promise.all(sends);
    await c.until((s) => s.turns.length === 6 && s.turns.every((turn) => turn.state === "ended"));

    const held = c.state;
    assert.equal(new Set(acks.map((a) => a.turn)).size, 5, "each message was answered by a turn of its own");
    assert.equal(turnText(held, held.turns[0]!.id), said);
    assert.equal(backwards, 0, "nothing that was seen was un-said");
    assert.deepEqual(held.pending, []);
    const { transcript } = (await (await gateway.call("GET", `/api/conversations/${id}/transcript`)).json()) as { transcript: { messages: unknown; turns: unknown } };
    assert.deepEqual(held.messages, transcript.messages);
    assert.deepEqual(held.turns, transcript.turns);
    assert.ok(lost >= cuts, `the client was cut ${lost} times`);
    t.diagnostic(`${lost} connections lost, ${await network.cuts()} cut; ${said.length} characters`);
  });
}
