import { describe, expect, it } from 'vitest';
import type { EngineAnswer, TimedText, Word } from './spans.ts';
import { plausibleWords, timedWords } from './words.ts';

const at = (startSeconds: number, endSeconds: number, text: string): TimedText => ({ startSeconds, endSeconds, text });
const answer = (changes: Partial<EngineAnswer>): EngineAnswer => ({ text: '', segments: [], words: [], ...changes });
const SPEECH = [
  { startSeconds: 0, endSeconds: 2 },
  { startSeconds: 4, endSeconds: 6 },
];
const texts = (words: readonly Word[]) => words.map(({ isSpaced, text }) => (isSpaced ? ' ' : '') + text).join('');

describe('timedWords', () => {
  it('adds the punctuation of the text to the words', () => {
    const words = ['so', 'he', 'said', 'no', 'it', 's', '3', '5', 'done'].map((text, i) => at(i, i + 1, text));
    const found = timedWords(answer({ text: 'So, he said: “No—it’s 3.5 (done)!”', words }), 10, SPEECH);
    expect(found.isSpread).toBe(false);
    expect(texts(found.words)).toBe(' So, he said: “No—it’s 3.5 (done)!”');
    expect(found.words[3]).toMatchObject({ text: '“No—', startSeconds: 3, endSeconds: 4 });
  });

  it('keeps words that are not in the text unchanged', () => {
    const words = [at(0, 1, ' Hello,'), at(1, 2, ' world.')];
    expect(texts(timedWords(answer({ text: '', words }), 2, SPEECH).words)).toBe(' Hello, world.');
    expect(texts(timedWords(answer({ text: 'Hello, there.', words }), 2, SPEECH).words)).toContain('world.');
  });

  it('writes no white space between Chinese words', () => {
    const words = [...'你好吗'].map((text, i) => at(i, i + 1, text));
    expect(texts(timedWords(answer({ text: '你好吗？', words }), 3, SPEECH).words)).toBe('你好吗？');
  });

  it('spreads words without times over the speech of their segments, by length', () => {
    const segments = [at(0, 3, ' One, two.'), at(3, 6, ' Supercalifragilistic words')];
    const { words, isSpread } = timedWords(answer({ text: 'x', segments }), 6, SPEECH);
    expect(isSpread).toBe(true);
    expect(words.map(({ text }) => text)).toEqual(['One,', 'two.', 'Supercalifragilistic', 'words']);
    expect(words.map(({ startSeconds }) => startSeconds)).toEqual([0, 1, 4, expect.closeTo(5.56, 1)]);
    expect(words.at(-1)?.endSeconds).toBeCloseTo(6);
  });

  it('spreads a text without segments over all speech, and no word over a pause', () => {
    const { words } = timedWords(answer({ text: 'one two three four five' }), 6, SPEECH);
    expect(words).toHaveLength(5);
    for (const { startSeconds, endSeconds } of words) {
      expect(endSeconds).toBeGreaterThan(startSeconds);
      expect(SPEECH.some((span) => span.startSeconds <= startSeconds && endSeconds <= span.endSeconds)).toBe(true);
    }
  });

  it('splits a text in a script without white space into words', () => {
    const { words } = timedWords(answer({ text: 'これはペンです。' }), 6, SPEECH);
    expect(words.length).toBeGreaterThan(2);
    expect(texts(words).trim()).toBe('これはペンです。');
  });

  it.each([
    ['after the end of the audio', [at(0, 1, 'a'), at(40, 41, 'b')]],
    ['before its start', [at(-5, 1, 'a')]],
    ['that end before they begin', [at(3, 1, 'a')]],
    ['that run backwards', [at(5, 6, 'a'), at(0, 1, 'b')]],
    ['that are NaN', [at(Number.NaN, 1, 'a')]],
  ])('ignores times %s', (_, words) => {
    expect(timedWords(answer({ text: 'a b', words }), 6, SPEECH).isSpread).toBe(true);
  });

  it('finds no words in an empty answer', () => {
    expect(timedWords(answer({}), 6, SPEECH).words).toEqual([]);
    expect(timedWords(answer({ text: '  ' }), 6, []).words).toEqual([]);
  });
});

describe('plausibleWords', () => {
  const word = (startSeconds: number, endSeconds: number, text: string): Word => ({
    startSeconds,
    endSeconds,
    text,
    isSpaced: true,
  });

  it('drops words outside speech', () => {
    const words = [word(1, 1.4, 'said'), word(3, 3.4, 'imagined'), word(4.1, 4.4, 'too')];
    expect(plausibleWords(words, SPEECH, 6).map(({ text }) => text)).toEqual(['said', 'too']);
  });

  it('drops repetition loops, and keeps a word said five times', () => {
    const loop = Array.from({ length: 20 }, (_, i) => word(0.1 * i, 0.1 * i + 0.1, ['Thank', 'you.'][i % 2]));
    expect(plausibleWords(loop, SPEECH, 6).map(({ text }) => text)).toEqual(['Thank', 'you.']);
    const people = Array.from({ length: 5 }, (_, i) => word(0.2 * i, 0.2 * i + 0.2, 'no'));
    expect(plausibleWords(people, SPEECH, 6)).toHaveLength(5);
  });

  it('shortens words over a pause to at most two seconds of speech', () => {
    const [stretched] = plausibleWords([word(2.5, 5, 'so')], SPEECH, 6);
    expect(stretched).toMatchObject({ startSeconds: 4, endSeconds: 5 });
    const [long] = plausibleWords([word(0, 9, 'eh')], [{ startSeconds: 0, endSeconds: 9 }], 9);
    expect(long).toMatchObject({ startSeconds: 0, endSeconds: 2 });
  });

  it('returns words in order, with positive length, inside the recording', () => {
    const words = plausibleWords([word(1, 1, 'a'), word(0.9, 1.2, 'b'), word(5.9, 7, 'c')], SPEECH, 6);
    words.forEach(({ startSeconds, endSeconds }, index) => {
      expect(endSeconds).toBeGreaterThan(startSeconds);
      expect(startSeconds).toBeGreaterThanOrEqual(words[index - 1]?.startSeconds ?? 0);
      expect(endSeconds).toBeLessThanOrEqual(6);
    });
  });
});
