/**
 * Draws conversation.svg, the picture of the README, from a run of the service:
 *   npm run --silent diarize -- test/fixtures/conversation.mp3 --format rttm | npx tsx docs/assets/make-timeline.ts
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { drawTimeline } from '../../client/format/timeline.ts';
import type { Turn } from '../../client/sdk/types.ts';

const DURATION_SECONDS = 56.7;

function readRttm(text: string): Turn[] {
  return text
    .trim()
    .split('\n')
    .map((line) => {
      const [, , , start, duration, , , speaker] = line.split(' ');
      return { speaker, start: Number(start), end: Number(start) + Number(duration) };
    });
}

const root = join(import.meta.dirname, '../..');
const lanes = [
  { title: 'Result of rollcall', turns: readRttm(readFileSync(0, 'utf8')) },
  {
    title: 'Reference',
    turns: readRttm(readFileSync(join(root, 'test/fixtures/conversation.rttm'), 'utf8')),
  },
];
writeFileSync(join(root, 'docs/assets/conversation.svg'), drawTimeline(lanes, DURATION_SECONDS));
