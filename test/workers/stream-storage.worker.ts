import { DurableObject } from 'cloudflare:workers';
import { type StoredStream, StreamStorage } from '../../durable-objects/live-storage.ts';
import type { ChannelState } from '../../src/jobs/live-channel.ts';
import type { LiveOutcome } from '../../src/jobs/live-ports.ts';

const STATE = { receivedFrames: 5 } as unknown as ChannelState;
const sessionOf = (bytes: number) => Uint8Array.from({ length: bytes }, (_, at) => (at * 7919) >> 4);

/** The storage of a live stream's object, on a real Durable Object. */
export class StreamObject extends DurableObject {
  readonly #streams = new StreamStorage(this.ctx.storage);

  async set(stream: StoredStream) {
    this.#streams.stream = stream;
  }

  async stream() {
    return this.#streams.stream;
  }

  async burn(tokenDigest: Uint8Array, now: number) {
    return this.#streams.burn(tokenDigest, now);
  }

  async allowResume(digest: Uint8Array) {
    this.#streams.allowResume(digest);
  }

  async burnResume(digest: Uint8Array, droppedAfter: number) {
    return this.#streams.burnResume(digest, droppedAfter);
  }

  async drop(at: number) {
    const { stream } = this.#streams;
    if (stream?.phase.name === 'running')
      this.#streams.drop(stream, stream.phase, { at, receivedSeconds: 7, isOurs: false });
  }

  async end(stream: StoredStream, outcome: LiveOutcome, now: number) {
    return this.#streams.end(stream, outcome, now);
  }

  async markUnsavedAudio() {
    this.#streams.markUnsavedAudio();
  }

  /** @param bytes length of the session, whose bytes follow from their positions */
  async suspend(lastFrameAt: number, bytes: number) {
    this.#streams.suspend({ state: STATE, lastFrameAt, session: sessionOf(bytes) }, false);
  }

  /** The stored state of a suspended connection; of its session the length and whether the bytes are correct. */
  async rest() {
    const { suspended, hasUnsavedAudio } = this.#streams;
    if (!suspended) return { hasUnsavedAudio };
    const { session, ...rest } = suspended;
    const isWhole = sessionOf(session.length).every((byte, at) => session[at] === byte);
    return { hasUnsavedAudio, ...rest, bytes: session.length, isWhole };
  }

  async setAlarm(at: number) {
    await this.ctx.storage.setAlarm(at);
  }

  override alarm() {}

  /** Erases the storage in a transaction, which fails. @returns the error */
  async forgetInVain() {
    return this.ctx.storage.transaction(() =>
      this.#streams.forget().then(
        () => undefined,
        (error: unknown) => String(error),
      ),
    );
  }

  async forget() {
    await this.#streams.forget();
  }

  async left() {
    const keys = [...this.ctx.storage.kv.list()].map(([key]) => key);
    return { keys, hasAlarm: (await this.ctx.storage.getAlarm()) !== null };
  }

  /** Evicts the object from memory; the call fails. */
  async lose() {
    this.ctx.abort();
  }
}

export default {} satisfies ExportedHandler;
