import type { JobState, Turn } from '../../client/sdk/types.ts';

export type { Turn };

/** A turn with its transcription. */
export interface TranscribedTurn extends Turn {
  /** Words with times, and the text between words. Joined, they are the text of the turn. */
  readonly fragments: readonly { readonly text: string; readonly start?: number; readonly end?: number }[];
}

/** A speaker's statistics. */
export interface Speaker {
  readonly name: string;
  readonly seconds: number;
  readonly turns: number;
  /** Share of the speech of all speakers, 0 to 1. */
  readonly share: number;
}

/** Returns the turns of a transcription; undefined for a job without one. */
export function transcribedTurnsOf(job: JobState): readonly TranscribedTurn[] | undefined {
  if (!job.output || !('turnLevelTranscription' in job.output)) return undefined;
  const { wordLevelTranscription: words = [], turnLevelTranscription: turns = [] } = job.output;
  let next = 0;
  return turns.map(({ text, ...turn }) => {
    const fragments: TranscribedTurn['fragments'][number][] = [];
    let at = 0;
    for (; next < words.length && at < text.length; next++) {
      const word = words[next];
      const found = text.indexOf(word.text, at);
      // The list has the words in the order of the turns.
      if (found < 0 || word.speaker !== turn.speaker) break;
      if (found > at) fragments.push({ text: text.slice(at, found) });
      fragments.push({ text: word.text, start: word.start, end: word.end });
      at = found + word.text.length;
    }
    if (at < text.length) fragments.push({ text: text.slice(at) });
    return { ...turn, fragments };
  });
}

export const byLabel = new Intl.Collator('en', { numeric: true });

/** Lists speakers by label, because corrections of a live stream do not change that order. */
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

/** Returns the length of a live stream's timeline. It grows in steps, so that drawn turns do not move between steps. */
export function liveLength(seconds: number): number {
  const lengths = [30, 60, 120, 300, 600, 1200, 1800, 3600];
  return lengths.find((length) => seconds <= length) ?? 3600 * Math.ceil(seconds / 3600);
}

/** Formats seconds: `65` → `1:05`, `3665` → `1:01:05`. */
export function clock(seconds: number): string {
  const total = Math.floor(seconds);
  const twoDigits = (value: number) => String(value).padStart(2, '0');
  const [hours, minutes] = [Math.floor(total / 3600), Math.floor(total / 60) % 60];
  return hours > 0 ? `${hours}:${twoDigits(minutes)}:${twoDigits(total % 60)}` : `${minutes}:${twoDigits(total % 60)}`;
}

const tenthsOf = (seconds: number): number => Math.floor(seconds * 10 + 1e-6);

/** Formats seconds with tenths: `65.26` → `1:05.2`. Rounds down, so that 59.96 is not in the next minute. */
export function preciseClock(seconds: number): string {
  const tenths = tenthsOf(seconds);
  return `${clock(Math.floor(tenths / 10))}.${tenths % 10}`;
}

export const percent = (share: number): string => `${Math.round(100 * share)} %`;

/** Describes the timeline in a sentence, for screen readers. */
export function summary(turns: readonly Turn[]): string {
  const speakers = speakersOf(turns);
  if (speakers.length === 0) return 'No speech.';
  const talk = speakers.map(({ name, seconds, share }) => `${name} ${clock(seconds)} (${percent(share)})`).join(', ');
  return `${count(speakers.length, 'speaker')}, ${count(turns.length, 'turn')}. Talk: ${talk}.`;
}

export const count = (number: number, noun: string): string => `${number} ${noun}${number === 1 ? '' : 's'}`;
