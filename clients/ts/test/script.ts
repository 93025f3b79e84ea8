/** A stream that a test makes line by line. */
export class Script implements AsyncIterable<object> {
  private readonly lines: object[] = [];
  private over = false;
  private wake: () => void = () => {};

  say(...lines: object[]): void {
    this.lines.push(...lines);
    this.wake();
  }

  end(): void {
    this.over = true;
    this.wake();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<object> {
    for (;;) {
      const line = this.lines.shift();
      if (line) yield line;
      else if (this.over) return;
      else await new Promise<void>((resolve) => (this.wake = resolve));
    }
  }
}

// The beginning of a turn in the dialect leat, in which a message says something, thinks, calls a tool and asks for leave.
export const begin = [
  { type: "turn.start", turn: "t" },
  { type: "message.start", turn: "t", message: "m", role: "assistant" },
];
export const part = (id: string, kind: string, more: object = {}): object => ({ type: "part.start", turn: "t", message: "m", part: id, kind, ...more });
export const append = (id: string, text: string, field?: string): object => ({ type: "part.append", turn: "t", message: "m", part: id, text, ...(field && { field }) });
export const replace = (id: string, text: string): object => ({ type: "part.replace", turn: "t", message: "m", part: id, text });
export const update = (id: string, more: object): object => ({ type: "part.update", turn: "t", message: "m", part: id, ...more });
export const end = (more: object = { outcome: "completed" }): object => ({ type: "turn.end", turn: "t", ...more });
