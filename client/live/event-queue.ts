/** A queue of events for one reader at a time. */
export class EventQueue<T> implements AsyncIterable<T> {
  private readonly waiting: T[] = [];
  private ended = false;
  private wake: () => void = () => undefined;

  get length(): number {
    return this.waiting.length;
  }

  push(event: T): void {
    this.waiting.push(event);
    this.wake();
  }

  /** Ends the iteration after the waiting events. */
  end(): void {
    this.ended = true;
    this.wake();
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<T> {
    for (;;) {
      const event = this.waiting.shift();
      if (event !== undefined) {
        yield event;
      } else {
        if (this.ended) return;
        await new Promise<void>((wake) => {
          this.wake = wake;
        });
      }
    }
  }
}
