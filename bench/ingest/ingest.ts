import { type LabelledRecording, tenVoices } from '../recordings.ts';
import { longestHours } from '../shared.ts';
import { compareBefore, measureHour, measureLarge, type NamedRecording, type Recording } from './hour.ts';
import { measureOdd, measureSlow } from './odd.ts';

const HOUR = 3600;
const TEN_MINUTES = 600;
/** Takes a minute and a half at 20 KiB/s. */
const TWO_MINUTES = 120;
/** A different length gives a different recording: its conversations have another order. */
const OTHER_SECONDS = 1;
/** WAV of 192 kHz, 24 bits and two channels: 1 GiB. */
const GIB_SECONDS = 932;
const DAY = 24 * HOUR;

type Subsection = 'hour' | 'slow' | 'odd' | 'large' | 'before';
const TITLES: Readonly<Record<Subsection, string>> = {
  hour: 'An hour',
  slow: 'After slow origins',
  odd: 'Unusual origins',
  large: 'Maximum size and length',
  before: 'Compared with another version',
};

/**
 * Measures the reading of recordings by the real service. `ROLLCALL_LONGEST_HOURS` bounds their length;
 * `ROLLCALL_INGEST`, a regular expression (`hour|slow`), selects subsections; `ROLLCALL_BENCH_BEFORE` names another
 * checkout for comparison.
 */
export async function measureIngest(recordings: readonly LabelledRecording[] | undefined): Promise<string> {
  if (!recordings) return '**Not measured:** the recordings need `../shared/audio`.';
  const longest = longestHours() * HOUR;
  const only = process.env.ROLLCALL_INGEST === undefined ? undefined : new RegExp(process.env.ROLLCALL_INGEST);
  const before = process.env.ROLLCALL_BENCH_BEFORE;
  const warmUp = recordings[0].path;
  const mp3 = async (seconds: number): Promise<Recording> =>
    (await tenVoices(recordings, Math.min(seconds, longest), 'music')) ?? missing();
  const measure: Readonly<Record<Subsection, () => Promise<string>>> = {
    hour: async () => measureHour(await mp3(HOUR), warmUp),
    slow: async () => measureSlow(await mp3(TEN_MINUTES), warmUp),
    odd: async () => {
      const whole = await mp3(TEN_MINUTES);
      const other = await mp3(whole.seconds - OTHER_SECONDS);
      return measureOdd({ whole, other, short: await mp3(TWO_MINUTES) }, warmUp);
    },
    large: async () => {
      const named: NamedRecording[] = [];
      const add = async (name: string, seconds: number, coding: 'studio' | 'compact'): Promise<void> => {
        if (seconds <= longest) named.push({ name, ...((await tenVoices(recordings, seconds, coding)) ?? missing()) });
      };
      await add('1 GiB of WAV (16 min)', GIB_SECONDS, 'studio');
      await add('24 h of MP3 (345 MB)', DAY, 'compact');
      if (named.length === 0) return `**Not measured:** \`ROLLCALL_LONGEST_HOURS=${longest / HOUR}\`.`;
      return measureLarge(named, warmUp);
    },
    before: async () =>
      before
        ? compareBefore(await mp3(HOUR), warmUp, before)
        : '**Not measured:** `ROLLCALL_BENCH_BEFORE` names no other checkout.',
  };
  const texts: string[] = [];
  try {
    for (const [name, title] of Object.entries(TITLES) as [Subsection, string][]) {
      const isSelected = only?.test(name) ?? true;
      const text = isSelected
        ? await measure[name]()
        : `**Not measured in this run** (\`ROLLCALL_INGEST=${only?.source}\`).`;
      texts.push(`### ${title}\n\n${text}`);
    }
  } catch (error) {
    if (error instanceof Missing) return '**Not measured:** the recordings need ffmpeg.';
    throw error;
  }
  return texts.join('\n\n');
}

class Missing extends Error {}

function missing(): never {
  throw new Missing('ffmpeg is missing');
}
