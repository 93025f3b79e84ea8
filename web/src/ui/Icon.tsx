// The icons, 24 by 24 pixels, drawn as strokes.

const paths = {
  plus: "M12 5v14M5 12h14",
  close: "M6 6l12 12M18 6L6 18",
  tick: "M5 13l4 4L19 7",
  cross: "M7 7l10 10M17 7L7 17",
  copy: "M9 9h11v11H9zM5 15H4V4h11v1",
  send: "M12 19V5M6 11l6-6 6 6",
  stop: "M7 7h10v10H7z",
  menu: "M4 7h16M4 12h16M4 17h16",
  search: "M11 18a7 7 0 1 0 0-14 7 7 0 0 0 0 14zM16 16l4 4",
  pencil: "M4 20h4L19 9l-4-4L4 16zM13 7l4 4",
  trash: "M5 7h14M10 7V4h4v3M7 7l1 13h8l1-13",
  clip: "M8 12l6-6a3 3 0 0 1 4 4l-8 8a5 5 0 0 1-7-7l7-7",
  down: "M12 5v14M6 13l6 6 6-6",
  fold: "M9 6l6 6-6 6",
  again: "M4 12a8 8 0 1 0 3-6M4 4v4h4",
  sun: "M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8zM12 2v2M12 20v2M2 12h2M20 12h2M5 5l1.4 1.4M17.6 17.6L19 19M5 19l1.4-1.4M17.6 6.4L19 5",
  moon: "M20 14a8 8 0 0 1-10-10 8 8 0 1 0 10 10z",
  gauge: "M4 18a8 8 0 1 1 16 0M12 18l4-6",
  wave: "M3 12h4l3-8 4 16 3-8h4",
  file: "M6 3h8l4 4v14H6zM14 3v4h4",
  out: "M14 4h5v16h-5M4 12h11M11 8l4 4-4 4",
  settings: "M4 7h8M16 7h4M14 5a2 2 0 1 0 0 4 2 2 0 0 0 0-4zM4 17h4M12 17h8M10 15a2 2 0 1 0 0 4 2 2 0 0 0 0-4z",
  save: "M12 4v11M7 11l5 5 5-5M5 20h14",
  warning: "M12 4l9 16H3zM12 10v4M12 17h.01",
  code: "M9 7l-5 5 5 5M15 7l5 5-5 5",
  turn: "M5 4v8a4 4 0 0 0 4 4h10M15 12l4 4-4 4",
  play: "M8 5l11 7-11 7z",
  pause: "M8 5v14M16 5v14",
  wrap: "M4 6h16M4 12h13a3 3 0 0 1 0 6h-4M15 15l-3 3 3 3M4 18h4",
  microphone: "M12 14a3 3 0 0 0 3-3V6a3 3 0 0 0-6 0v5a3 3 0 0 0 3 3zM6 11a6 6 0 0 0 12 0M12 17v4",
  muted: "M15 9V6a3 3 0 0 0-6-.5M9 9v2a3 3 0 0 0 4.5 2.6M6 11a6 6 0 0 0 9.5 4.9M18 11a6 6 0 0 1-.5 2.4M12 17v4M4 4l16 16",
  speaker: "M4 10v4h4l5 4V6l-5 4zM16 9a4 4 0 0 1 0 6M18.5 6.5a8 8 0 0 1 0 11",
  more: "M5 11.3a.7.7 0 1 0 0 1.4.7.7 0 0 0 0-1.4zM12 11.3a.7.7 0 1 0 0 1.4.7.7 0 0 0 0-1.4zM19 11.3a.7.7 0 1 0 0 1.4.7.7 0 0 0 0-1.4z",
  back: "M15 6l-6 6 6 6",
  pin: "M9 4h6l-1 6 3 3H7l3-3zM12 13v7",
  archive: "M4 5h16v4H4zM6 9v10h12V9M10 13h4",
  camera: "M4 8h4l2-3h4l2 3h4v11H4zM12 10a3 3 0 1 0 0 6 3 3 0 0 0 0-6z",
  select: "M4 6h16v12H4zM8 12l3 3 5-6",
  terminal: "M4 5h16v14H4zM7 9l3 3-3 3M12 15h5",
  face: "M12 4a8 8 0 1 0 0 16 8 8 0 0 0 0-16zM9 10h.01M15 10h.01M8.5 14a4 4 0 0 0 7 0",
  help: "M9 9a3 3 0 1 1 4 3c-1 .5-1 1-1 2M12 18h.01",
} as const;

export type IconName = keyof typeof paths;

export function Icon({ name }: { name: IconName }) {
  return <svg className="icon" viewBox="0 0 24 24" aria-hidden="true"><path d={paths[name]} /></svg>;
}
