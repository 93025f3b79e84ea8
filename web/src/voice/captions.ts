/** A sentence of an answer, and the position of its first sample. turn and start find it again after a reconnect. */
export interface Caption { text: string; turn: string; start: number; at: number }

/** The captions of an answer, in step with its sound: a sentence is shown when its first sample is played. */
export class Captions {
  private list: Caption[] = [];

  /** Adds a sentence. Sentences arrive before their audio and in order. */
  add(caption: Caption): void {
    this.list.push(caption);
  }

  /** Returns the sentence whose audio the sample at a position follows; undefined if there is none. */
  last(position: number): Caption | undefined {
    return this.list.findLast((c) => c.at < position);
  }

  /** Returns the text that is audible after a number of played samples. */
  textAt(played: number): string {
    return this.list.findLast((c) => c.at <= played)?.text ?? "";
  }

  /** Drops the sentences whose audio begins at a position or after it. */
  truncate(position: number): void {
    this.list = this.list.filter((c) => c.at < position);
  }

  clear(): void {
    this.list = [];
  }
}
