import { useEffect, useRef, useState } from "react";

import { Icon } from "../ui/Icon";
import type { Trace } from "./trace";

const speeds = [0.25, 1, 4, 16, Infinity];
/** The number of frames in which the fastest replay shows the whole answer. */
const frames = 60;

interface PlayerProps { trace: Trace; at: number; setAt: (n: number) => void; label: string }

/** Replays the events of an answer at their original pace, or by hand. */
export function Player({ trace, at, setAt, label }: PlayerProps) {
  const [speed, setSpeed] = useState(1);
  const [playing, setPlaying] = useState(false);
  const position = useRef(at);
  const { commits } = trace;
  useEffect(() => {
    position.current = at;
  }, [at]);
  useEffect(() => {
    if (!playing) return;
    if (position.current >= commits.length) setAt((position.current = 0));
    const from = commits[Math.max(0, position.current - 1)]?.arrival ?? 0;
    const begin = performance.now();
    let frame = requestAnimationFrame(function step() {
      const time = from + (performance.now() - begin) * speed;
      let n = position.current;
      if (speed === Infinity) n = Math.min(commits.length, n + Math.max(1, Math.ceil(commits.length / frames)));
      else while (n < commits.length && commits[n]!.arrival <= time) n++;
      if (n !== position.current) setAt((position.current = n));
      if (n >= commits.length) setPlaying(false);
      else frame = requestAnimationFrame(step);
    });
    return () => cancelAnimationFrame(frame);
  }, [playing, speed, commits, setAt]);
  return (
    <div className="player" role="group" aria-label="Replay">
      <button type="button" onClick={() => setPlaying(!playing)}><Icon name={playing ? "pause" : "play"} />{playing ? "Pause" : "Play"}</button>
      <input type="range" min={0} max={commits.length} step={1} value={at} aria-label="Moment of the answer" aria-valuetext={label} onChange={(e) => { setPlaying(false); setAt(Number(e.target.value)); }} />
      <select aria-label="Speed" value={speed} onChange={(e) => setSpeed(Number(e.target.value))}>
        {speeds.map((s) => <option key={s} value={s}>{s === Infinity ? "max" : `${s}×`}</option>)}
      </select>
    </div>
  );
}
