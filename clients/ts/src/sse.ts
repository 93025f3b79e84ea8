/** Parses the subset of server-sent events that the gateway uses: data lines and comments, split at any byte. */
export class EventReader {
  private buffer = "";
  private data: string[] = [];

  /** Parses a piece and calls event with the data of each complete event. */
  feed(piece: string, event: (data: string) => void): void {
    const lines = (this.buffer + piece).split("\n");
    this.buffer = lines.pop() ?? "";
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
