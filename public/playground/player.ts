import type { Turn } from './turns.ts';

/** Where the recording is; `turn` is what was asked to be played, until its end. */
export interface Moment {
  readonly at: number;
  readonly isPlaying: boolean;
  readonly turn?: Turn;
}

/** The browser does not go to the very moment that it was sent to. */
const SEEK_SLACK_SECONDS = 0.05;

/** Plays stretches of a file of this device. Nothing is sent anywhere. */
export class Player {
  private address: string | undefined;
  private turn: Turn | undefined;

  /** @param onMoment told where the recording is, as it is played; undefined when no recording is there */
  constructor(
    private readonly audio: HTMLAudioElement,
    private readonly onMoment: (moment: Moment | undefined) => void,
  ) {
    // The browser tells the time four times a second, and also where no frames are drawn.
    for (const name of ['timeupdate', 'seeked']) audio.addEventListener(name, () => this.look());
    audio.addEventListener('play', () => this.follow());
    audio.addEventListener('pause', () => {
      if (!audio.paused) return;
      this.turn = undefined;
      this.look();
    });
    audio.addEventListener('seeking', () => {
      // By hand: what is played then has no end.
      if (this.turn && Math.abs(audio.currentTime - this.turn.start) > SEEK_SLACK_SECONDS) this.turn = undefined;
    });
    audio.addEventListener('error', () => {
      audio.hidden = true;
    });
  }

  /** Takes another file in the place of the one before; undefined for none. */
  load(file: Blob | undefined): void {
    this.audio.pause();
    this.turn = undefined;
    if (this.address !== undefined) URL.revokeObjectURL(this.address);
    this.address = file && URL.createObjectURL(file);
    if (this.address === undefined) {
      this.audio.removeAttribute('src');
      this.audio.load(); // or the file of before stays, with its length
    } else this.audio.src = this.address;
    this.audio.hidden = file === undefined;
    this.onMoment(undefined);
  }

  /** Length of the recording, seconds; NaN until the browser has found it out, or where it cannot play the file. */
  get seconds(): number {
    return this.address === undefined ? Number.NaN : this.audio.duration;
  }

  /** Whether there is a file that the browser can play; the service may have read others nevertheless. */
  get canPlay(): boolean {
    return this.address !== undefined && this.audio.error === null;
  }

  /** Plays a turn to its end; asked for the one that is playing, stops it. */
  toggle(turn: Turn): void {
    if (this.turn === turn && !this.audio.paused) {
      this.audio.pause();
      return;
    }
    this.turn = turn;
    this.playFrom(turn.start);
  }

  /** Plays on from a moment. */
  seek(seconds: number): void {
    this.turn = undefined;
    this.playFrom(seconds);
  }

  private playFrom(seconds: number): void {
    this.audio.currentTime = seconds;
    // Refused where another moment is asked for before this one has begun, or the file cannot be played: `error` tells that.
    this.audio.play().catch(() => undefined);
  }

  /** At each frame: a turn of half a second would be overrun by what comes after it otherwise. */
  private follow(): void {
    this.look();
    if (!this.audio.paused) requestAnimationFrame(() => this.follow());
  }

  private look(): void {
    if (this.address === undefined) return;
    const { currentTime: at, paused } = this.audio;
    if (this.turn && at >= this.turn.end && !paused) this.audio.pause();
    else this.onMoment({ at, isPlaying: !paused, ...(this.turn && { turn: this.turn }) });
  }
}
