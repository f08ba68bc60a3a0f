/** Steps that may pass in a row without a packet: real files have some tens. */
const MOST_STEPS = 200_000;
/** What a packet stands for: clusters and groups of one packet have so many elements around it. */
const STEPS_PER_PACKET = 4;

/**
 * How long a walk may go on without a packet. The shortest elements and pages are a few bytes long, so that a file of nothing else would keep a
 * walk busy for minutes. Packets and bytes passed give steps back: other tracks, however long, use nothing up.
 *
 * No more than `MOST_STEPS` are ever left, so a walk that begins in the middle never ends before one from the start does.
 */
export class StepBudget {
  #left = MOST_STEPS;

  /** @param bytesPerStep bytes that make up for a step: fewer than a real one has */
  constructor(
    private readonly bytesPerStep: number,
    private position: number,
  ) {}

  /** Accounts for steps up to `position`, and for the packets they gave. False once too many gave none. */
  spend(position: number, steps: number, packets: number): boolean {
    const back = (position - this.position) / this.bytesPerStep + STEPS_PER_PACKET * packets;
    this.position = position;
    this.#left = Math.min(MOST_STEPS, this.#left + back - steps);
    return this.#left > 0;
  }
}

/**
 * What to say where a walk was ended so.
 *
 * @param where 'The OGG file'
 */
export const withoutEnd = (where: string): string =>
  `${where} goes on for very long with nothing in it; what may come behind that was left out.`;
