import type { Turn } from './turns.ts';

/** Position of the playback. `turn` is set while a single turn is played. */
export interface Moment {
  readonly at: number;
  readonly isPlaying: boolean;
  readonly turn?: Turn;
}

/** Tolerance: a browser may seek to slightly before the requested time. */
const SEEK_SLACK_SECONDS = 0.05;

/** Plays a recording, or one turn of it. */
export class Player {
  private address: string | undefined;
  private turn: Turn | undefined;

  /** @param onMoment called with each new position, and with undefined when no recording can be played */
  constructor(
    private readonly audio: HTMLAudioElement,
    private readonly onMoment: (moment: Moment | undefined) => void,
  ) {
    // `timeupdate` fires four times a second, even in a hidden tab, which has no animation frames.
    for (const name of ['timeupdate', 'seeked', 'durationchange']) audio.addEventListener(name, () => this.report());
    audio.addEventListener('play', () => this.follow());
    audio.addEventListener('pause', () => {
      if (!audio.paused) return;
      this.turn = undefined;
      this.report();
    });
    audio.addEventListener('error', () => {
      if (this.address !== undefined) this.onMoment(undefined);
    });
  }

  /** Sets the recording. @param recording a file or an address; undefined for none */
  load(recording: Blob | string | undefined): void {
    this.audio.pause();
    this.turn = undefined;
    if (this.address?.startsWith('blob:')) URL.revokeObjectURL(this.address);
    this.address = recording instanceof Blob ? URL.createObjectURL(recording) : recording;
    if (this.address === undefined) {
      this.audio.removeAttribute('src');
      this.audio.load(); // unloads the previous file
    } else this.audio.src = this.address;
    this.onMoment(undefined);
  }

  /** Length of the recording, seconds; NaN while it is unknown or if the browser cannot play the file. */
  get seconds(): number {
    return this.address === undefined ? Number.NaN : this.audio.duration;
  }

  get at(): number {
    return this.audio.currentTime;
  }

  get isPlaying(): boolean {
    return !this.audio.paused;
  }

  /** Whether the browser can play the recording; the service reads more formats. */
  get canPlay(): boolean {
    return this.address !== undefined && this.audio.error === null;
  }

  /** Plays a turn to its end, or stops it if it is playing. */
  toggle(turn: Turn): void {
    if (this.turn === turn && !this.audio.paused) {
      this.audio.pause();
      return;
    }
    this.turn = turn;
    this.audio.currentTime = turn.start;
    this.play();
  }

  /** Plays from the current position, or stops. */
  togglePlay(): void {
    this.turn = undefined;
    if (this.audio.paused) this.play();
    else this.audio.pause();
  }

  /** Moves to a time, and continues to play if it was playing. */
  seek(seconds: number): void {
    this.turn = undefined;
    const end = Number.isFinite(this.audio.duration) ? this.audio.duration : seconds;
    this.audio.currentTime = Math.max(0, Math.min(end, seconds));
    this.report();
  }

  set speed(factor: number) {
    this.audio.playbackRate = factor;
  }

  private play(): void {
    // Rejects if another position is requested before playback begins. The event `error` reports an unplayable file.
    this.audio.play().catch(() => undefined);
  }

  /** Checks at each animation frame, so that a short turn stops at its end. */
  private follow(): void {
    this.report();
    if (!this.audio.paused) requestAnimationFrame(() => this.follow());
  }

  private report(): void {
    if (!this.canPlay) return;
    const { currentTime: at, paused } = this.audio;
    const isOver = this.turn && at >= this.turn.end && !paused;
    const isBefore = this.turn && at < this.turn.start - SEEK_SLACK_SECONDS;
    if (isOver) this.audio.pause();
    else if (!isBefore) this.onMoment({ at, isPlaying: !paused, ...(this.turn && { turn: this.turn }) });
  }
}
