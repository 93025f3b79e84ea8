// Reads the gateway's metrics once a second while the page is visible.

import { useEffect, useState } from "react";

import { call, readBody as readAll } from "../gateway";
import { parse } from "./metrics";
import { add, type Snapshot, metricNames, type Sampled } from "./tiles";

/** The minimum interval between readings, in milliseconds. */
const interval = 1000;

export interface Status { state?: string; uptime?: number }

export interface Readings { all: readonly (Sampled | undefined)[]; status: Status; error: string }

export function useReadings(): Readings {
  const [readings, setReadings] = useState<Readings>({ all: [], status: {}, error: "" });
  useEffect(() => {
    let isMounted = true;
    let timer: ReturnType<typeof setTimeout> | undefined;
    let last = -Infinity;
    let isLoading = false;
    const ask = async () => {
      try {
        const [metrics, snapshot, status] = await Promise.all([
          readAll("metrics").then(({ res: r, body }) => (r.ok ? body.text() : Promise.reject(new Error(r.status === 401 || r.status === 403 ? "Only the gateway’s operator can see this page." : `The gateway answered ${r.status}.`)))),
          call<Snapshot>("api/overview"), call<Status>("api/status"),
        ]);
        const sample = { at: Date.now(), samples: parse(metrics).filter((s) => metricNames.test(s.name)), look: snapshot };
        if (isMounted) setReadings((r) => ({ all: add(r.all, sample, interval), status, error: "" }));
      } catch (err) {
        const away = (err as { reason?: string }).reason === "network";
        if (isMounted) setReadings((r) => ({ ...r, error: away ? "The gateway can’t be reached." : (err as Error).message }));
      }
    };
    const go = async () => {
      clearTimeout(timer);
      if (!isMounted || isLoading || document.hidden) return; // it continues when the page becomes visible
      const waitTime = last + interval - performance.now();
      if (waitTime <= 0) {
        last = performance.now();
        isLoading = true;
        await ask();
        isLoading = false;
      }
      timer = setTimeout(() => void go(), Math.max(0, last + interval - performance.now()));
    };
    const onVisible = () => void go();
    document.addEventListener("visibilitychange", onVisible);
    void go();
    return () => {
      isMounted = false;
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", onVisible);
    };
  }, []);
  return readings;
}
