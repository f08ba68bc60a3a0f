import { EventQueue } from './event-queue.ts';
import { FRAMES_PER_SECOND, Framer, SAMPLE_RATE_HZ } from './framer.ts';
import { Lead } from './lead.ts';
import { type ControlMessage, closeOf, parseMessage } from './messages.ts';
import { ResumeBuffer } from './resume-buffer.ts';
import type { LiveClose, LiveEvent, WebSocketLike } from './types.ts';

/** How often is looked whether a frame may go: WebSockets tell nobody when their buffer empties. */
const CHECK_MS = 10;
/** How long nothing may move after the end: no frame that still waits, nor the service with the 5 s of audio at most that it has to go through. */
const END_TIMEOUT_MS = 60_000;
/** Audio that may wait for its turn when a caller does not wait for `write`. */
const MAX_PENDING_SECONDS = 30;
/** The same in a stream that can be resumed, which may be without a connection for a minute. */
const MAX_RESUMABLE_PENDING_SECONDS = 90;
/** How long a connection is tried for that resumes a stream; the service keeps one for a minute. */
const RESUME_WITHIN_MS = 60_000;
const FIRST_RETRY_MS = 250;
const LONGEST_RETRY_MS = 4000;
/** Longest wait for one such connection. */
const RESUME_TIMEOUT_MS = 30_000;
/** Events that may wait to be read; a stream makes a few in a second. */
const MAX_UNREAD_EVENTS = 100_000;

const END_TIMED_OUT: LiveClose = {
  kind: 'lost',
  code: 1006,
  message: 'The service did not close the stream after its end.',
};

/**
 * A live stream: audio in, events out. A connection that is lost is replaced where the stream was created with `resume`: the
 * frames that the service may have missed are sent again, and events that it tells again are passed over.
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
  private readonly buffer = new ResumeBuffer();
  /** Number of the next frame to send. */
  private next = 0;
  /** Frames that have been sent at least once. */
  private framesSent = 0;
  private lead = new Lead();
  /** Since when there has been no connection, and how often one was tried. */
  private outage: { readonly sinceMs: number; tries: number } | undefined;
  private retryTimer: ReturnType<typeof setTimeout> | undefined;
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
    private socket: WebSocketLike,
    private readonly maxBufferedFrames: number,
    private readonly sampleRateHz = SAMPLE_RATE_HZ,
    /** Makes a connection that resumes the stream. */
    private readonly reconnect?: (token: string) => WebSocketLike,
  ) {
    this.framer = new Framer(sampleRateHz);
    this.closed = new Promise((settle) => {
      this.settle = settle;
    });
    this.attach(socket);
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
   * run 30 s ahead (90 s where the stream can be resumed); then the stream is given up.
   */
  write(samples: Float32Array): Promise<void> {
    this.pendingSamples += samples.length;
    const maxSeconds = this.canResume ? MAX_RESUMABLE_PENDING_SECONDS : MAX_PENDING_SECONDS;
    if (this.pendingSamples > maxSeconds * this.sampleRateHz + samples.length) {
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
      this.sendEnd();
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

  private get canResume(): boolean {
    return this.reconnect !== undefined && this.buffer.resumeToken !== undefined;
  }

  private async send(frame: Uint8Array<ArrayBuffer>): Promise<void> {
    this.buffer.add(frame);
    await this.sendAll();
  }

  /** Sends what has not been sent over this connection, as fast as the service follows. */
  private async sendAll(): Promise<void> {
    while (!this.close && this.next < this.buffer.end) {
      if (this.outage || this.lead.isUsedUp) {
        await pause(CHECK_MS);
        continue;
      }
      const frame = this.buffer.frame(this.next);
      this.socket.send(frame);
      this.next++;
      this.framesSent = Math.max(this.framesSent, this.next);
      this.buffer.sent(this.next);
      this.lead.add(1);
      while (!this.close && !this.outage && this.bufferedFrames(frame) > this.maxBufferedFrames - 1)
        await pause(CHECK_MS);
      if (this.endTimer !== undefined) this.renewEndTimer();
    }
  }

  private sendEnd(): void {
    if (!this.close) this.sendEndOfStream();
  }

  private sendEndOfStream(): void {
    if (!this.outage) this.socket.send(JSON.stringify({ type: 'end_of_stream' }));
  }

  private attach(socket: WebSocketLike): void {
    let failure: string | undefined;
    socket.addEventListener('message', ({ data }) => {
      if (socket === this.socket) this.receive(data);
    });
    socket.addEventListener('close', ({ code, reason }) => {
      if (socket === this.socket) this.lose(closeOf(code, reason, this.ended, this.lastError), failure);
    });
    // A close event follows.
    socket.addEventListener('error', ({ message }) => {
      failure = message;
    });
  }

  /** The connection has ended: with the stream, or for another one that resumes it. */
  private lose(close: LiveClose, failure?: string): void {
    const token = this.buffer.resumeToken;
    // What the service refuses once it will refuse again; browsers do not tell.
    const isRefused = this.outage !== undefined && failure?.includes('401');
    const { reconnect } = this;
    const outage = this.outage ?? { sinceMs: performance.now(), tries: 0 };
    const isOver = isRefused || performance.now() - outage.sinceMs > RESUME_WITHIN_MS;
    if (close.kind !== 'lost' || !reconnect || token === undefined || isOver) {
      this.finish(close, false);
      return;
    }
    this.outage = outage;
    const delayMs = Math.min(LONGEST_RETRY_MS, FIRST_RETRY_MS * 2 ** outage.tries++);
    if (this.endTimer !== undefined) this.renewEndTimer();
    const connect = (): void => {
      const socket = reconnect(token);
      this.socket = socket;
      this.attach(socket);
      this.retryTimer = setTimeout(() => {
        if (socket.terminate) socket.terminate();
        else socket.close();
      }, RESUME_TIMEOUT_MS);
    };
    clearTimeout(this.retryTimer);
    this.retryTimer = setTimeout(connect, delayMs);
  }

  private control(message: ControlMessage): void {
    if (message.kind === 'resume') {
      this.buffer.offer(message.token, message.frame);
      return;
    }
    clearTimeout(this.retryTimer);
    if (!this.buffer.resumed(message.frame)) {
      this.finish({
        kind: 'lost',
        code: 1006,
        message: 'The service resumes the stream from audio that is gone here.',
      });
      return;
    }
    this.next = message.frame;
    this.lead = new Lead();
    this.outage = undefined;
    if (this.endTimer !== undefined) this.renewEndTimer();
    void this.inOrder(async () => {
      await this.sendAll();
      if (this.ended) this.sendEnd();
    });
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
    if (event.kind === 'resume' || event.kind === 'resumed') {
      this.control(event);
      return;
    }
    const isRepeated = this.buffer.isRepeated(String(data));
    if (event.kind === 'error') this.lastError = event.message;
    // What is told of a moment shows that all before it has been processed.
    if (event.kind === 'start' || event.kind === 'end') {
      this.lead.isAtMost(this.next - event.timestampSeconds * FRAMES_PER_SECOND);
    }
    if (isRepeated) return;
    this.events.push(event);
    if (this.events.length > MAX_UNREAD_EVENTS) {
      this.finish({ kind: 'policy', message: 'Nobody reads the events of this stream.' });
    }
  }

  /**
   * Ends the stream; only the first call has an effect.
   *
   * @param isConnected whether the service can get the end-of-stream message
   */
  private finish(close: LiveClose, isConnected = true): void {
    if (this.close) return;
    this.close = close;
    clearTimeout(this.endTimer);
    clearTimeout(this.retryTimer);
    // Else the service would wait for another connection.
    if (this.canResume && isConnected) this.sendEndOfStream();
    // Closing waits for the service's answer; a missing one would keep the process alive.
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
