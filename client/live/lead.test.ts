import { expect, it } from 'vitest';
import { Lead } from './lead.ts';

/** Sends all frames that may be sent now. @returns the number of frames */
function send(lead: Lead): number {
  let frames = 0;
  for (; !lead.isUsedUp; frames++) lead.add(1);
  return frames;
}

it('allows a burst of three seconds, then twice real time', () => {
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

it('allows more when events show that the service is faster', () => {
  const lead = new Lead(() => 0);
  send(lead);
  lead.limitTo(5);
  expect(send(lead)).toBe(25);
  // A late event does not raise the lead.
  lead.limitTo(600);
  expect(send(lead)).toBe(0);
});

it('counts frames in the send buffer as not processed', () => {
  let now = 0;
  const lead = new Lead(() => now);
  for (; now < 10_000; now += 10) lead.raiseTo(20);
  lead.raiseTo(20);
  expect(send(lead)).toBe(10);
});
