import type { Turn } from './turns.ts';

/** Plays stretches of a file of this device. Nothing is sent anywhere. */
export class Player {
  private address: string | undefined;
  private stopAt: number | undefined;

  /** @param onTime told where the recording is played; undefined when no recording is there */
  constructor(
    private readonly audio: HTMLAudioElement,
    private readonly onTime: (moment: number | undefined) => void,
  ) {
    audio.addEventListener('timeupdate', () => {
      this.onTime(audio.currentTime);
      if (this.stopAt !== undefined && audio.currentTime >= this.stopAt) audio.pause();
    });
    audio.addEventListener('pause', () => {
      this.stopAt = undefined;
    });
  }

  /** Takes another file in the place of the one before; undefined for none. */
  load(file: Blob | undefined): void {
    this.audio.pause();
    if (this.address !== undefined) URL.revokeObjectURL(this.address);
    this.address = file && URL.createObjectURL(file);
    if (this.address === undefined) this.audio.removeAttribute('src');
    else this.audio.src = this.address;
    this.audio.hidden = file === undefined;
    this.onTime(undefined);
  }

  /** Length of the recording, seconds; NaN until the browser has found it out, or where it cannot play the file. */
  get seconds(): number {
    return this.audio.duration;
  }

  /** @returns false where the browser cannot play the file; the service may have read it nevertheless */
  async play({ start, end }: Turn): Promise<boolean> {
    this.audio.pause();
    try {
      this.audio.currentTime = start;
      await this.audio.play();
      this.stopAt = end;
      return true;
    } catch (error) {
      // Another turn was asked for before this one began.
      return error instanceof DOMException && error.name === 'AbortError';
    }
  }
}
