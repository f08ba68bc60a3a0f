import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { type Moment, Player } from './player.ts';

/** The used part of the browser's audio element; tests set its time. */
class FakeAudio extends EventTarget {
  currentTime = 0;
  duration = 100;
  paused = true;
  error: object | null = null;
  src = '';
  async play(): Promise<void> {
    this.paused = false;
    this.fire('play');
  }
  pause(): void {
    if (this.paused) return;
    this.paused = true;
    this.fire('pause');
  }
  /** Unloads the previous file if there is no address. */
  load(): void {
    if (this.src === '') this.duration = Number.NaN;
  }

  removeAttribute(): void {
    this.src = '';
  }
  fire(name: string): void {
    this.dispatchEvent(new Event(name));
  }
  go(seconds: number): void {
    this.currentTime = seconds;
    this.fire('timeupdate');
  }
}

const TURN = { speaker: 'SPEAKER_00', start: 10, end: 12 };
let audio: FakeAudio;
let player: Player;
let moments: (Moment | undefined)[];
beforeEach(() => {
  vi.stubGlobal('requestAnimationFrame', () => 0);
  audio = new FakeAudio();
  moments = [];
  player = new Player(audio as unknown as HTMLAudioElement, (moment) => void moments.push(moment));
});
afterEach(() => vi.unstubAllGlobals());

it('plays a turn to its end', () => {
  player.load(new Blob(['audio']));
  player.toggle(TURN);
  expect([audio.currentTime, audio.paused]).toEqual([10, false]);
  audio.go(11.9);
  expect(moments.at(-1)).toEqual({ at: 11.9, isPlaying: true, turn: TURN });
  audio.go(12.02);
  expect(audio.paused).toBe(true);
  expect(moments.at(-1)).toEqual({ at: 12.02, isPlaying: false });
});

it('stops a turn at the second request, and replaces it by another turn', () => {
  player.load(new Blob(['audio']));
  player.toggle(TURN);
  player.toggle(TURN);
  expect(audio.paused).toBe(true);
  player.toggle(TURN);
  const next = { ...TURN, start: 20, end: 21 };
  player.toggle(next);
  expect([audio.currentTime, audio.paused]).toEqual([20, false]);
  audio.go(20.5);
  expect(moments.at(-1)?.turn).toBe(next);
});

it('seeks and continues to play only if it was playing', () => {
  player.load(new Blob(['audio']));
  player.seek(5);
  expect([audio.currentTime, audio.paused, moments.at(-1)]).toEqual([5, true, { at: 5, isPlaying: false }]);
  player.toggle(TURN);
  player.seek(40);
  audio.go(41);
  expect(moments.at(-1)).toEqual({ at: 41, isPlaying: true });
  player.seek(500);
  expect(audio.currentTime).toBe(100);
});

it('plays an address like a file', () => {
  player.load('https://example.com/a.mp3');
  expect([audio.src, player.canPlay]).toEqual(['https://example.com/a.mp3', true]);
  player.togglePlay();
  expect(audio.paused).toBe(false);
  player.togglePlay();
  expect(audio.paused).toBe(true);
});

it('reports whether it can play the recording', () => {
  expect(player.canPlay).toBe(false);
  player.load(new Blob(['audio']));
  expect(player.canPlay).toBe(true);
  audio.error = {};
  audio.fire('error');
  expect([player.canPlay, moments.at(-1)]).toEqual([false, undefined]);
  audio.error = null;
  player.load(undefined);
  expect([player.canPlay, moments.at(-1)]).toEqual([false, undefined]);
});
