import { expect, it } from 'vitest';
import { LinkList, type WholeLink, wholeLink } from './links.ts';

const linkOf = (extraData: string, gaps: readonly number[] = []): WholeLink => ({
  format: 'ogg',
  codec: 'vorbis',
  sampleRateHz: 8000,
  channels: 1,
  totalSamples: 100,
  durationSeconds: 1 / 80,
  packetSamples: 0,
  pieces: [{ position: 0, samples: 100 }],
  seek: { deltas: [] },
  gaps,
  serial: 1,
  track: { codec: 'vorbis', sampleRateHz: 8000, channels: 1, extraData },
});

it('links with equal headers keep them once, also where others stand between', () => {
  const list = new LinkList();
  const links = ['aa', 'bb', 'aa', 'bb', 'aa'].map((data) => linkOf(data));
  for (const link of links) expect(list.add(link)).toBe(true);
  expect(list.links.map(({ trackOf }) => trackOf)).toEqual([undefined, undefined, 0, 1, 0]);
  expect(list.links.map((link) => wholeLink(list.links, link))).toEqual(links);
  expect(list.totalSamples).toBe(500);
});

it('headers of their own in every link find no room without end', () => {
  const list = new LinkList();
  let count = 0;
  while (list.add(linkOf(`${count}`.padEnd(64_000, '0')))) count++;
  expect(count).toBeGreaterThan(60);
  expect(JSON.stringify(list.links).length).toBeLessThan((4 << 20) + 100);
});

it('silence is summed, overlaps are not', () => {
  const list = new LinkList();
  for (const gaps of [[10, 500, 90, -20], [], [10, 300]]) list.add(linkOf('aa', gaps));
  expect(list.gapSamples).toBe(800);
});
