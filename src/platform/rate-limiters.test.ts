import { expect, it } from 'vitest';
import { createFloodLimits, networkOf } from './rate-limiters.ts';

it('treats the addresses of an IPv6 /64 network as one client', () => {
  expect(networkOf('203.0.113.7')).toBe('203.0.113.7');
  expect(networkOf('2001:db8:1:2:3:4:5:6')).toBe('2001:db8:1:2');
  expect(networkOf('2001:db8:1:2::6')).toBe('2001:db8:1:2');
  expect(networkOf('2001:db8::6')).toBe('2001:db8:0:0');
  expect(networkOf('::1')).toBe('0:0:0:0');
});

it('allows requests if a counter is missing or fails', async () => {
  const lines: string[] = [];
  const limits = createFloodLimits(
    { key: { limit: () => Promise.reject(new Error('unavailable')) } },
    (_level, event) => lines.push(event),
  );
  expect(await limits.allowsClient('203.0.113.7')).toBe(true);
  expect(await limits.allowsKey('key')).toBe(true);
  expect(lines).toEqual(['flood_limit_failed']);
});
