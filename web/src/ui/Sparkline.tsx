const width = 160;
const height = 32;
const edge = 3;

interface SparklineProps {
  values: readonly (number | undefined)[];
  /** The content as a sentence, for screen readers. */
  label: string;
  /** The number of values for the full width; fewer values are aligned to the right. The default is the number of values. */
  slots?: number;
  /** A horizontal line at this value, if it is in range. */
  limit?: number;
  /** The index of the marked value; the default is the last. */
  at?: number;
}

/** A line chart. undefined values are gaps. */
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
      {/* A dot of zero length stays round when the chart is stretched. */}
      {markedValue !== undefined && <path className="mark" d={`M${x(at).toFixed(1)} ${y(markedValue).toFixed(1)}h0.01`} />}
    </svg>
  );
}
