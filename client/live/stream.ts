import { EventQueue } from './event-queue.ts';
import { FRAMES_PER_SECOND, Framer, SAMPLE_RATE_HZ } from './framer.ts';
import { Lead } from './lead.ts';
import { closeOf, parseMessage } from './messages.ts';
import type { LiveClose, LiveEvent, WebSocketLike } from './types.ts';

/** How often is looked whether a frame may go: WebSockets tell nobody when their buffer empties. */
const CHECK_MS = 10;
/** How long nothing may move after the end: no frame that still waits, nor the service with the 5 s of audio at most that it has to go through. */
const END_TIMEOUT_MS = 60_000;
/** Audio that may wait for its turn when a caller does not wait for `write`. */
const MAX_PENDING_SECONDS = 30;
/** Events that may wait to be read; a stream makes a few in a second. */
const MAX_UNREAD_EVENTS = 100_000;

const END_TIMED_OUT: LiveClose = {
  kind: 'lost',
  code: 1006,
  message: 'The service did not close the stream after its end.',
};

/**
 * A live stream: audio in, events out. One connection from its opening to its end: the address is good for a single use, so a
 * stream that was lost is not taken up again.
 *
 * ```ts
 * const opened = await openLiveStream(client, { latency: 1000 });
 * if (!opened.ok) throw new Error(opened.error.message);
 * const stream = opened.value;
 * microphone.ondata = (samples) => stream.write(samples);
 * for await (const event of stream) console.log(event);
 * console.log(await stream.closed);
 * ```
 */
export class LiveStream implements AsyncIterable<LiveEvent> {
  /** Settles when the connection has ended, however it does; never rejects. */
  readonly closed: Promise<LiveClose>;
  private readonly events = new EventQueue<LiveEvent>();
  private readonly framer: Framer;
  private settle!: (close: LiveClose) => void;
  private close: LiveClose | undefined;
  private lastError: string | undefined;
  private ended = false;
  private endTimer: ReturnType<typeof setTimeout> | undefined;
  private framesSent = 0;
  private readonly lead = new Lead();
  private pendingSamples = 0;
  /** Writes wait for each other: frames keep their order. */
  private queue: Promise<void> = Promise.resolve();

  /**
   * @param id of the stream, for `readLive`
   * @param socket open
   * @param maxBufferedFrames how much may wait in the socket before `write` waits
   * @param sampleRateHz that the stream was created with
   */
  constructor(
    readonly id: string,
    private readonly socket: WebSocketLike,
    private readonly maxBufferedFrames: number,
    private readonly sampleRateHz = SAMPLE_RATE_HZ,
  ) {
    this.framer = new Framer(sampleRateHz);
    this.closed = new Promise((settle) => {
      this.settle = settle;
    });
    socket.addEventListener('message', ({ data }) => this.receive(data));
    socket.addEventListener('close', ({ code, reason }) =>
      this.finish(closeOf(code, reason, this.ended, this.lastError)),
    );
    // A close event follows.
    socket.addEventListener('error', () => undefined);
  }

  /** Audio that has been handed to the connection, seconds. */
  get sentSeconds(): number {
    return this.framesSent / FRAMES_PER_SECOND;
  }

  /**
   * Sends audio, in any portions; it goes out in frames of 100 ms. Audio after `end` or after the end of the connection is
   * dropped.
   *
   * @param samples mono at the rate of the stream in −1…1; not to be changed before the promise settles
   * @returns settles when everything is in the connection's buffer and that is not full: wait for it before the next call. Audio
   * that comes too fast for the service is held back, as after a stall of the network. Who cannot wait, as with a microphone, may
   * run 30 s ahead; then the stream is given up.
   */
  write(samples: Float32Array): Promise<void> {
    this.pendingSamples += samples.length;
    if (this.pendingSamples > MAX_PENDING_SECONDS * this.sampleRateHz + samples.length) {
      this.finish({ kind: 'policy', message: 'The connection is too slow for the audio.' });
    }
    return this.inOrder(async () => {
      if (!this.ended) for (const frame of this.framer.push(samples)) await this.send(frame);
      this.pendingSamples -= samples.length;
    });
  }

  /**
   * Sends what is left, padded with silence, and the end of the stream; then waits until the service has told the rest and
   * closed the connection. Where nothing moves for 60 s, the stream is given up.
   */
  async end(): Promise<LiveClose> {
    this.renewEndTimer();
    await this.inOrder(async () => {
      if (this.ended || this.close) return;
      const rest = this.framer.flush();
      if (rest) await this.send(rest);
      if (this.close) return;
      this.ended = true;
      this.socket.send(JSON.stringify({ type: 'end_of_stream' }));
      this.renewEndTimer();
    });
    return this.closed;
  }

  /** Gives up: closes the connection without waiting for the rest. */
  abort(): void {
    this.finish({ kind: 'aborted' });
  }

  /** Events as they come, until the stream has ended. One reader at a time. */
  [Symbol.asyncIterator](): AsyncGenerator<LiveEvent> {
    return this.events[Symbol.asyncIterator]();
  }

  private inOrder(work: () => Promise<void>): Promise<void> {
    this.queue = this.queue.then(work);
    return this.queue;
  }

  private async send(frame: Uint8Array<ArrayBuffer>): Promise<void> {
    while (!this.close && this.lead.isUsedUp) await pause(CHECK_MS);
    if (this.close) return;
    this.socket.send(frame);
    this.framesSent++;
    this.lead.add(1);
    while (!this.close && this.bufferedFrames(frame) > this.maxBufferedFrames - 1) await pause(CHECK_MS);
    if (this.endTimer !== undefined) this.renewEndTimer();
  }

  private bufferedFrames(frame: Uint8Array): number {
    const frames = this.socket.bufferedAmount / frame.length;
    this.lead.isAtLeast(frames);
    return frames;
  }

  private renewEndTimer(): void {
    clearTimeout(this.endTimer);
    if (!this.close) this.endTimer = setTimeout(() => this.finish(END_TIMED_OUT), END_TIMEOUT_MS);
  }

  private receive(data: unknown): void {
    const event = parseMessage(data);
    if (!event || this.close) return;
    if (event.kind === 'error') this.lastError = event.message;
    // What is told of a moment shows that all before it has been processed.
    if (event.kind === 'start' || event.kind === 'end') {
      this.lead.isAtMost(this.framesSent - event.timestampSeconds * FRAMES_PER_SECOND);
    }
    this.events.push(event);
    if (this.events.length > MAX_UNREAD_EVENTS) {
      this.finish({ kind: 'policy', message: 'Nobody reads the events of this stream.' });
    }
  }

  /** The first cause counts. */
  private finish(close: LiveClose): void {
    if (this.close) return;
    this.close = close;
    clearTimeout(this.endTimer);
    // Nobody waits for an answer any more: one that never comes would keep a process alive.
    const isGivenUp = close.kind === 'aborted' || close === END_TIMED_OUT;
    if (isGivenUp && this.socket.terminate) this.socket.terminate();
    else this.socket.close();
    this.events.end();
    this.settle(close);
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((wake) => setTimeout(wake, ms));
}
