/** Passes on what comes; until there is somebody to take it, the last of it waits. */
export class Recent<Item> {
  private items: Item[] = [];
  private taker: ((item: Item) => void) | undefined;

  /** @param most items that wait: the older ones go */
  constructor(private readonly most: number) {}

  put(item: Item): void {
    if (this.taker) {
      this.taker(item);
      return;
    }
    this.items.push(item);
    if (this.items.length > this.most) this.items.shift();
  }

  /** From now on everything goes there, what waits first. */
  take(taker: (item: Item) => void): void {
    this.taker = taker;
    const items = this.items;
    this.items = [];
    for (const item of items) taker(item);
  }
}
