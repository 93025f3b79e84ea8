const width = 160;
const height = 32;
const edge = 3;

interface SparklineProps {
  values: readonly (number | undefined)[];
  /** What it shows, as a sentence. */
  label: string;
  /** How many values the whole width has; what there is stands at the right. Without it, it is filled. */
  slots?: number;
  /** A line at this value, where it is in sight. */
  limit?: number;
  /** The value that is marked; without it the last. */
  at?: number;
}

/** Values as a line; where there is none there is a gap. */
export function Sparkline({ values, label, slots = values.length, limit, at = values.length - 1 }: SparklineProps) {
  const top = Math.max(1e-9, ...values.map((v) => v ?? 0));
  const step = slots > 1 ? (width - edge) / (slots - 1) : 0;
  const x = (i: number) => width - edge - (values.length - 1 - i) * step;
  const y = (v: number) => height - edge - (v / top) * (height - 2 * edge);
  let path = "";
  let pen = false;
  values.forEach((v, i) => {
    if (v !== undefined) path += `${pen ? "L" : "M"}${x(i).toFixed(1)} ${y(v).toFixed(1)}`;
    pen = v !== undefined;
  });
  const markedValue = values[at];
  return (
    <svg className="sparkline" viewBox={`0 0 ${width} ${height}`} role="img" aria-label={label} preserveAspectRatio="none">
      <path className="ground" d={`M0 ${height - edge}H${width - edge}`} />
      {limit !== undefined && limit <= top && <path className="limit" d={`M0 ${y(limit).toFixed(1)}H${width - edge}`} />}
      <path d={path} />
      {/* A dot of no length, so that it stays round however wide the line is drawn. */}
      {markedValue !== undefined && <path className="mark" d={`M${x(at).toFixed(1)} ${y(markedValue).toFixed(1)}h0.01`} />}
    </svg>
  );
}
