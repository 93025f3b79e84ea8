// The times at which the gateway was down and this page was open. No turn runs then, so they don't count as a turn's time. A lost connection
// alone stops no turn.

export class Outages {
  private readonly list: { from: number; to: number }[] = [];
  private lostAt: number | undefined;

  /** Records that the connection is lost; lastHeard is the time of the last data. */
  disconnected(lastHeard: number): void {
    this.lostAt ??= lastHeard;
  }

  /** Records that the gateway has been up since a time. If it has started since the connection was lost, it was down before. */
  connected(upSince: number): void {
    if (this.lostAt !== undefined && upSince > this.lostAt) this.list.push({ from: this.lostAt, to: upSince });
    this.lostAt = undefined;
  }

  /** Returns for how long the gateway was down between two times, in milliseconds. */
  during(from: number, to: number): number {
    return this.list.reduce((sum, o) => sum + Math.max(0, Math.min(to, o.to) - Math.max(from, o.from)), 0);
  }
}
