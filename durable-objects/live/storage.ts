import type { ChannelState } from '../../src/jobs/live/channel.ts';
import type { AudioFormat } from '../../src/jobs/live/frames.ts';
import type { LiveOutcome } from '../../src/jobs/live/ports.ts';
import type { LiveSettings } from '../../src/live/types.ts';
import { erase } from '../erase.ts';

/** A value of the storage has at most 2 MB. */
const CHUNK_BYTES = 1024 * 1024;

/** What a stream's object knows of its stream; gone when the stream has ended. */
export interface StoredStream {
  readonly id: string;
  readonly tokenDigest: Uint8Array;
  readonly format: AudioFormat;
  readonly settings: LiveSettings;
  readonly phase:
    | { readonly name: 'waiting'; readonly expiresAt: number }
    | { readonly name: 'running'; readonly startedAt: number }
    | EndingPhase;
}

/** Decided and perhaps not written to the database yet. */
interface EndingPhase {
  readonly name: 'ending';
  readonly outcome: LiveOutcome;
  readonly endedAt: number;
}

/** A connection at rest. */
export interface Suspended {
  readonly state: ChannelState;
  readonly lastFrameAt: number;
  readonly session: Uint8Array;
}

interface SuspendedHead extends Omit<Suspended, 'session'> {
  readonly chunks: number;
}

/** The storage of one stream. Nothing is written for a stream that was not opened: looking at one leaves no trace. */
export class StreamStorage {
  constructor(private readonly storage: DurableObjectStorage) {}

  get stream(): StoredStream | undefined {
    return this.storage.kv.get<StoredStream>('stream');
  }

  set stream(stream: StoredStream) {
    this.storage.kv.put('stream', stream);
  }

  /** Whether audio came since the connection was last stored: what is stored then does not hold all of it. */
  get isBehind(): boolean {
    return this.storage.kv.get<boolean>('behind') ?? false;
  }

  markBehind(): void {
    this.storage.kv.put('behind', true);
  }

  get suspended(): Suspended | undefined {
    const head = this.storage.kv.get<SuspendedHead>('suspended');
    if (!head) return undefined;
    const { chunks, ...rest } = head;
    const parts = Array.from({ length: chunks }, (_, i) => this.storage.kv.get<Uint8Array>(`session/${i}`)!);
    const session = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
    let offset = 0;
    for (const part of parts) {
      session.set(part, offset);
      offset += part.length;
    }
    return { ...rest, session };
  }

  suspend({ session, ...rest }: Suspended): void {
    this.storage.transactionSync(() => {
      for (const [key] of this.storage.kv.list({ prefix: 'session/' })) this.storage.kv.delete(key);
      const chunks = Math.ceil(session.length / CHUNK_BYTES);
      for (let i = 0; i < chunks; i++) {
        this.storage.kv.put(`session/${i}`, session.slice(i * CHUNK_BYTES, (i + 1) * CHUNK_BYTES));
      }
      this.storage.kv.put('suspended', { ...rest, chunks } satisfies SuspendedHead);
      this.storage.kv.put('behind', false);
    });
  }

  /**
   * Burns the token of a stream that waits for its connection: of any number of calls with it, one gets the stream.
   * @returns undefined for a wrong, used or expired token
   */
  burn(tokenDigest: Uint8Array, now: number): StoredStream | undefined {
    return this.storage.transactionSync(() => {
      const { stream } = this;
      if (stream?.phase.name !== 'waiting' || stream.phase.expiresAt <= now) return undefined;
      if (!crypto.subtle.timingSafeEqual(stream.tokenDigest, tokenDigest)) return undefined;
      const running: StoredStream = { ...stream, phase: { name: 'running', startedAt: now } };
      this.stream = running;
      return running;
    });
  }

  /**
   * Decides the end: from here on nobody connects, and no connection begins any more.
   * @returns what was decided first, and when: a database that is away must not make a stream longer
   */
  end(stream: StoredStream, outcome: LiveOutcome, now: number): EndingPhase {
    const { phase } = this.stream ?? stream;
    if (phase.name === 'ending') return phase;
    const ending: EndingPhase = { name: 'ending', outcome, endedAt: now };
    this.stream = { ...stream, phase: ending };
    return ending;
  }

  async forget(): Promise<void> {
    await erase(this.storage);
  }
}
