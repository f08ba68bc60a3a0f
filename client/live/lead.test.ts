import { expect, it } from 'vitest';
import { Lead } from './lead.ts';

/** Sends what may go out in this moment. @returns frames */
function send(lead: Lead): number {
  let frames = 0;
  for (; !lead.isUsedUp; frames++) lead.add(1);
  return frames;
}

it('lets three seconds go at once, then twice real time', () => {
  let now = 1000;
  const lead = new Lead(() => now);
  expect(send(lead)).toBe(30);
  const sent: number[] = [];
  for (let i = 0; i < 8; i++) {
    now += 25;
    sent.push(send(lead));
  }
  expect(sent).toEqual([0, 1, 0, 1, 0, 1, 0, 1]);
  now += 60_000;
  expect(send(lead)).toBe(30);
});

it('follows the service where its events show that it is faster', () => {
  const lead = new Lead(() => 0);
  send(lead);
  lead.isAtMost(5);
  expect(send(lead)).toBe(25);
  // An event of something long ago.
  lead.isAtMost(600);
  expect(send(lead)).toBe(0);
});

it('takes nothing for processed that has not left', () => {
  let now = 0;
  const lead = new Lead(() => now);
  for (; now < 10_000; now += 10) lead.isAtLeast(20);
  lead.isAtLeast(20);
  expect(send(lead)).toBe(10);
});
