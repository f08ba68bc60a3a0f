import type { ChannelSnapshot } from '../src/jobs/live-channel.ts';
import type { LiveOutcome, StreamSetup } from '../src/jobs/live-ports.ts';
import { erase } from './erase.ts';

/** A stored value has at most 2 MB. A session has 1.1 MB, and each written value costs the same, whatever its size. */
const CHUNK_BYTES = 1536 * 1024;

/** Stored state of a stream, erased when the stream has ended. */
export interface StoredStream extends Omit<StreamSetup, 'streamId' | 'expiresAt'> {
  readonly id: string;
  readonly phase: { readonly name: 'waiting'; readonly expiresAt: number } | RunningPhase | EndingPhase;
}

export interface RunningPhase {
  readonly name: 'running';
  readonly startedAt: number;
  /** Number of the stream's current connection; messages of earlier connections are ignored. */
  readonly connection: number;
  /** The last connection is lost. */
  readonly dropped?: Drop;
}

/** The lost connection of a resumable stream. */
export interface Drop {
  readonly at: number;
  readonly receivedSeconds: number;
  /** The service lost the connection, together with the object's memory; not the client. */
  readonly isOurs: boolean;
}

/** The end is decided, but perhaps not written to the database yet. */
interface EndingPhase {
  readonly name: 'ending';
  readonly outcome: LiveOutcome;
  readonly endedAt: number;
}

/** Snapshot from which a stream continues. */
export interface Suspended extends ChannelSnapshot {
  readonly lastFrameAt: number;
}

interface SuspendedHead extends Omit<Suspended, 'session'> {
  readonly chunks: number;
}

/** The storage of one stream. Reads write nothing, so that a request for an unknown stream stores nothing. */
export class StreamStorage {
  constructor(private readonly storage: DurableObjectStorage) {}

  get stream(): StoredStream | undefined {
    return this.storage.kv.get<StoredStream>('stream');
  }

  set stream(stream: StoredStream) {
    this.storage.kv.put('stream', stream);
  }

  /** Whether audio has arrived since the last snapshot, so that the snapshot is incomplete. */
  get hasUnsavedAudio(): boolean {
    return this.storage.kv.get<boolean>('behind') ?? false;
  }

  markUnsavedAudio(): void {
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

  /** Frames that `suspended` holds. */
  get keptFrames(): number {
    return this.storage.kv.get<SuspendedHead>('suspended')?.state.receivedFrames ?? 0;
  }

  /**
   * @param hasUnsavedAudio whether more audio has arrived than the snapshot holds
   * @param resumeDigest SHA-256 of the token that resumes the stream from here; it replaces the one before
   */
  suspend({ session, ...rest }: Suspended, hasUnsavedAudio: boolean, resumeDigest?: Uint8Array): void {
    this.storage.transactionSync(() => {
      const chunks = Math.ceil(session.length / CHUNK_BYTES);
      const before = this.storage.kv.get<SuspendedHead>('suspended')?.chunks ?? 0;
      for (let i = chunks; i < before; i++) this.storage.kv.delete(`session/${i}`);
      for (let i = 0; i < chunks; i++) {
        this.storage.kv.put(`session/${i}`, session.slice(i * CHUNK_BYTES, (i + 1) * CHUNK_BYTES));
      }
      this.storage.kv.put('suspended', { ...rest, chunks } satisfies SuspendedHead);
      if (hasUnsavedAudio !== this.hasUnsavedAudio) this.storage.kv.put('behind', hasUnsavedAudio);
      if (resumeDigest) this.allowResume(resumeDigest);
    });
  }

  /** Sets the only token that resumes the stream. */
  allowResume(digest: Uint8Array): void {
    this.storage.kv.put('resume', digest);
  }

  /**
   * Burns the token of a stream that waits for its connection; only the first call with the token gets the stream.
   * @returns undefined for a wrong, used or expired token
   */
  burn(tokenDigest: Uint8Array, now: number): StoredStream | undefined {
    return this.storage.transactionSync(() => {
      const { stream } = this;
      if (stream?.phase.name !== 'waiting' || stream.phase.expiresAt <= now) return undefined;
      if (!crypto.subtle.timingSafeEqual(stream.tokenDigest, tokenDigest)) return undefined;
      const running: StoredStream = { ...stream, phase: { name: 'running', startedAt: now, connection: 0 } };
      this.stream = running;
      return running;
    });
  }

  /**
   * Burns the last token with which a running stream can be resumed; only the first call with the token gets the
   * stream, which continues from its last snapshot.
   * @param droppedAfter a connection that was lost at this moment or before is not resumed, ms since the Unix epoch
   * @returns undefined for any other token
   */
  burnResume(digest: Uint8Array, droppedAfter: number): StoredStream | undefined {
    return this.storage.transactionSync(() => {
      const { stream } = this;
      const expected = this.storage.kv.get<Uint8Array>('resume');
      if (stream?.phase.name !== 'running' || !expected) return undefined;
      const { dropped, ...phase } = stream.phase;
      if (dropped && dropped.at <= droppedAfter) return undefined;
      if (!crypto.subtle.timingSafeEqual(expected, digest)) return undefined;
      this.storage.kv.delete('resume');
      this.storage.kv.put('behind', false);
      const resumed: StoredStream = { ...stream, phase: { ...phase, connection: phase.connection + 1 } };
      this.stream = resumed;
      return resumed;
    });
  }

  /** Records that the connection of a running stream is lost. */
  drop(stream: StoredStream, phase: RunningPhase, drop: Drop): void {
    this.stream = { ...stream, phase: { ...phase, dropped: drop } };
  }

  /**
   * Decides the end of the stream: no connection begins any more.
   * @returns the end that was decided first, with its time: an unavailable database must not prolong a stream
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
