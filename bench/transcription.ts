import { join } from 'node:path';
import { nodeAudio } from '../client/audio/ports.ts';
import { assignOptimally, settingsOf } from '../src/diarization/index.ts';
import { type SpeakerTurns, speakersOfWords, type Word } from '../src/transcription/index.ts';
import { conversation } from '../test/helpers/conversation.ts';
import { keptPart } from './kept-parts.ts';
import { liveEngine } from './live/sessions.ts';
import { packOfService, pldaOf } from './packs.ts';
import { finish } from './pipeline.ts';
import { type LabelledRecording, loadFolder } from './recordings.ts';
import { table } from './report.ts';
import { editDistance } from './score/edit-distance.ts';
import { say, sharedPath } from './shared.ts';

const CONVERSATIONS = 40;
/** Reference words that stand in for what is said in a labelled turn: so long, with so much between them. */
const WORD_SECONDS = 0.3;
const WORD_GAP_SECONDS = 0.05;

/** A word and who has really said it. */
interface KnownWord extends Word {
  readonly by: string;
}

/** How many words have the right speaker, those said alone and those said while somebody else speaks; and cpWER. */
interface Score {
  alone: { right: number; all: number };
  overlap: { right: number; all: number };
  /** Errors of the concatenated words of each speaker, with the best assignment of speakers. */
  errors: number;
}
const emptyScore = (): Score => ({ alone: { right: 0, all: 0 }, overlap: { right: 0, all: 0 }, errors: 0 });

/** Whose words they are, by reference words with times, so that no recognition error counts. */
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
  return `Words of known speakers, fed through the step that gives words their speakers. Generated: ${CONVERSATIONS} conversations of 60 sentences (\`test/helpers/conversation.ts\`),
every third begun before the one before has ended, with turns whose edges are off by up to 0.1 s. Labelled recordings of \`../shared/audio\`: words of ${WORD_SECONDS} s that fill the true turns, and the turns
that precision-2 finds, so that its errors count in full. Overlap: somebody else says a word at the same time. cpWER: errors of each speaker's words in a row, with the best assignment of speakers.

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
    say(join(name, recording.name));
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
        durationSeconds: recording.samples.length / 16_000,
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
  const said = (isOf: (index: number) => boolean) => words.filter((_, index) => isOf(index)).map(({ text }) => text);
  const taken = new Set(speakerOf);
  people.forEach((person, at) => {
    const reference = said((index) => words[index].by === person);
    score.errors += editDistance(
      reference,
      said((index) => found[index] === speakerOf[at]),
    );
  });
  for (let speaker = 0; speaker < speakers; speaker++) {
    if (!taken.has(speaker)) score.errors += said((index) => found[index] === speaker).length;
  }
}

/** Whether somebody else says a word at the same time. Words are by start; none is longer than a second. */
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
