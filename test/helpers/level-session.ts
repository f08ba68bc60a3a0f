import type { LiveEvent, LiveSession } from '../../src/live/live-session.ts';

/** Samples of one speaker lie near `(speaker + 1) / 10`; 0 is silence. */
const speakerAt = (sample: number) => Math.round(Math.abs(sample) * 10) - 1;
const SAMPLE_RATE_HZ = 16_000;
const SPEAKERS = 8;

interface State {
  readonly received: number;
  readonly speaker: number;
}

/**
 * A session that takes the speaker from the last sample of each push. Its results are exact and immediate, so that tests
 * of the protocol do not depend on models. It pauses in every push, as a real session does.
 */
export class LevelSession implements LiveSession {
  #received: number;
  #speaker: number;
  #isBusy = false;

  constructor(
    private readonly pause: () => Promise<void> = async () => {},
    snapshot?: Uint8Array,
  ) {
    const state: State = snapshot ? JSON.parse(new TextDecoder().decode(snapshot)) : { received: 0, speaker: -1 };
    this.#received = state.received;
    this.#speaker = state.speaker;
  }

  push(samples: Float32Array): Promise<LiveEvent[]> {
    return this.#alone(() => {
      if (!samples.every((sample) => Number.isFinite(sample) && Math.abs(sample) <= 1)) throw new Error('bad samples');
      const found = Math.min(SPEAKERS - 1, speakerAt(samples.at(-1)!));
      const events = found === this.#speaker ? [] : [...this.#end(), ...this.#start(found)];
      this.#received += samples.length;
      return events;
    });
  }

  finish(): Promise<LiveEvent[]> {
    return this.#alone(() => this.#end());
  }

  snapshot(): Uint8Array {
    const state: State = { received: this.#received, speaker: this.#speaker };
    return new TextEncoder().encode(JSON.stringify(state));
  }

  async #alone(work: () => LiveEvent[]): Promise<LiveEvent[]> {
    if (this.#isBusy) throw new Error('calls overlap');
    this.#isBusy = true;
    await this.pause();
    this.#isBusy = false;
    return work();
  }

  #start(speaker: number): LiveEvent[] {
    this.#speaker = speaker;
    return speaker < 0 ? [] : [{ kind: 'start', speaker, timestampSeconds: this.#seconds() }];
  }

  #end(): LiveEvent[] {
    const speaker = this.#speaker;
    this.#speaker = -1;
    return speaker < 0 ? [] : [{ kind: 'end', speaker, timestampSeconds: this.#seconds() }];
  }

  #seconds(): number {
    return Math.round((this.#received / SAMPLE_RATE_HZ) * 1000) / 1000;
  }
}
