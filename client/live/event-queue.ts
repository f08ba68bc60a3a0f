/** Events that wait to be read, in order. One reader at a time. */
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

  /** What waits can still be read; then the iteration ends. */
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
