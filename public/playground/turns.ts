import type { JobState, Turn } from '../../client/sdk/types.ts';

export type { Turn };

/** A turn with what was said in it. */
export interface SaidTurn extends Turn {
  /** The words, and between them white space and what belongs to no word; the text of the turn in all. */
  readonly pieces: readonly { readonly text: string; readonly start?: number; readonly end?: number }[];
}

/** A speaker with all that is said of them. */
export interface Speaker {
  readonly name: string;
  readonly seconds: number;
  readonly turns: number;
  /** Of all the time that anyone speaks, 0 to 1. */
  readonly share: number;
}

/** What was said in a job that has been transcribed. */
export function saidTurnsOf(job: JobState): readonly SaidTurn[] | undefined {
  if (!job.output || !('turnLevelTranscription' in job.output)) return undefined;
  const { wordLevelTranscription: words = [], turnLevelTranscription: turns = [] } = job.output;
  let next = 0;
  return turns.map(({ text, ...turn }) => {
    const pieces: SaidTurn['pieces'][number][] = [];
    let at = 0;
    for (; next < words.length && at < text.length; next++) {
      const word = words[next];
      const found = text.indexOf(word.text, at);
      // The words of the turns are those of the list, in their order.
      if (found < 0 || word.speaker !== turn.speaker) break;
      if (found > at) pieces.push({ text: text.slice(at, found) });
      pieces.push({ text: word.text, start: word.start, end: word.end });
      at = found + word.text.length;
    }
    if (at < text.length) pieces.push({ text: text.slice(at) });
    return { ...turn, pieces };
  });
}

const byLabel = new Intl.Collator('en', { numeric: true });

/**
 * Speakers in order of their labels. The service numbers them in order of their first words; where a live stream's
 * corrections change who came first, every speaker keeps their place.
 */
export function speakersOf(turns: readonly Turn[]): Speaker[] {
  const found = new Map<string, { seconds: number; turns: number }>();
  for (const { speaker, start, end } of turns) {
    const known = found.get(speaker) ?? { seconds: 0, turns: 0 };
    found.set(speaker, { seconds: known.seconds + end - start, turns: known.turns + 1 });
  }
  const all = [...found.values()].reduce((sum, { seconds }) => sum + seconds, 0) || 1;
  return [...found]
    .map(([name, of]) => ({ name, ...of, share: of.seconds / all }))
    .sort((a, b) => byLabel.compare(a.name, b.name));
}

/** Length of the picture of a live stream: it grows by leaps, so that what is drawn stays in its place between them. */
export function liveLength(seconds: number): number {
  const lengths = [30, 60, 120, 300, 600, 1200, 1800, 3600];
  return lengths.find((length) => seconds <= length) ?? 3600 * Math.ceil(seconds / 3600);
}

/** `65` → `1:05`, `3665` → `1:01:05`. */
export function clock(seconds: number): string {
  const whole = Math.floor(seconds);
  const two = (value: number) => String(value).padStart(2, '0');
  const [hours, minutes] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60];
  return hours > 0 ? `${hours}:${two(minutes)}:${two(whole % 60)}` : `${minutes}:${two(whole % 60)}`;
}

const tenthsOf = (seconds: number): number => Math.floor(seconds * 10 + 1e-6);

/**
 * As `clock`, with tenths: `65.26` → `1:05.2`. Cut, not rounded: 59.96 is not 1:00.0 of a minute that has not begun.
 */
export function preciseClock(seconds: number): string {
  const tenths = tenthsOf(seconds);
  return `${clock(Math.floor(tenths / 10))}.${tenths % 10}`;
}

export const percent = (share: number): string => `${Math.round(100 * share)} %`;

/** The picture in a sentence, for those who do not see it. */
export function summary(turns: readonly Turn[]): string {
  const speakers = speakersOf(turns);
  if (speakers.length === 0) return 'No speech.';
  const said = speakers.map(({ name, seconds, share }) => `${name} ${clock(seconds)} (${percent(share)})`).join(', ');
  return `${count(speakers.length, 'speaker')}, ${count(turns.length, 'turn')}. Talk: ${said}.`;
}

export const count = (number: number, noun: string): string => `${number} ${noun}${number === 1 ? '' : 's'}`;
