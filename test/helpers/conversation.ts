import type { SpeakerSpan, SpeakerTurns, Word } from '../../src/transcription/spans.ts';
import { random } from './audio.ts';

export interface SpokenWord extends Word {
  readonly speaker: number;
}

/** A conversation with known words. */
export interface Conversation extends SpeakerTurns {
  /** By start. */
  readonly words: readonly SpokenWord[];
}

/**
 * A generated conversation: sentences of three to twelve words by changing speakers; every third sentence begins before
 * the previous one has ended. Its turns have typical errors of a diarization: their edges are off by up to 0.1 s, and
 * the louder speaker has the exclusive turns.
 */
export function conversation({
  seed,
  sentences,
  speakers,
}: {
  seed: number;
  sentences: number;
  speakers: number;
}): Conversation {
  const next = random(seed);
  const between = (from: number, to: number) => from + (to - from) * next();
  const words: SpokenWord[] = [];
  const turns: SpeakerSpan[] = [];
  const loudness = Array.from({ length: sentences }, () => next());
  const freeFrom = Array.from({ length: speakers }, () => 0);
  let speaker = 0;
  let end = 1;
  for (let sentence = 0; sentence < sentences; sentence++) {
    speaker = (speaker + 1 + Math.floor(next() * (speakers - 1))) % speakers;
    let at = Math.max(freeFrom[speaker] + 0.2, next() < 1 / 3 ? end - between(0.3, 1.6) : end + between(0.1, 0.9));
    const startSeconds = at;
    const count = 3 + Math.floor(next() * 10);
    for (let word = 0; word < count; word++) {
      const length = between(0.12, 0.5);
      const text = `s${sentence}w${word}${word === count - 1 ? '.' : ''}`;
      words.push({ startSeconds: at, endSeconds: at + length, text, isSpaced: true, speaker });
      at += length + (word === count - 1 ? 0 : between(0, 0.12));
    }
    turns.push({ speaker, startSeconds: startSeconds + between(-0.1, 0.1), endSeconds: at + between(-0.1, 0.1) });
    freeFrom[speaker] = at;
    end = Math.max(end, at);
  }
  const exclusiveTurns = turns.flatMap((turn, index) => {
    const over = turns.filter((other, at) => at !== index && loudness[at] > loudness[index] && overlaps(turn, other));
    return without(turn, over);
  });
  const byStart = <T extends { startSeconds: number }>(spans: T[]) =>
    spans.sort((a, b) => a.startSeconds - b.startSeconds);
  return {
    durationSeconds: end + 1,
    words: byStart(words),
    turns: byStart(turns),
    exclusiveTurns: byStart(exclusiveTurns),
  };
}

const overlaps = (a: SpeakerSpan, b: SpeakerSpan) => a.startSeconds < b.endSeconds && b.startSeconds < a.endSeconds;

function without(turn: SpeakerSpan, others: readonly SpeakerSpan[]): SpeakerSpan[] {
  let rest = [turn];
  for (const other of others) {
    rest = rest.flatMap((span) =>
      overlaps(span, other)
        ? [
            { ...span, endSeconds: other.startSeconds },
            { ...span, startSeconds: other.endSeconds },
          ].filter(({ startSeconds, endSeconds }) => endSeconds > startSeconds)
        : [span],
    );
  }
  return rest;
}
