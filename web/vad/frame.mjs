// The frame of the speech detector. It runs a Silero model on the page's audio, and answers with the probability of speech.
//
// The frame has no origin and can't connect to anything, so the page passes it the WebAssembly and the model. src/voice/detectorFrame.ts
// is the other side. If the messages change, the version in build.mjs does too.

import { log } from "@ricky0123/vad-web/dist/logging.js";
import { Silero } from "@ricky0123/vad-web/dist/models/silero.js";
import * as ort from "onnxruntime-web/wasm";

/** The samples at 16 kHz that the model takes at a time: 32 ms. */
const windowSize = 512;

log.debug = () => {}; // the page's console stays empty

async function start({ runtime, model }, port) {
  ort.env.wasm.wasmBinary = runtime;
  ort.env.wasm.numThreads = 1; // more threads need a cross-origin isolated page
  const detector = await Silero.new(ort, () => Promise.resolve(new Uint8Array(model)));
  const samples = new Float32Array(windowSize);
  let size = 0;
  const take = async (pcm) => {
    const view = new DataView(pcm);
    for (let i = 0; i < pcm.byteLength; i += 2) {
      samples[size++] = view.getInt16(i, true) / 0x8000;
      if (size < windowSize) continue;
      size = 0;
      const { isSpeech } = await detector.process(samples);
      port.postMessage({ probability: isSpeech });
    }
  };
  // Each answer depends on the state that the last window left.
  let last = Promise.resolve();
  port.onmessage = ({ data }) => {
    last = last.then(() => take(data)).catch((err) => port.postMessage({ error: String(err) }));
  };
  port.postMessage({ ready: true });
}

addEventListener("message", ({ source, data, ports: [port] }) => {
  if (source === parent) start(data, port).catch((err) => port.postMessage({ error: String(err) }));
}, { once: true });
