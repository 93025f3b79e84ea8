// A plugin that shows every kind and state of a part.

import { deflateSync } from "node:zlib";

import { serve } from "./plugin.mjs";

function crc(bytes) {
  let c = ~0;
  for (const b of bytes) {
    c ^= b;
    for (let k = 0; k < 8; k++) c = c & 1 ? (c >>> 1) ^ 0xedb88320 : c >>> 1;
  }
  return ~c >>> 0;
}

/** Returns a picture as a data URL. */
export function picture(width, height) {
  const rows = Buffer.alloc((width * 3 + 1) * height);
  for (let y = 0; y < height; y++) for (let x = 0; x < width; x++) rows.set([40 + (x * 160) / width, 110 + (y * 90) / height, 120], y * (width * 3 + 1) + 1 + x * 3);
  const chunk = (type, data) => {
    const body = Buffer.concat([Buffer.from(type), data]);
    const bytes = Buffer.alloc(body.length + 8);
    bytes.writeUInt32BE(data.length);
    body.copy(bytes, 4);
    bytes.writeUInt32BE(crc(body), body.length + 4);
    return bytes;
  };
  const head = Buffer.alloc(13);
  head.writeUInt32BE(width);
  head.writeUInt32BE(height, 4);
  head.set([8, 2], 8);
  const png = Buffer.concat([Buffer.from([137, 80, 78, 71, 13, 10, 26, 10]), chunk("IHDR", head), chunk("IDAT", deflateSync(rows)), chunk("IEND", Buffer.alloc(0))]);
  return `data:image/png;base64,${png.toString("base64")}`;
}

/** Returns one second of silence. */
export function sound() {
  const wav = Buffer.alloc(44 + 8000);
  wav.write("RIFF", 0);
  wav.writeUInt32LE(wav.length - 8, 4);
  wav.write("WAVEfmt ", 8);
  wav.writeUInt32LE(16, 16);
  wav.set([1, 0, 1, 0], 20);
  wav.writeUInt32LE(8000, 24);
  wav.writeUInt32LE(8000, 28);
  wav.set([1, 0, 8, 0], 32);
  wav.write("data", 36);
  wav.writeUInt32LE(8000, 40);
  wav.fill(128, 44);
  return `data:audio/wav;base64,${wav.toString("base64")}`;
}

/** A video of three frames of one color each, 32 by 18 pixels, VP8. */
const film = `data:video/webm;base64,${[
  "GkXfo59ChoEBQveBAULygQRC84EIQoKEd2VibUKHgQRChYECGFOAZwEAAAAAAAH+EU2bdLlNu4tTq4QVSalmU6yBbk27i1OrhBZUrmtTrIGTTbuLU6uEH0O2dVOsgdRNu4xTq4Qc",
  "U7trU6yCAezsrgAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAVSalmoCrXsYMPQkBEiYRDPS3TTYCGQ2hyb21lV0GGQ2hyb21lFlSua7yuuteB",
  "AXPFh9CfmEodlcCDgQFV7oEBhoVWX1ZQOOCdsIEguoESU8CBAVWwkFWxgQFVuYECVbqBDVW7gQEfQ7Z1AQAAAAAAAQzngQCg6aG8gQAAAPACAJ0BKiAAEgAABwiFhYiZhIgBJBAT",
  "rVAfwBBBCOeWgP778G//nEsdTu7s//1WP9Vj/VY//VGgdaGopqbugQGloVACAJ0BKiAAEgAABwiFhYiZhIgBJBAAPIeeTgD+/7qDAKDSobGBAFgA8QEAABAJIADAAPK/oGACCHAA",
  "/v7nXL/37S99pe+0v9e3/6fV+n1fp9X/pzgAdaGZppfugQGlktEBAAAQCSAAwADCwX+gAEOAAPuBAKDIoaeBAL0AEQIAABAJIADAZoZZBtyjgJpSAP72E1//2Mr9jK/Yyv/YjwB1",
  "oZmml+6BAaWS0QEAABAJIADAAMLBf6AAQ4AA+4FYHFO7a427i7OBALeG94EB8YHU",
].join("")}`;

const listing = Array.from({ length: 40 }, (_, i) => `-rw-r--r-- 1 user user ${1000 + i * 37} file-${String(i + 1).padStart(2, "0")}.txt`).join("\n") + "\n";
const usage = { model: "test-large", input: 12480, output: 812, reasoning: 240, cache_read: 9000, cost: 0.0312 };

const scripts = {
  // gallery: every kind and state of a part, complete.
  async gallery(turn) {
    turn.text("m", "r", "The user wants to see what is there.\n\n1. look\n2. tell", "reasoning");
    turn.text("m", "a", "I look at the folder first, then at **two files** that matter.");
    turn.tool("m", "t1", "bash", { input: { command: "ls -l /srv/projects/leat/a/long/path/that/goes/on/and/on/until/there/is/no/room/for/it/report.md", cwd: "/srv" }, output: listing, stderr: "ls: cannot open directory '/srv/secret': Permission denied\n", data: { exitCode: 1 } });
    turn.tool("m", "t2", "read_file", { input: { path: "/srv/missing.txt" }, state: "failed", error: "no such file or directory" });
    turn.tool("m", "t3", "delete", { input: { path: "/srv/all" }, state: "denied" });
    turn.tool("m", "t4", "write_file", { input: { path: "notes.md", content: "# Notes\n\nline one\nline two\n", mode: 420, options: { overwrite: true, backup: null } } });
    turn.tool("m", "t5", "search", { input: '{"query":"unfinished', output: "\u001b[32m3 matches\u001b[0m\n10%\r50%\r100%\n" });
    turn.tool("m", "t6", "web", { title: "Looking at example.com" });
    turn.start("m", "s", "status");
    for (const note of ["Looking up the track…", "Searching…", "Now playing: **Song**"]) turn.replace("m", "s", note, { note });
    turn.close("m", "s");
    turn.text("m", "b", "Here is what I found:");
    turn.media("m", "i1", { url: picture(640, 360), mime: "image/png", name: "chart.png", alt: "A chart of the last week" });
    turn.media("m", "i2", { url: picture(48, 48), mime: "image/png", name: "icon.png" }, { data: { width: 48, height: 48 } });
    turn.media("m", "au", { url: sound(), mime: "audio/wav", name: "note.wav" });
    turn.media("m", "f1", { url: `data:text/plain;base64,${Buffer.from("words").toString("base64")}`, mime: "text/plain", name: "report-of-the-last-week-with-a-long-name.txt" });
    turn.media("m", "f2", { url: "https://example.com/paper.pdf", mime: "application/pdf", name: "paper.pdf", size: 1234567 });
    turn.media("m", "f3", { mime: "image/png", name: "lost.png" });
    turn.set("m", "f3", { error: { code: "file_unavailable", message: "the agent’s gateway does not have the file any more" } });
    turn.start("m", "d", "data", { name: "weather", data: { place: "Berlin", degrees: [3, 7] } });
    turn.close("m", "d");
    turn.start("m", "gone", "text");
    turn.add("m", "gone", "taken back");
    turn.replace("m", "gone", "");
    turn.close("m", "gone");
    turn.done("m");
    // Nested turns.
    let parent = turn.turn;
    for (const [i, name] of ["researcher", "reader", "summer", "checker"].entries()) {
      const emit = turn.inner(`inner-${i}`);
      emit({ type: "turn.start", agent: name, parent });
      emit({ type: "message.start", message: "n", role: "assistant" });
      emit({ type: "part.start", message: "n", part: "x", kind: "text" });
      emit({ type: "part.append", message: "n", part: "x", text: `What ${name} found.` });
      emit({ type: "part.end", message: "n", part: "x" });
      emit({ type: "message.end", message: "n" });
      parent = `inner-${i}`;
    }
    for (const i of [3, 2, 1, 0]) turn.inner(`inner-${i}`)({ type: "turn.end", outcome: "completed" });
    turn.text("z", "x", "That is all.");
    turn.done("z");
    turn.end({ usage });
  },
  // film: a video.
  async film(turn) {
    turn.media("m", "v", { url: film, mime: "video/webm", name: "colours.webm" });
    turn.done("m");
    turn.end();
  },
  // steps: growing parts, paused at each step until the test continues.
  async steps(turn) {
    await turn.gate("begin");
    turn.start("m", "r", "reasoning");
    turn.add("m", "r", "First I think.");
    await turn.gate("reasoned");
    turn.close("m", "r");
    turn.start("m", "t", "tool", { name: "bash", call: "c" });
    turn.add("m", "t", '{"command":"make all', "input");
    await turn.gate("more");
    turn.add("m", "t", ' -j2","dir":"/srv', "input");
    await turn.gate("given");
    turn.add("m", "t", '"}', "input");
    turn.set("m", "t", { state: "running" });
    for (let i = 1; i <= 15; i++) turn.add("m", "t", `built ${i}\n`, "output");
    await turn.gate("output");
    for (let i = 16; i <= 30; i++) turn.add("m", "t", `built ${i}\n`, "output");
    turn.add("m", "t", "a warning\n", "stderr");
    await turn.gate("done");
    turn.set("m", "t", { state: "done" });
    turn.close("m", "t");
    turn.start("m", "s", "status");
    turn.replace("m", "s", "Packing…", { note: "Packing…" });
    await turn.gate("packed");
    turn.replace("m", "s", "Sending…", { note: "Sending…" });
    await turn.gate("sent");
    turn.replace("m", "s", "Sent to **Berlin**", { note: "Sent to **Berlin**" });
    turn.close("m", "s");
    turn.start("m", "x", "text");
    turn.add("m", "x", "All is built.");
    await turn.gate("end");
    turn.close("m", "x");
    turn.done("m");
    turn.end();
  },
  // taken: retracted output, first the end of a text, then a whole message.
  async taken(turn) {
    turn.text("k", "x", "This stays as it is, whatever becomes of the rest.");
    turn.done("k");
    turn.start("m", "x", "text");
    turn.add("m", "x", "The backup is done. It took nine minutes, and that was far too long for so few files.");
    await turn.gate("replace");
    turn.replace("m", "x", "The backup is done. ");
    await turn.gate("more");
    turn.add("m", "x", "It took nine seconds.");
    turn.close("m", "x");
    turn.done("m");
    turn.text("n", "x", "Nobody should ever have read this, so it is taken back.");
    await turn.gate("retract");
    turn.replace("n", "x", "");
    turn.done("n");
    await turn.gate("end");
    turn.end();
  },
  // end OUTCOME CODE: the ends of turns.
  async end(turn) {
    const [outcome, code, ...words] = turn.rest.split(" ");
    if (words.length > 0) turn.text("m", "x", words.join(" "));
    turn.end(outcome === "completed" ? { reason: code } : { outcome, error: { code, message: `upstream said ${code}`, retryable: false } });
  },
  // ask: a request; the options are JSON.
  async ask(turn) {
    turn.text("m", "x", "I need your word. ");
    turn.start("m", "t", "tool", { name: "deploy", call: "c" });
    turn.add("m", "t", '{"target":"production","force":true}', "input");
    turn.emit({ type: "turn.wait", request: { id: `q-${turn.turn}`, ...JSON.parse(turn.rest || "{}"), kind: JSON.parse(turn.rest || "{}").kind ?? "approval", part: "t" } });
    const a = await turn.answer();
    turn.set("m", "t", { state: a.decision === "deny" ? "denied" : "done" });
    turn.close("m", "t");
    turn.text("m", "y", `decision ${a.decision ?? ""}, text ${a.text ?? ""}`);
    turn.done("m");
    turn.end();
  },
  // forever: runs until it is stopped.
  async forever(turn) {
    turn.start("m", "x", "text");
    turn.add("m", "x", "I begin.");
    turn.start("m", "t", "tool", { name: "sleep", call: "c" });
    turn.add("m", "t", '{"seconds":1000}', "input");
    while (turn.going()) await new Promise((r) => setTimeout(r, 20));
  },
};

if (process.argv[1]?.endsWith("gallery.mjs")) serve(scripts);
