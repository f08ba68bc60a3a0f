import { pause } from '../sdk/pause.ts';
import { EventQueue } from './event-queue.ts';
import { FRAMES_PER_SECOND, Framer, SAMPLE_RATE_HZ } from './framer.ts';
import { Lead } from './lead.ts';
import { type ControlMessage, closeOf, parseMessage } from './messages.ts';
import { ResumeBuffer } from './resume-buffer.ts';
import type { LiveClose, LiveEvent, WebSocketLike } from './types.ts';

/** Interval of the checks whether a frame may be sent: WebSockets have no event for an emptied buffer. */
const CHECK_MS = 10;
/** Longest time without progress after `end`; the service has at most 5 s of unprocessed audio. */
const END_TIMEOUT_MS = 60_000;
/** Audio that may be pending if a caller does not wait for `write`. */
const MAX_PENDING_SECONDS = 30;
/** Limit for a stream that can be resumed: it may be without a connection for a minute. */
const MAX_RESUMABLE_PENDING_SECONDS = 90;
/** The service keeps a stream without a connection for a minute. */
const RESUME_WITHIN_MS = 60_000;
const FIRST_RETRY_MS = 250;
const LONGEST_RETRY_MS = 4000;
/** Longest wait for one connection that resumes a stream. */
const RESUME_TIMEOUT_MS = 30_000;
/** A stream has a few events a second. */
const MAX_UNREAD_EVENTS = 100_000;

const END_TIMED_OUT: LiveClose = {
  kind: 'lost',
  code: 1006,
  message: 'The service did not close the stream after its end.',
};

/**
 * A live stream: audio in, events out. If the stream was created with `resume`, a lost connection is replaced: frames
 * that the service may have missed are sent again, and repeated events are dropped.
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
  /** Settles at the end of the stream; never rejects. */
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
  /** Number of frames sent at least once. */
  private framesSent = 0;
  private lead = new Lead();
  /** Start of the time without a connection, and the number of attempts since. */
  private outage: { readonly sinceMs: number; attempts: number } | undefined;
  private retryTimer: ReturnType<typeof setTimeout> | undefined;
  private pendingSamples = 0;
  /** The last write. The next one waits for it, so that frames keep their order. */
  private queue: Promise<void> = Promise.resolve();

  /**
   * @param id of the stream, for `readLive`
   * @param maxBufferedFrames number of frames in the socket's buffer at which `write` waits
   * @param sampleRateHz rate with which the stream was created
   * @param reconnect makes a connection that resumes the stream
   */
  constructor(
    readonly id: string,
    private socket: WebSocketLike,
    private readonly maxBufferedFrames: number,
    private readonly sampleRateHz = SAMPLE_RATE_HZ,
    private readonly reconnect?: (token: string) => WebSocketLike,
  ) {
    this.framer = new Framer(sampleRateHz);
    this.closed = new Promise((settle) => {
      this.settle = settle;
    });
    this.attach(socket);
  }

  /** Seconds of audio that were written to the connection. */
  get sentSeconds(): number {
    return this.framesSent / FRAMES_PER_SECOND;
  }

  /**
   * Sends audio of any length, in frames of 100 ms. Drops audio after the end of the stream.
   *
   * @param samples mono at the rate of the stream, in −1…1; must not change before the promise settles
   * @returns settles when all samples are in the connection's buffer and it has room: wait for it before the next call.
   *   Audio that the service cannot process yet is delayed, for example after a network stall. A caller that cannot
   *   wait, such as a microphone, may be 30 s ahead (90 s if the stream can be resumed) before the stream ends.
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
   * Sends the last frame, padded with silence, and the end of the stream, then waits for the last events and the close
   * of the connection. Gives up after 60 s without progress.
   */
  async end(): Promise<LiveClose> {
    this.renewEndTimer();
    await this.inOrder(async () => {
      if (this.ended || this.close) return;
      const lastFrame = this.framer.flush();
      if (lastFrame) await this.send(lastFrame);
      if (this.close) return;
      this.ended = true;
      this.sendEndOfStream();
      this.renewEndTimer();
    });
    return this.closed;
  }

  /** Closes the connection at once, without the last events. */
  abort(): void {
    this.finish({ kind: 'aborted' });
  }

  /** Yields the events until the end of the stream, to one reader at a time. */
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

  /** Sends all frames that were not sent over this connection, as fast as the service processes them. */
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
      this.buffer.markSent(this.next);
      this.lead.add(1);
      while (!this.close && !this.outage && this.bufferedFrames(frame) > this.maxBufferedFrames - 1) {
        await pause(CHECK_MS);
      }
      if (this.endTimer !== undefined) this.renewEndTimer();
    }
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
    // The close event that follows has no message.
    socket.addEventListener('error', ({ message }) => {
      failure = message;
    });
  }

  /** Handles the end of the connection: resumes the stream over another one, or ends it. */
  private lose(close: LiveClose, failure?: string): void {
    const token = this.buffer.resumeToken;
    // The service would refuse the token again. Browsers do not report the status.
    const isRefused = this.outage !== undefined && failure?.includes('401');
    const { reconnect } = this;
    const outage = this.outage ?? { sinceMs: performance.now(), attempts: 0 };
    const isOver = isRefused || performance.now() - outage.sinceMs > RESUME_WITHIN_MS;
    if (close.kind !== 'lost' || !reconnect || token === undefined || isOver) {
      this.finish(close, false);
      return;
    }
    this.outage = outage;
    const delayMs = Math.min(LONGEST_RETRY_MS, FIRST_RETRY_MS * 2 ** outage.attempts++);
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
      this.buffer.storeToken(message.token, message.frame);
      return;
    }
    clearTimeout(this.retryTimer);
    if (!this.buffer.resumeFrom(message.frame)) {
      this.finish({
        kind: 'lost',
        code: 1006,
        message: 'The service resumes the stream from audio that this client has dropped.',
      });
      return;
    }
    this.next = message.frame;
    this.lead = new Lead();
    this.outage = undefined;
    if (this.endTimer !== undefined) this.renewEndTimer();
    void this.inOrder(async () => {
      await this.sendAll();
      if (this.ended && !this.close) this.sendEndOfStream();
    });
  }

  private bufferedFrames(frame: Uint8Array): number {
    const frames = this.socket.bufferedAmount / frame.length;
    this.lead.raiseTo(frames);
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
    // The service has processed all audio before the moment of an event.
    if (event.kind === 'start' || event.kind === 'end') {
      this.lead.limitTo(this.next - event.timestampSeconds * FRAMES_PER_SECOND);
    }
    if (isRepeated) return;
    this.events.push(event);
    if (this.events.length > MAX_UNREAD_EVENTS) {
      this.finish({ kind: 'policy', message: 'The events of this stream are not read.' });
    }
  }

  /**
   * Ends the stream; only the first call has an effect.
   *
   * @param isConnected whether the end-of-stream message can be sent
   */
  private finish(close: LiveClose, isConnected = true): void {
    if (this.close) return;
    this.close = close;
    clearTimeout(this.endTimer);
    clearTimeout(this.retryTimer);
    // Otherwise the service would wait for another connection.
    if (this.canResume && isConnected) this.sendEndOfStream();
    // `close` waits for the service's answer; without an answer it would keep the process alive.
    const isGivenUp = close.kind === 'aborted' || close === END_TIMED_OUT;
    if (isGivenUp && this.socket.terminate) this.socket.terminate();
    else this.socket.close();
    this.events.end();
    this.settle(close);
  }
}
