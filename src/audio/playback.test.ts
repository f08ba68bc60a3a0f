import { describe, expect, it } from 'vitest';
import { random } from '../../test/helpers/audio.ts';
import type { PlayedSpan } from './container.ts';
import { joined, oneSpan, SpanPlayer } from './playback.ts';

/**
 * Plays decoded samples whose values are their numbers from 1, in blocks of these lengths in turn.
 *
 * @param end end position of the decoded samples
 */
function play(spans: readonly PlayedSpan[], end: number, { start = 0, from = 0, blocks = [7] } = {}): number[] {
  const player = new SpanPlayer(spans, start);
  const out: number[] = [];
  for (let at = from, i = 0; at < end; i++) {
    const length = Math.min(end - at, blocks[i % blocks.length]);
    if (at + length === end) player.endAt(end);
    const samples = Float32Array.from({ length }, (_, k) => at + k + 1);
    for (const block of player.play(samples, at)) out.push(...block);
    at += length;
  }
  if (from >= end) player.endAt(end);
  for (const block of player.finish()) out.push(...block);
  expect(out.length).toBe(Math.max(0, player.totalSamples - start));
  return out;
}

const range = (from: number, end: number) => Array.from({ length: end - from }, (_, i) => from + i + 1);
const silence = (length: number) => new Array<number>(length).fill(0);

describe('playing spans', () => {
  it.each<[string, readonly PlayedSpan[], number[]]>([
    ['all', oneSpan(0), range(0, 50)],
    ['from a position on', oneSpan(12), range(12, 50)],
    ['up to another', oneSpan(12, 30), range(12, 30)],
    ['after silence', oneSpan(12, undefined, 5), [...silence(5), ...range(12, 50)]],
    ['an empty span at the end', oneSpan(50), []],
    [
      'several spans',
      [
        { position: 3, samples: 4 },
        { position: 20, samples: 9 },
      ],
      [...range(3, 7), ...range(20, 29)],
    ],
    [
      'silence between and after',
      [{ samples: 2 }, { position: 3, samples: 4 }, { samples: 3 }, { position: 30 }, { samples: 2 }],
      [...silence(2), ...range(3, 7), ...silence(3), ...range(30, 50), ...silence(2)],
    ],
    [
      'a span that is longer than the samples, and one after their end',
      [{ position: 40, samples: 15 }, { samples: 2 }, { position: 60, samples: 5 }],
      [...range(40, 50), ...silence(5), ...silence(2)],
    ],
    ['silence alone', [{ samples: 3 }], silence(3)],
    ['no span', [], []],
  ])('%s: gives the same samples from any start and in blocks of any length', (_name, spans, expected) => {
    for (const blocks of [[7], [1], [50], [3, 11, 2]]) {
      expect(play(spans, 50, { blocks })).toEqual(expected);
      for (let start = 1; start <= expected.length + 3; start++) {
        expect(play(spans, 50, { blocks, start })).toEqual(expected.slice(start));
      }
    }
  });

  it('gives the same samples from any start for random spans', () => {
    const next = random(4);
    for (let round = 0; round < 300; round++) {
      let position = 0;
      const spans = Array.from({ length: 1 + Math.floor(next() * 6) }, (): PlayedSpan => {
        const samples = 1 + Math.floor(next() * 15);
        if (next() < 0.3) return { samples };
        position += Math.floor(next() * 8);
        const span = { position, samples };
        position += samples;
        return span;
      });
      const whole = play(joined(spans), 60, { blocks: [4, 9] });
      expect(play(spans, 60)).toEqual(whole);
      const start = Math.floor(next() * (whole.length + 2));
      expect(play(spans, 60, { start })).toEqual(whole.slice(start));
    }
  });
});

it('plays silence for samples before the first available one', () => {
  expect(play(oneSpan(2), 50, { from: 10 })).toEqual([...silence(8), ...range(10, 50)]);
  expect(play(oneSpan(2), 50, { from: 10, start: 6 })).toEqual([...silence(2), ...range(10, 50)]);
});

it('extends the last span to the end within its slack', () => {
  const played = (samples: number) => play([{ position: 5, samples, slackSamples: 3 }], 50, { blocks: [20] }).length;
  expect([40, 41, 42, 45, 46].map(played)).toEqual([40, 41, 45, 45, 45]);
  // Also if silence follows, in which reading may begin.
  const spans = [{ position: 10, samples: 39, slackSamples: 1 }, { samples: 9 }];
  const expected = [...range(10, 50), ...silence(9)];
  for (let start = 0; start < 50; start++) {
    expect(play(spans, 50, { blocks: [30], start })).toEqual(expected.slice(start));
  }
});

it('yields long silence in blocks of bounded length', () => {
  const player = new SpanPlayer(oneSpan(0, undefined, 200_000), 0);
  const lengths = Array.from(player.play(Float32Array.of(1), 0), ({ length }) => length);
  expect(lengths.reduce((sum, length) => sum + length)).toBe(200_001);
  expect(Math.max(...lengths)).toBeLessThanOrEqual(65_536);
});

describe('joined', () => {
  it('merges adjacent spans and drops empty ones', () => {
    expect(
      joined([
        { samples: 0 },
        { samples: 3 },
        { samples: 4 },
        { position: 5, samples: 5 },
        { position: 10, samples: 2, slackSamples: 1 },
        { position: 30, samples: 0 },
        { position: 20 },
      ]),
    ).toEqual([{ samples: 7 }, { position: 5, samples: 7, slackSamples: 1 }, { position: 20 }]);
  });

  it('merges with a last span without an end', () => {
    expect(joined([{ position: 5, samples: 5 }, { position: 10 }])).toEqual([{ position: 5 }]);
  });
});
