import { describe, expect, it } from 'vitest';
import { conversation } from '../../test/helpers/conversation.ts';
import type { SpeakerSpan, SpeakerTurns, Word } from './spans.ts';
import { speakersOfWords, spokenTurns } from './speakers.ts';

const span = (speaker: number, startSeconds: number, endSeconds: number): SpeakerSpan => ({
  speaker,
  startSeconds,
  endSeconds,
});
/** Words of 0.3 s, one after the other. */
const wordsFrom = (startSeconds: number, text: string): Word[] =>
  text.split(' ').map((word, index) => ({
    startSeconds: startSeconds + 0.3 * index,
    endSeconds: startSeconds + 0.3 * (index + 1),
    text: word,
    isSpaced: true,
  }));
const talk = (turns: readonly SpeakerSpan[], exclusiveTurns = turns): SpeakerTurns => ({
  durationSeconds: 60,
  turns,
  exclusiveTurns,
});

it('assigns 97 % of words correctly without overlap, and 90 % in overlap', async () => {
  const counts = { alone: { right: 0, all: 0 }, overlap: { right: 0, all: 0 } };
  for (let seed = 1; seed <= 20; seed++) {
    const { words, ...turns } = conversation({ seed, sentences: 60, speakers: 2 + (seed % 4) });
    const speakers = await speakersOfWords(words, turns);
    words.forEach((word, index) => {
      const isOverlapped = words.some(
        (other) =>
          other.speaker !== word.speaker &&
          other.startSeconds < word.endSeconds &&
          word.startSeconds < other.endSeconds,
      );
      const count = isOverlapped ? counts.overlap : counts.alone;
      count.all++;
      if (speakers[index] === word.speaker) count.right++;
    });
  }

  const share = ({ right, all }: { right: number; all: number }) => right / all;
  expect(counts.overlap.all).toBeGreaterThan(500);
  expect(share(counts.alone)).toBeGreaterThan(0.97);
  expect(share(counts.overlap)).toBeGreaterThan(0.9);
});

describe('speakersOfWords', () => {
  const turns = [span(0, 0, 3), span(1, 2, 6)];

  it('assigns a word to the only active speaker', async () => {
    expect(await speakersOfWords(wordsFrom(0, 'one two three'), talk(turns))).toEqual([0, 0, 0]);
    expect(await speakersOfWords(wordsFrom(4, 'one two three'), talk(turns))).toEqual([1, 1, 1]);
  });

  it('assigns a word in a gap to the nearest turn, and returns nothing without turns', async () => {
    expect(await speakersOfWords(wordsFrom(6.5, 'late'), talk(turns))).toEqual([1]);
    expect(await speakersOfWords(wordsFrom(50, 'later'), talk(turns))).toEqual([1]);
    expect(await speakersOfWords(wordsFrom(6.2, 'late'), talk([...turns, span(2, 7, 8)]))).toEqual([1]);
    expect(await speakersOfWords(wordsFrom(6.5, 'late'), talk([...turns, span(2, 7, 8)]))).toEqual([2]);
    expect(await speakersOfWords(wordsFrom(0, 'nobody'), talk([]))).toEqual([]);
  });

  it('keeps sentences whole in overlap, with one speaker for each', async () => {
    const first = wordsFrom(0.9, 'this goes on to the end.');
    expect(await speakersOfWords(first, talk(turns))).toEqual([0, 0, 0, 0, 0, 0]);
    const second = wordsFrom(2, 'wait a minute please');
    const both = [...first, ...second].sort((a, b) => a.startSeconds - b.startSeconds);
    const speakers = await speakersOfWords(both, talk(turns));
    expect(both.map(({ text }, index) => [text, speakers[index]])).toEqual(
      both.map((word) => [word.text, first.includes(word) ? 0 : 1]),
    );
  });

  it('does not split a sentence for a single ambiguous word', async () => {
    const turns = [span(0, 0, 4), span(1, 1.2, 1.5)];
    const exclusive = [span(0, 0, 1.2), span(1, 1.2, 1.5), span(0, 1.5, 4)];
    expect(await speakersOfWords(wordsFrom(0, 'a b c d e f g h'), talk(turns, exclusive))).toEqual(Array(8).fill(0));
  });

  it('assigns the words of a day', async () => {
    const day = Array.from({ length: 8640 }, (_, i) => span(i % 3, 10 * i, 10 * i + 10.5));
    const words = day.flatMap(({ startSeconds }) =>
      wordsFrom(startSeconds, 'ten seconds of talk and then another one'),
    );
    const speakers = await speakersOfWords(words, talk(day));
    expect(speakers.filter((speaker, index) => speaker === Math.floor(index / 8) % 3).length / words.length).toBe(1);
  });
});

describe('spokenTurns', () => {
  it('joins the words of a speaker, with white space if the language has it', async () => {
    const words = [...wordsFrom(0, 'Good morning.'), ...wordsFrom(0.6, 'Hello!'), ...wordsFrom(5, 'Well,')];
    expect(spokenTurns(words, [0, 0, 1, 1])).toMatchObject([
      { speaker: 0, text: 'Good morning.', startSeconds: 0, endSeconds: 0.6 },
      { speaker: 1, text: 'Hello!' },
      { speaker: 1, text: 'Well,', startSeconds: 5 },
    ]);
    const chinese = [...'你好吗'].map((text, i) => ({ startSeconds: i, endSeconds: i + 1, text, isSpaced: false }));
    expect(spokenTurns(chinese, [0, 0, 0]).map(({ text }) => text)).toEqual(['你好吗']);
  });
});
