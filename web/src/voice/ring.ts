/** A queue of samples in a ring. It grows up to a limit, so that a sender that ignores the pace can't fill the memory. */
export class Ring {
  private samples: Float32Array;
  private start = 0;
  private size = 0;

  constructor(capacity: number, private readonly limit: number) {
    this.samples = new Float32Array(capacity);
  }

  /** The number of queued samples. */
  get length(): number {
    return this.size;
  }

  /** Appends samples and returns how many had room. */
  write(input: Float32Array): number {
    const n = Math.min(input.length, this.limit - this.size);
    if (this.size + n > this.samples.length) this.grow(this.size + n);
    const at = (this.start + this.size) % this.samples.length;
    const head = Math.min(n, this.samples.length - at);
    this.samples.set(input.subarray(0, head), at);
    this.samples.set(input.subarray(head, n), 0);
    this.size += n;
    return n;
  }

  /** Moves samples to the output's beginning and returns how many there were. */
  read(output: Float32Array): number {
    const n = Math.min(output.length, this.size);
    const head = Math.min(n, this.samples.length - this.start);
    output.set(this.samples.subarray(this.start, this.start + head));
    output.set(this.samples.subarray(0, n - head), head);
    this.start = (this.start + n) % this.samples.length;
    this.size -= n;
    return n;
  }

  /** Drops all samples but the first n. */
  truncate(n: number): void {
    this.size = Math.min(this.size, n);
  }

  private grow(minCapacity: number): void {
    const larger = new Float32Array(Math.min(this.limit, Math.max(minCapacity, this.samples.length * 2)));
    const { size } = this;
    this.read(larger);
    this.samples = larger;
    this.start = 0;
    this.size = size;
  }
}
