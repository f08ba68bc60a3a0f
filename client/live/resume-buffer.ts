import { FRAMES_PER_SECOND } from './framer.ts';

/** Frames kept at most, 90 s: 60 s without a connection, 10 s that are sent again, and a margin. */
const MAX_KEPT_FRAMES = 90 * FRAMES_PER_SECOND;
/** Until the service offers a token, which comes with the connection if at all. */
const MAX_FRAMES_BEFORE_TOKEN = 20 * FRAMES_PER_SECOND;

/**
 * What a stream needs to continue over another connection: its token, the frames that the service has not stored, and
 * the messages that the service will repeat. Frames are numbered from the beginning of the stream.
 */
export class ResumeBuffer {
  private token: string | undefined;
  private readonly frames: Uint8Array<ArrayBuffer>[] = [];
  private first = 0;
  /** Since the last token. */
  private told: string[] = [];
  /** Of an earlier connection, which this one tells again. */
  private expected: string[] = [];

  /** Number of the next frame that is added. */
  get end(): number {
    return this.first + this.frames.length;
  }

  /** What the next connection is made with; undefined where the service offers none. */
  get resumeToken(): string | undefined {
    return this.token;
  }

  add(frame: Uint8Array<ArrayBuffer>): void {
    this.frames.push(frame);
  }

  frame(number: number): Uint8Array<ArrayBuffer> {
    return this.frames[number - this.first]!;
  }

  /** Frames before this one have been sent; the oldest of them go where they are too many. */
  sent(number: number): void {
    const most = this.token === undefined ? MAX_FRAMES_BEFORE_TOKEN : MAX_KEPT_FRAMES;
    this.dropBefore(Math.min(number, this.end - most));
  }

  /** The stream can be resumed from this frame on. */
  offer(token: string, frame: number): void {
    this.token = token;
    this.dropBefore(frame);
    this.told = [];
  }

  /**
   * The stream goes on from this frame.
   * @returns false where the frame is not here (any more)
   */
  resumed(frame: number): boolean {
    this.expected = [...this.told, ...this.expected];
    this.told = [];
    return frame >= this.first && frame <= this.end;
  }

  /** Notes a message of the service. @returns whether an earlier connection has told it already */
  isRepeated(message: string): boolean {
    if (this.token !== undefined) this.told.push(message);
    const at = this.expected.indexOf(message);
    this.expected.splice(0, at + 1);
    return at >= 0;
  }

  private dropBefore(frame: number): void {
    const count = Math.min(Math.max(0, frame - this.first), this.frames.length);
    this.frames.splice(0, count);
    this.first += count;
  }
}
