import { FRAMES_PER_SECOND } from './framer.ts';

/** 60 s without a connection, 10 s that are sent again, and a margin of 20 s. */
const MAX_KEPT_FRAMES = 90 * FRAMES_PER_SECOND;
/** Limit without a token: a service that supports resuming sends the first token when the connection opens. */
const MAX_FRAMES_BEFORE_TOKEN = 20 * FRAMES_PER_SECOND;

/**
 * The data with which a stream continues over another connection: its token, the frames that the service has not
 * stored, and the messages that it will repeat. Frames are numbered from the beginning of the stream.
 */
export class ResumeBuffer {
  private token: string | undefined;
  private readonly frames: Uint8Array<ArrayBuffer>[] = [];
  private first = 0;
  /** Messages since the last token. */
  private received: string[] = [];
  /** Messages of an earlier connection that this one repeats. */
  private repeats: string[] = [];

  /** Number of the next frame that is added. */
  get end(): number {
    return this.first + this.frames.length;
  }

  /** Token for the next connection; undefined if the service has sent none. */
  get resumeToken(): string | undefined {
    return this.token;
  }

  add(frame: Uint8Array<ArrayBuffer>): void {
    this.frames.push(frame);
  }

  frame(number: number): Uint8Array<ArrayBuffer> {
    return this.frames[number - this.first]!;
  }

  /** Records that the frames before this one were sent; drops the oldest if there are too many. */
  markSent(number: number): void {
    const maxFrames = this.token === undefined ? MAX_FRAMES_BEFORE_TOKEN : MAX_KEPT_FRAMES;
    this.dropBefore(Math.min(number, this.end - maxFrames));
  }

  /** Stores the token with which the stream can be resumed from this frame. */
  storeToken(token: string, frame: number): void {
    this.token = token;
    this.dropBefore(frame);
    this.received = [];
  }

  /** Records that the service resumes the stream from this frame. @returns false if the frame was dropped */
  resumeFrom(frame: number): boolean {
    this.repeats = [...this.received, ...this.repeats];
    this.received = [];
    return frame >= this.first && frame <= this.end;
  }

  /** Records a message of the service. @returns whether an earlier connection has delivered it */
  isRepeated(message: string): boolean {
    if (this.token !== undefined) this.received.push(message);
    const at = this.repeats.indexOf(message);
    this.repeats.splice(0, at + 1);
    return at >= 0;
  }

  private dropBefore(frame: number): void {
    const count = Math.min(Math.max(0, frame - this.first), this.frames.length);
    this.frames.splice(0, count);
    this.first += count;
  }
}
