import { expect, it } from 'vitest';
import type { Line } from './index.ts';
import { segmentsOf } from './index.ts';

/** One word every half a second; ` ` between words of a turn, `|` between turns. */
async function segments(script: string, { space = ' ', pauseBefore = '' } = {}): Promise<string[]> {
  let at = 0;
  const turns = script.split('|').map((text, speaker) => {
    const words = text.split(' ').map((word) => {
      if (word === pauseBefore) at += 2;
      at += 0.5;
      return { start: at - 0.5, end: at - 0.1, text: word, speaker: `S${speaker}` };
    });
    const whole = { start: words[0].start, end: words[words.length - 1].end, speaker: `S${speaker}` };
    return { words, turn: { ...whole, text: text.replaceAll(' ', space) } };
  });
  const found: string[] = [];
  const streamOf = async function* <T>(items: readonly T[]) {
    yield* items;
  };
  const words: (Line & { text: string })[] = turns.flatMap((turn) => turn.words);
  for await (const segment of segmentsOf(streamOf(turns.map(({ turn }) => turn)), streamOf(words)))
    found.push(`${segment.speaker} ${segment.start}-${segment.end} ${segment.text}`);
  return found;
}

it('cuts turns after sentences and at pauses', async () => {
  expect(await segments('Hello there. How are "you?" Well|I am fine', { pauseBefore: 'am' })).toEqual([
    'S0 0-0.9 Hello there.',
    'S0 1-2.4 How are "you?"',
    'S0 2.5-2.9 Well',
    'S1 3-3.4 I',
    'S1 5.5-6.4 am fine',
  ]);
});

it('cuts before a segment has more than two lines or ten seconds', async () => {
  const long = await segments(Array(30).fill('word').join(' '));
  expect(long.length).toBe(2);
  const wide = await segments(Array(8).fill('abcdefghijklmnopqrstuvwxyz').join(' '));
  expect(wide.length).toBe(3);
});

it('writes no white space where the turn has none', async () => {
  expect(await segments('你 好 吗？ 好|是 的', { space: '' })).toEqual([
    'S0 0-1.4 你好吗？',
    'S0 1.5-1.9 好',
    'S1 2-2.9 是的',
  ]);
});
