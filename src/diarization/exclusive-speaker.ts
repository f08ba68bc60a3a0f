const NOBODY: readonly number[] = [];

/**
 * Who has the exclusive turn in each frame: the most active speaker, once it has been that for as long as the shortest turn, or as soon as who had it is
 * silent. Two who are about as active as each other would otherwise take turns of a few frames, all too short to be kept.
 */
export class ExclusiveSpeaker {
  /** An array that comes again and again: a new one for every frame would cost more than all else that is done for it. */
  readonly #current: [number] = [-1];
  /** The most active speaker of the frame before, and for how many frames on end another than the current one. */
  #leader = -1;
  #leads = 0;

  /** @param minFrames length of the shortest turn */
  constructor(private readonly minFrames: number) {}

  /**
   * @param active clusters, the most active first; frames come in order, without gaps
   * @returns the one of them, or nobody where nobody is
   */
  choose(active: readonly number[]): readonly number[] {
    if (active.length === 0) return NOBODY;
    const [first] = active;
    const [current] = this.#current;
    this.#leads = first === current ? 0 : first === this.#leader ? this.#leads + 1 : 1;
    this.#leader = first;
    if (!active.includes(current) || this.#leads >= this.minFrames) {
      this.#current[0] = first;
      this.#leads = 0;
    }
    return this.#current;
  }
}
