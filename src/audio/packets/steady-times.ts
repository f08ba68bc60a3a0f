import type { Clock } from './clock.ts';
import type { CountedRun, CountedRuns } from './counted-runs.ts';

/**
 * Sound whose times must confirm a jump: packets that a network or a busy machine held up are stamped late, and their
 * successors catch up.
 */
const CONFIRM_SECONDS = 0.5;
/** Packets looked at for it: more than so much sound has, save of the very shortest. */
const MAX_PACKETS_AHEAD = 256;

/** Tells jumps of the times that last from stamps that are late or early for a moment. */
export class SteadyTimes {
  /** Numbers of the packets whose times contradict jumps forward and back that begin before them. */
  readonly #contradicted = { forward: -1, back: -1 };

  constructor(
    private readonly clock: Clock,
    private readonly runs: CountedRuns,
    private readonly rateHz: number,
  ) {}

  /**
   * How much of a jump lasts: all of it, where the packets after agree within the tolerance of the clock.
   *
   * @param packet the number of the packet at which the times jump, number `i` of `run`
   */
  async lasting(jump: number, packet: number, run: CountedRun, i: number): Promise<number> {
    if (this.clock.hasTooManyJumps) return jump;
    const direction = jump > 0 ? 'forward' : 'back';
    if (packet < this.#contradicted[direction]) return 0;
    let least = jump;
    let count = 0;
    for await (const { samples, seconds } of this.runs.ahead(run, i)) {
      if (samples > CONFIRM_SECONDS * this.rateHz || count++ > MAX_PACKETS_AHEAD) break;
      if (seconds === undefined) continue;
      const offset = this.clock.offsetOf(seconds * this.rateHz, samples);
      least = jump > 0 ? Math.min(least, offset) : Math.max(least, offset);
      if (jump > 0 ? least > this.clock.toleranceSamples : least < -this.clock.toleranceSamples) continue;
      this.#contradicted[direction] = packet + count - 1;
      return 0;
    }
    return Math.abs(jump - least) <= this.clock.toleranceSamples ? jump : least;
  }
}
