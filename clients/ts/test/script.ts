/** A stream that a test writes line by line. */
export class Script implements AsyncIterable<object> {
  private readonly lines: object[] = [];
  private isFinished = false;
  private wake: () => void = () => {};

  say(...lines: object[]): void {
    this.lines.push(...lines);
    this.wake();
  }

  end(): void {
    this.isFinished = true;
    this.wake();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<object> {
    for (;;) {
      const line = this.lines.shift();
      if (line) yield line;
      else if (this.isFinished) return;
      else await new Promise<void>((resolve) => (this.wake = resolve));
    }
  }
}

// Events of a turn in the dialect leat.
export const begin = [
  { type: "turn.start", turn: "t" },
  { type: "message.start", turn: "t", message: "m", role: "assistant" },
];
export const part = (id: string, kind: string, extra: object = {}): object => ({ type: "part.start", turn: "t", message: "m", part: id, kind, ...extra });
export const append = (id: string, text: string, field?: string): object => ({ type: "part.append", turn: "t", message: "m", part: id, text, ...(field && { field }) });
export const replace = (id: string, text: string): object => ({ type: "part.replace", turn: "t", message: "m", part: id, text });
export const update = (id: string, extra: object): object => ({ type: "part.update", turn: "t", message: "m", part: id, ...extra });
export const end = (extra: object = { outcome: "completed" }): object => ({ type: "turn.end", turn: "t", ...extra });
