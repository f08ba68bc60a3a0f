import { expect, it } from 'vitest';
import { drawTimeline } from './timeline.ts';

it('draws a row per speaker with a box at the time of each turn, and escapes names', () => {
  const turns = [
    { speaker: 'A & "B"', start: 0, end: 10 },
    { speaker: 'C', start: 10, end: 20 },
    { speaker: 'A & "B"', start: 15, end: 20 },
  ];
  const svg = drawTimeline([{ title: 'x < y', turns }], 20);
  const boxes = [...svg.matchAll(/<rect x="([\d.]+)" y="(\d+)" width="([\d.]+)"/g)].map(([, ...numbers]) =>
    numbers.map(Number),
  );
  expect(boxes).toEqual([
    [130, 61, 425],
    [767.5, 61, 212.5],
    [555, 91, 425],
  ]);
  expect(svg).toContain('A &amp; &quot;B&quot;');
  expect(svg).toContain('x &lt; y');
});
