import { join } from 'node:path';
import { nodeAudio } from '../client/audio/ports.ts';
import { SAMPLE_RATE_HZ } from '../src/audio/audio-ports.ts';
import { assignOptimally } from '../src/diarization/numerics.ts';
import { settingsOf } from '../src/diarization/parameters.ts';
import type { SpeakerTurns, Word } from '../src/transcription/spans.ts';
import { speakersOfWords } from '../src/transcription/speakers.ts';
import { conversation } from '../test/helpers/conversation.ts';
import { liveEngine } from './live/observe.ts';
import { finish, keptPart, packOfService, pldaOf } from './pipeline.ts';
import { type LabelledRecording, loadFolder } from './recordings.ts';
import { table } from './report.ts';
import { logProgress, sharedPath } from './shared.ts';

/**
 * Levenshtein distance of two lists of words: the fewest insertions, deletions and substitutions that turn one into the
 * other.
 */
export function editDistance(a: readonly string[], b: readonly string[]): number {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++) {
      next.push(Math.min(row[j] + 1, next[j - 1] + 1, row[j - 1] + (a[i - 1] === b[j - 1] ? 0 : 1)));
    }
    row = next;
  }
  return row[b.length];
}

const CONVERSATIONS = 40;
/** Length of the artificial reference words that fill a labelled turn, and the gap between two of them. */
const WORD_SECONDS = 0.3;
const WORD_GAP_SECONDS = 0.05;

/** A word and its true speaker. */
interface KnownWord extends Word {
  readonly by: string;
}

/** Words assigned to the right speaker, in single-speaker speech and in overlap; errors for cpWER. */
interface Score {
  alone: { right: number; all: number };
  overlap: { right: number; all: number };
  /** Word errors of the concatenated text of each speaker, with the best mapping of speakers. */
  errors: number;
}
const emptyScore = (): Score => ({ alone: { right: 0, all: 0 }, overlap: { right: 0, all: 0 }, errors: 0 });

/** Accuracy of assigning words to speakers, with reference words and times: recognition errors have no influence. */
export async function measureTranscription(): Promise<string> {
  const generated = [true, false].map(async (hasPunctuation) => {
    const score = emptyScore();
    for (let seed = 1; seed <= CONVERSATIONS; seed++) {
      const { words, ...turns } = conversation({ seed: 100 + seed, sentences: 60, speakers: 2 + (seed % 4) });
      const known = words.map(({ speaker, text, ...word }) => {
        return { ...word, text: hasPunctuation ? text : text.replace('.', ''), by: String(speaker) };
      });
      await judge(known, turns, score);
    }
    return row(`generated conversations, ${hasPunctuation ? 'with' : 'without'} full stops`, score);
  });
  const rows = await Promise.all(generated);
  for (const name of ['simulated', 'dialogues', 'meetings', 'real']) {
    const folder = sharedPath('audio', name);
    if (folder) rows.push(await judgeFolder(folder, name));
  }
  return `Reference words with known speakers and times, assigned to speakers by \`src/transcription\`. Recognition
errors have no influence. Generated: ${CONVERSATIONS} conversations of 60 sentences
(\`test/helpers/conversation.ts\`). Every third sentence overlaps with the one before; the edges of the turns have
errors of up to 0.1 s. Labelled recordings of \`../shared/audio\`: the true turns are filled with words of
${WORD_SECONDS} s, and the turns of precision-2 are used, so errors of the diarization count. In overlap: a word of
another speaker at the same time. cpWER: word errors of the concatenated text of each speaker, with the best mapping of
speakers.

${table(['', 'words alone', 'right', 'in overlap', 'right', 'cpWER'], rows)}`;
}

const percent = ({ right, all }: { right: number; all: number }): string =>
  all === 0 ? '–' : `${((100 * right) / all).toFixed(1)} %`;

function row(name: string, { alone, overlap, errors }: Score): string[] {
  const cpwer = `${((100 * errors) / (alone.all + overlap.all)).toFixed(1)} %`;
  return [name, String(alone.all), percent(alone), String(overlap.all), percent(overlap), cpwer];
}

async function judgeFolder(folder: string, name: string): Promise<string[]> {
  const pack = packOfService();
  const [engine, plda, settings] = [await liveEngine(pack), pldaOf(pack), settingsOf('precision-2')];
  const score = emptyScore();
  for (const recording of await loadFolder(folder, 'generated', nodeAudio())) {
    logProgress(join(name, recording.name));
    const part = await keptPart(recording.samples, engine, pack, settings);
    const output = await finish(part, recording.samples.length, settings, plda);
    const labels = [...new Set((output?.diarization ?? []).map(({ speaker }) => speaker))];
    const spans = (turns: readonly { speaker: string; start: number; end: number }[]) =>
      turns.map(({ speaker, start, end }) => ({
        speaker: labels.indexOf(speaker),
        startSeconds: start,
        endSeconds: end,
      }));
    await judge(
      wordsOf(recording),
      {
        durationSeconds: recording.samples.length / SAMPLE_RATE_HZ,
        turns: spans(output?.diarization ?? []),
        exclusiveTurns: spans(output?.exclusiveDiarization ?? []),
      },
      score,
    );
  }
  return row(name, score);
}

function wordsOf({ reference }: LabelledRecording): KnownWord[] {
  const words = reference.flatMap(({ speaker, startMicros, endMicros }, turn) => {
    const [start, end] = [startMicros / 1e6, endMicros / 1e6];
    const count = Math.max(1, Math.floor((end - start) / (WORD_SECONDS + WORD_GAP_SECONDS)));
    const step = (end - start) / count;
    return Array.from({ length: count }, (_, i) => ({
      startSeconds: start + i * step,
      endSeconds: start + (i + 1) * step - WORD_GAP_SECONDS,
      text: `t${turn}w${i}${i === count - 1 ? '.' : ''}`,
      isSpaced: true,
      by: speaker,
    }));
  });
  return words.filter((word) => word.endSeconds > word.startSeconds).sort((a, b) => a.startSeconds - b.startSeconds);
}

async function judge(words: readonly KnownWord[], turns: SpeakerTurns, score: Score): Promise<void> {
  const found = await speakersOfWords(words, turns);
  const people = [...new Set(words.map(({ by }) => by))];
  const speakers = Math.max(people.length, ...found.map((speaker) => speaker + 1));
  const together = new Float64Array(people.length * speakers);
  words.forEach(({ by }, index) => {
    if (found[index] !== undefined) together[people.indexOf(by) * speakers + found[index]]++;
  });
  const speakerOf = assignOptimally(together, people.length, speakers);
  words.forEach((word, index) => {
    const isOverlapped = overlapped(words, index);
    const count = isOverlapped ? score.overlap : score.alone;
    count.all++;
    if (found[index] === speakerOf[people.indexOf(word.by)]) count.right++;
  });
  const textsOf = (isIncluded: (index: number) => boolean) =>
    words.filter((_, index) => isIncluded(index)).map(({ text }) => text);
  const taken = new Set(speakerOf);
  people.forEach((person, at) => {
    const reference = textsOf((index) => words[index].by === person);
    score.errors += editDistance(
      reference,
      textsOf((index) => found[index] === speakerOf[at]),
    );
  });
  for (let speaker = 0; speaker < speakers; speaker++) {
    if (!taken.has(speaker)) score.errors += textsOf((index) => found[index] === speaker).length;
  }
}

/**
 * Whether a word overlaps in time with a word of another speaker.
 *
 * @param words sorted by start; each at most one second long
 */
function overlapped(words: readonly KnownWord[], index: number): boolean {
  const word = words[index];
  for (const step of [-1, 1]) {
    for (let at = index + step; at >= 0 && at < words.length; at += step) {
      const other = words[at];
      if (Math.abs(other.startSeconds - word.startSeconds) > 1) break;
      const isAtOnce = other.startSeconds < word.endSeconds && word.startSeconds < other.endSeconds;
      if (isAtOnce && other.by !== word.by) return true;
    }
  }
  return false;
}
