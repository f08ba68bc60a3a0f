import { fromBase64 } from '../audio/bytes.ts';
import {
  parseClientMessage,
  parseTwilioMessage,
  type ResumedMessage,
  type ResumeMessage,
  type ServerMessage,
} from '../contract/live.ts';
import type { CorrectionEvent, LiveEvent, LiveSession } from '../live/live-session.ts';
import {
  type AudioFormat,
  correctionMessage,
  decodeFrame,
  FRAME_MS,
  FrameJoiner,
  frameBytes,
  type InputState,
  type LiveInput,
  speakerMessage,
} from './live-frames.ts';
import { type FrameTimes, LagMeter, type LagReport, type LiveLoad, Pace } from './live-load.ts';
import {
  FRAMES_PER_FAULT,
  type LiveOutcome,
  MAX_BACKLOG_MS,
  MAX_BYTES_OF_EVERY_FAULT,
  MAX_CORRECTION_BYTES,
  MAX_FRAME_BYTES,
  MAX_LATE_BACKLOG_MS,
  MAX_SENT_BYTES,
  MAX_WAITING_BYTES,
  RESUME_EVERY_MS,
} from './live-ports.ts';

/** WebSocket close codes (RFC 6455 §7.4.1). */
export const CLOSE = { normal: 1000, policy: 1008, tooBig: 1009, internalError: 1011 } as const;

/** How a connection ends. */
export interface ChannelEnd extends LiveOutcome {
  readonly closeCode: (typeof CLOSE)[keyof typeof CLOSE];
  readonly closeReason: string;
}

/** State of a channel that must survive its isolate; the session has its own snapshot. */
export interface ChannelState {
  readonly receivedFrames: number;
  readonly sentBytes: number;
  /** Bytes of the corrections among `sentBytes`. */
  readonly correctionBytes: number;
  readonly openSpeakers: readonly number[];
  readonly input: InputState;
  /** Telephony only: the bytes since the last whole frame. */
  readonly pending?: Uint8Array;
}

/** Snapshot from which a stream can continue. */
export interface ChannelSnapshot {
  readonly state: ChannelState;
  readonly session: Uint8Array;
}

export interface ChannelPorts {
  /** Opens or restores the session; called once. A failure ends the stream as an error of the service. */
  readonly openSession: () => Promise<LiveSession>;
  readonly format: AudioFormat;
  readonly maxMs: number;
  /** Never throws: the client may be gone. */
  readonly send: (text: string) => void;
  /** Stores the end of the stream and closes the connection. Called once, after the last message was sent. */
  readonly end: (end: ChannelEnd) => Promise<void>;
  readonly onError: (error: unknown) => void;
  /** Set for a resumable stream. Called after each 10 s of processed audio; processing waits for it. */
  readonly keep?: (snapshot: ChannelSnapshot) => Promise<void>;
  readonly now: () => number;
  readonly load: LiveLoad;
}

interface Waiting extends FrameTimes {
  readonly samples: Float32Array;
}

/** State of a new stream. */
const INITIAL_STATE: Omit<ChannelState, 'input'> = {
  receivedFrames: 0,
  sentBytes: 0,
  correctionBytes: 0,
  openSpeakers: [],
};

/**
 * The protocol of one connection (contract §9): frames and texts in, events out. Messages are checked on arrival.
 * Accepted frames wait in a queue and are processed in order, one at a time, because message handlers run interleaved.
 */
export class LiveChannel {
  readonly #name = Symbol('stream');
  readonly #queue: Waiting[] = [];
  readonly #pace: Pace;
  readonly #lag = new LagMeter();
  readonly #openSpeakers: Set<number>;
  /** Only for telephony. */
  readonly #joiner: FrameJoiner | undefined;
  readonly #session: () => Promise<LiveSession>;
  #receivedFrames: number;
  /** Number of frames processed when the stream was last kept. */
  #keptFrames: number;
  #sentBytes: number;
  #correctionBytes: number;
  /** By fault of the client: number of frames received when it was last reported. */
  readonly #faultReportedAt = new Map<string, number>();
  /** Set when the stream is going to end: later messages are ignored. */
  #ending: Omit<ChannelEnd, 'receivedSeconds'> | undefined;
  #ended = false;
  #work: Promise<void> | undefined;

  constructor(
    private readonly ports: ChannelPorts,
    private readonly input: LiveInput,
    state: Omit<ChannelState, 'input'> = INITIAL_STATE,
    /** When the last frame in `state` arrived, for a stream that is resumed; milliseconds since the Unix epoch. */
    resumedFrom?: number,
  ) {
    this.#pace = new Pace(resumedFrom);
    this.#receivedFrames = state.receivedFrames;
    this.#keptFrames = state.receivedFrames;
    this.#sentBytes = state.sentBytes;
    this.#correctionBytes = state.correctionBytes;
    this.#openSpeakers = new Set(state.openSpeakers);
    // A client that resumes a stream begins with a whole frame.
    const pending = resumedFrom === undefined ? state.pending : undefined;
    if (ports.format.encoding === 'mulaw') this.#joiner = new FrameJoiner(frameBytes(ports.format), pending);
    let session: Promise<LiveSession> | undefined;
    this.#session = () => {
      session ??= ports.openSession();
      return session;
    };
  }

  /** Loads the models, so that the first frames do not wait for them. */
  open(): Promise<void> {
    return this.#run();
  }

  /**
   * Takes a message of the client.
   * @returns settles when all accepted frames are processed, those that arrived meanwhile included
   */
  receive(message: string | ArrayBuffer): Promise<void> {
    if (this.#ending) return this.#run();
    if (typeof message === 'string') this.#receiveText(message);
    else this.#receiveFrame(message);
    return this.#run();
  }

  /** The client has disconnected: its frames are processed and billed. */
  disconnected(): Promise<void> {
    this.#end('done', CLOSE.normal, 'disconnected');
    return this.#run();
  }

  /** No frame has arrived for `idleMs`. */
  idle(idleMs: number): Promise<void> {
    this.#refuse(CLOSE.policy, `No audio for ${idleMs / 1000} s`);
    return this.#run();
  }

  /** The connection has reached its maximum duration, regardless of the amount of audio. */
  outlast(): Promise<void> {
    this.#end('done', CLOSE.normal, 'time limit');
    return this.#run();
  }

  /** The account has no credit left. */
  outOfCredit(): Promise<void> {
    this.#refuse(CLOSE.policy, "The account's credit is used up");
    return this.#run();
  }

  /** The connection is lost, and another channel continues the stream: sends nothing more and does not call `end`. */
  abandon(): void {
    this.#ended = true;
    this.#dropQueue();
    this.input.suspend();
  }

  /** Sends a message about resuming, which is no event of the diarization. */
  announce(message: ResumeMessage | ResumedMessage): void {
    this.#send(message);
  }

  /** Whether the end has been decided; the last messages may still be sent. */
  get isEnding(): boolean {
    return this.#ending !== undefined;
  }

  /** Whether a run is active: it also processes frames that arrive meanwhile. */
  get isAtWork(): boolean {
    return this.#work !== undefined;
  }

  /** Lag behind real time of the frames processed since the last call; undefined without frames. */
  takeLag(): LagReport | undefined {
    return this.#lag.take();
  }

  /** Frames accepted so far. */
  get receivedFrames(): number {
    return this.#receivedFrames;
  }

  /** Snapshot from which this isolate or another can continue; undefined while frames are being processed. */
  async suspend(): Promise<ChannelSnapshot | undefined> {
    if (this.#isBusy()) return undefined;
    const session = await this.#session();
    if (this.#isBusy()) return undefined;
    this.input.suspend();
    return this.#snapshot(session);
  }

  /** Snapshot of the processed frames, without those in the queue. */
  #snapshot(session: LiveSession): ChannelSnapshot {
    this.#keptFrames = this.#processedFrames();
    const state = {
      receivedFrames: this.#keptFrames,
      sentBytes: this.#sentBytes,
      correctionBytes: this.#correctionBytes,
      openSpeakers: [...this.#openSpeakers],
      input: this.input.state,
      ...(this.#joiner && { pending: this.#joiner.pending }),
    };
    return { state, session: session.snapshot() };
  }

  #processedFrames(): number {
    return this.#receivedFrames - this.#queue.length;
  }

  #isBusy(): boolean {
    return this.isAtWork || this.#ending !== undefined;
  }

  #receiveText(text: string): void {
    if (isLonger(text, MAX_FRAME_BYTES)) this.#refuse(CLOSE.tooBig, 'Message too large');
    else if (parseClientMessage(text)) this.#endOfStream();
    else if (this.ports.format.envelope === 'twilio') this.#receiveTwilio(text);
    else this.#reportFault('Unknown message');
  }

  #receiveTwilio(text: string): void {
    const message = parseTwilioMessage(text);
    const bytes = message?.kind === 'audio' ? fromBase64(message.payload) : undefined;
    if (bytes) this.#receiveTelephony(bytes);
    else if (message?.kind === 'end') this.#endOfStream();
    else if (message?.kind !== 'other') this.#reportFault('Unknown message');
  }

  #endOfStream(): void {
    const rest = this.#joiner?.flush();
    if (rest) this.#takeFrame(rest);
    this.#end('done', CLOSE.normal, 'end of stream');
  }

  #receiveFrame(frame: ArrayBuffer): void {
    if (frame.byteLength > MAX_FRAME_BYTES) {
      this.#refuse(CLOSE.tooBig, 'Message too large');
      return;
    }
    if (this.#joiner) this.#receiveTelephony(new Uint8Array(frame));
    else this.#takeFrame(frame);
  }

  #receiveTelephony(bytes: Uint8Array): void {
    const frames = this.#joiner?.push(bytes);
    if (!frames) this.#reportFault('Invalid chunk size');
    for (const frame of frames ?? []) if (!this.#ending) this.#takeFrame(frame);
  }

  #takeFrame(frame: ArrayBuffer): void {
    const decoded = decodeFrame(frame, this.ports.format);
    if (!decoded) {
      this.#reportFault('Invalid chunk size');
      return;
    }
    if ((this.#queue.length + 1) * FRAME_MS > MAX_BACKLOG_MS && this.#isOverfull()) return;
    if (decoded.silenced) this.#reportFault('Chunk with a value that is not finite, taken as silence');
    this.#queue.push({ samples: decoded.samples, ...this.#pace.next(this.ports.now()) });
    this.#receivedFrames++;
    this.#noteWaiting();
    if (this.#receivedFrames * FRAME_MS >= this.ports.maxMs) this.#end('done', CLOSE.normal, 'length limit');
  }

  /**
   * Ends the stream if too many frames wait. A client is refused if most of the waiting frames are ahead of real time.
   * Otherwise the service is slow: the stream continues while there is memory, and is not billed if it has to end.
   */
  #isOverfull(): boolean {
    const now = this.ports.now();
    const early = this.#queue.filter(({ expectedAt }) => expectedAt > now).length;
    if (2 * early > this.#queue.length) {
      this.#refuse(
        CLOSE.policy,
        `Audio arrives faster than it is processed: more than ${MAX_BACKLOG_MS / 1000} s wait`,
      );
      return true;
    }
    const isFull = (this.#queue.length + 1) * FRAME_MS > MAX_LATE_BACKLOG_MS;
    if (!isFull && this.ports.load.waitingBytes(now) < MAX_WAITING_BYTES) return false;
    this.ports.onError(new Error(`overloaded: ${this.#queue.length} frames wait`));
    this.#end('error', CLOSE.internalError, 'overloaded');
    this.#dropQueue();
    this.#sendError('The service is overloaded; the stream has ended and is not billed');
    return true;
  }

  #dropQueue(): void {
    this.#queue.length = 0;
    this.#noteWaiting();
  }

  #noteWaiting(): void {
    const bytes = this.#queue.reduce((sum, { samples }) => sum + samples.byteLength, 0);
    this.ports.load.noteQueue(this.#name, bytes, this.ports.now());
  }

  /** One run at a time; a call during a run waits for that run, which also processes frames that arrive meanwhile. */
  #run(): Promise<void> {
    if (this.#ended) return Promise.resolve();
    this.#work ??= this.#drain();
    return this.#work;
  }

  async #drain(): Promise<void> {
    try {
      let hasFinished = false;
      // A frame may have arrived after the last round.
      do hasFinished = await this.#process();
      while (!hasFinished && (this.#queue.length > 0 || this.#ending));
      if (this.#ending && !this.#ended) await this.#close(this.#ending);
    } finally {
      // No await since the last check of the queue, so that a later frame starts a new run.
      this.#work = undefined;
    }
  }

  /** @returns whether the session has finished: the queue is empty and the stream is ending, or it has failed */
  async #process(): Promise<boolean> {
    try {
      const session = await this.#session();
      while (this.#queue.length > 0) {
        // Keep the frame in the queue while it is processed: it still counts as waiting.
        const frame = this.#queue[0];
        const samples = this.input.push(frame.samples);
        if (samples.length > 0) this.#sendEvents(await session.push(samples));
        // The queue may have been dropped meanwhile.
        if (this.#queue[0] === frame) this.#done(frame);
        const isKeepDue = this.#processedFrames() - this.#keptFrames >= RESUME_EVERY_MS / FRAME_MS;
        if (isKeepDue && !this.#ending && !this.#ended) await this.ports.keep?.(this.#snapshot(session));
      }
      if (this.#ended) return true;
      if (!this.#ending) return false;
      this.#sendEvents(await session.finish());
      return true;
    } catch (error) {
      this.#fail(error);
      return true;
    }
  }

  #done({ dueAt }: Waiting): void {
    this.#queue.shift();
    this.#noteWaiting();
    const { load, now } = this.ports;
    const lagMs = Math.max(0, now() - dueAt);
    load.note(lagMs, now());
    this.#lag.note(lagMs);
  }

  #fail(error: unknown): void {
    this.ports.onError(error);
    this.#ending = { status: 'error', closeCode: CLOSE.internalError, closeReason: 'internal error' };
    this.#dropQueue();
    this.#sendError('The service failed; the stream has ended');
    for (const speaker of this.#openSpeakers) {
      this.#send(speakerMessage({ kind: 'end', speaker, timestampSeconds: this.#receivedSeconds() }));
    }
  }

  async #close(ending: Omit<ChannelEnd, 'receivedSeconds'>): Promise<void> {
    this.#ended = true;
    this.input.suspend();
    await this.ports.end({ ...ending, receivedSeconds: this.#receivedSeconds() });
  }

  #receivedSeconds(): number {
    return (this.#receivedFrames * FRAME_MS) / 1000;
  }

  /** Ends the stream; if it is ending already, the earlier reason stays. */
  #end(status: 'done' | 'error', closeCode: ChannelEnd['closeCode'], closeReason: string): void {
    this.#ending ??= { status, closeCode, closeReason };
  }

  /** The client broke a rule: sends it the reason and ends the stream after the frames in the queue. */
  #refuse(closeCode: ChannelEnd['closeCode'], reason: string): void {
    if (this.#ending) return;
    this.#end('done', closeCode, reason);
    this.#sendError(reason);
  }

  #sendEvents(events: readonly LiveEvent[]): void {
    for (const event of events) {
      if (event.kind === 'correction') {
        this.#correct(event);
        continue;
      }
      if (event.kind === 'start') this.#openSpeakers.add(event.speaker);
      else this.#openSpeakers.delete(event.speaker);
      this.#send(speakerMessage(event));
    }
  }

  /** Once corrections exceed the limit, none is sent: each one builds on all earlier ones. */
  #correct(event: CorrectionEvent): void {
    if (this.#correctionBytes > MAX_CORRECTION_BYTES) return;
    const sent = this.#sentBytes;
    this.#send(correctionMessage(event));
    this.#correctionBytes += this.#sentBytes - sent;
  }

  /** Reports a fault of the client; the stream continues. */
  #reportFault(message: string): void {
    const frames = this.#receivedFrames - (this.#faultReportedAt.get(message) ?? Number.NEGATIVE_INFINITY);
    // Faults without audio in between are all reported and counted, so that a flood of them ends the stream.
    if (this.#sentBytes > MAX_BYTES_OF_EVERY_FAULT && frames > 0 && frames < FRAMES_PER_FAULT) return;
    this.#faultReportedAt.set(message, this.#receivedFrames);
    this.#sendError(message);
  }

  #sendError(message: string): void {
    this.#send({ type: 'error', message });
  }

  #send(message: ServerMessage): void {
    if (this.#ended) return;
    const text = JSON.stringify(message);
    this.#sentBytes += new TextEncoder().encode(text).length;
    this.ports.send(text);
    if (this.#sentBytes > MAX_SENT_BYTES) this.#refuse(CLOSE.policy, 'Too many messages are waiting to be read');
  }
}

/** Whether a text has more than `bytes` bytes in UTF-8; encodes it only if its length does not decide that. */
function isLonger(text: string, bytes: number): boolean {
  return text.length > bytes || (3 * text.length > bytes && new TextEncoder().encode(text).length > bytes);
}
