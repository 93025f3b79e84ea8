import { useEffect, useRef } from "react";

import type { Call } from "./call";

/** The quietest level that the meter shows, in dB below full scale. */
const quietest = -60;

const reduced = matchMedia("(prefers-reduced-motion: reduce)");

/** The level of the microphone. It is drawn without React, because it changes 50 times a second. */
export function Meter({ call }: { call: Call }) {
  const meter = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const draw = () => {
      const part = Math.max(0, 1 - call.level.get() / quietest);
      // With reduced motion the meter has four steps, so that it moves only if the loudness really changes.
      meter.current?.style.setProperty("--level", (reduced.matches ? Math.round(part * 4) / 4 : part).toFixed(3));
    };
    draw();
    return call.level.subscribe(draw);
  }, [call]);
  return <div ref={meter} className="meter" aria-hidden="true"><i /></div>;
}
