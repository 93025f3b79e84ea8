// The frame in which the speech detector runs: it is WebAssembly, which the policy of the page forbids.

import { base, readBody } from "../gateway";
import { Detector, type DetectorState } from "./detector";

/** How long the frame may take to compile the model, in milliseconds. A frame that the browser blocks sends no error. */
const patience = 30_000;

/** Loads the detector of the gateway. onState gets the changes of its state; after a fault and after close the frame is removed. */
export function openDetector(onState: (state: DetectorState) => void): Detector {
  const { port1, port2 } = new MessageChannel();
  const frame = document.createElement("iframe");
  let timer: ReturnType<typeof setTimeout> | undefined;
  const detector = new Detector(port1, (state) => {
    clearTimeout(timer);
    if (state !== "on") frame.remove();
    onState(state);
  });
  frame.className = "detector"; // a pixel of the window: browsers give a hidden frame less of the processor
  frame.title = "Speech detector";
  frame.tabIndex = -1;
  frame.ariaHidden = "true";
  frame.src = `${base}/ui/vad/detector.html`;
  const loaded = new Promise((resolve) => { frame.onload = resolve; });
  document.body.append(frame);
  const open = async () => {
    // The frame can't load anything, so the page passes it the files.
    const [runtime, model] = await Promise.all([load("runtime.wasm"), load("model.onnx"), loaded]);
    timer = setTimeout(() => detector.fail("unavailable"), patience);
    // The frame has no origin, so none can be required. Its policy keeps other documents out of it.
    frame.contentWindow?.postMessage({ runtime, model }, "*", [port2, runtime, model]);
  };
  open().catch(() => detector.fail("unavailable"));
  return detector;
}

async function load(name: string): Promise<ArrayBuffer> {
  const { res, body } = await readBody(`ui/vad/${name}`, { cache: "default" });
  if (!res.ok) throw new Error(`${name}: status ${res.status}`);
  return body.arrayBuffer();
}
