// The gateway's numbers once a second, as long as the page is seen.

import { useEffect, useState } from "react";

import { call, readBody as readAll } from "../gateway";
import { parse } from "./metrics";
import { add, type Snapshot, metricNames, type Sampled } from "./tiles";

/** It is never read more often. */
const every = 1000;

export interface Status { state?: string; uptime?: number; pendingRestart?: boolean; pendingRestartReasons?: string[] }

export interface Readings { all: readonly (Sampled | undefined)[]; status: Status; error: string }

export function useReadings(): Readings {
  const [readings, setReadings] = useState<Readings>({ all: [], status: {}, error: "" });
  useEffect(() => {
    let wanted = true;
    let timer: ReturnType<typeof setTimeout> | undefined;
    let last = -Infinity;
    let asking = false;
    const ask = async () => {
      try {
        const [metrics, look, status] = await Promise.all([
          readAll("metrics").then(({ res: r, body }) => (r.ok ? body.text() : Promise.reject(new Error(r.status === 401 || r.status === 403 ? "Only the gateway’s operator can see this page." : `The gateway answered ${r.status}.`)))),
          call<Snapshot>("api/overview"), call<Status>("api/status"),
        ]);
        const now = { at: Date.now(), samples: parse(metrics).filter((s) => metricNames.test(s.name)), look };
        if (wanted) setReadings((r) => ({ all: add(r.all, now, every), status, error: "" }));
      } catch (err) {
        const away = (err as { reason?: string }).reason === "network";
        if (wanted) setReadings((r) => ({ ...r, error: away ? "The gateway can’t be reached." : (err as Error).message }));
      }
    };
    const go = async () => {
      clearTimeout(timer);
      if (!wanted || asking || document.hidden) return; // it continues when the page becomes visible
      const early = last + every - performance.now();
      if (early <= 0) {
        last = performance.now();
        asking = true;
        await ask();
        asking = false;
      }
      timer = setTimeout(() => void go(), Math.max(0, last + every - performance.now()));
    };
    const seen = () => void go();
    document.addEventListener("visibilitychange", seen);
    void go();
    return () => {
      wanted = false;
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", seen);
    };
  }, []);
  return readings;
}
