/** Reads server-sent events, as far as the gateway uses them: data lines and comments, in any pieces. */
export class EventReader {
  private rest = "";
  private data: string[] = [];

  /** Takes what came and calls back with the data of each event that is whole. */
  feed(piece: string, event: (data: string) => void): void {
    const lines = (this.rest + piece).split("\n");
    this.rest = lines.pop() ?? "";
    for (const raw of lines) {
      const line = raw.endsWith("\r") ? raw.slice(0, -1) : raw;
      if (line.startsWith("data:")) {
        this.data.push(line.slice(line[5] === " " ? 6 : 5));
      } else if (line === "" && this.data.length > 0) {
        const data = this.data.join("\n");
        this.data = [];
        event(data);
      }
    }
  }
}
