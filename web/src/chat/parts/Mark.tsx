/** A status icon. The shape and the label identify the status; color is only an addition. */
export type Status = "running" | "waiting" | "done" | "failed" | "denied" | "stopped";

const words: Record<Status, string> = { running: "running", waiting: "waiting for you", done: "done", failed: "failed", denied: "denied", stopped: "stopped" };

const shapes: Record<Status, string> = {
  running: "M6 3a3 3 0 1 1 0 6 3 3 0 0 1 0-6z", // filled
  waiting: "M6 2.5a3.5 3.5 0 1 1 0 7 3.5 3.5 0 0 1 0-7z",
  done: "M2.5 6.5l2.5 2.5 4.5-5.5",
  failed: "M3 3l6 6M9 3l-6 6",
  denied: "M6 1.75a4.25 4.25 0 1 1 0 8.5 4.25 4.25 0 0 1 0-8.5zM3 3l6 6",
  stopped: "M3 3h6v6H3z", // filled
};

/** named gives the icon an accessible name. Leave it out if the status is next to the icon as text. */
export function Mark({ of, named = true }: { of: Status; named?: boolean }) {
  return (
    <svg className={`icon mark ${of}`} viewBox="0 0 12 12" {...(named ? { role: "img", "aria-label": words[of] } : { "aria-hidden": true })}>
      <path d={shapes[of]} />
    </svg>
  );
}
