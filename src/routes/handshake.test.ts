import { describe, expect, it } from 'vitest';
import { handshakeFault } from './handshake.ts';

const GOOD = {
  upgrade: 'websocket',
  'sec-websocket-version': '13',
  'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==',
};
const fault = (headers: Record<string, string>, { isDirect = false, method = 'GET' } = {}) =>
  handshakeFault({ method, header: (name) => headers[name.toLowerCase()] }, isDirect)?.kind;
const without = (name: keyof typeof GOOD) => {
  const { [name]: _, ...rest } = GOOD;
  return rest as Record<string, string>;
};

describe('a WebSocket handshake', () => {
  it('is good whole, in any case of its words, and with a last digit whose spare bits are set', () => {
    for (const isDirect of [true, false]) {
      expect(fault(GOOD, { isDirect })).toBeUndefined();
      expect(fault({ ...GOOD, upgrade: 'WebSocket' }, { isDirect })).toBeUndefined();
      expect(fault({ ...GOOD, 'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZR==' }, { isDirect })).toBeUndefined();
    }
  });

  it('is judged behind the edge by what the edge passed on', () => {
    expect(fault(without('sec-websocket-version'))).toBeUndefined();
    expect(fault(without('sec-websocket-key'))).toBeUndefined();
    expect(fault({ upgrade: 'websocket' })).toBeUndefined();
  });

  it('must be whole where the client speaks to the runtime itself', () => {
    expect(fault(without('sec-websocket-version'), { isDirect: true })).toBe('websocket_version');
    expect(fault(without('sec-websocket-key'), { isDirect: true })).toBe('invalid');
  });

  it.each([
    [{ 'sec-websocket-version': '8' }, 'websocket_version'],
    [{ 'sec-websocket-version': '' }, 'websocket_version'],
    [{ 'sec-websocket-version': '13, 8' }, 'websocket_version'],
    [{ 'sec-websocket-key': '' }, 'invalid'],
    [{ 'sec-websocket-key': 'AAAAAAAAAAAAAAAAAAAA' }, 'invalid'],
    [{ 'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ' }, 'invalid'],
    [{ 'sec-websocket-key': 'dGhlIHNhbXBsZSBub25jZQ==, dGhlIHNhbXBsZSBub25jZQ==' }, 'invalid'],
    [{ upgrade: 'h2c' }, 'upgrade_required'],
  ])('is refused with %j', (change, kind) => {
    expect(fault({ ...GOOD, ...change })).toBe(kind);
    expect(fault({ ...GOOD, ...change }, { isDirect: true })).toBe(kind);
  });

  it('is a GET: HEAD has no connection to give away', () => {
    expect(fault(GOOD, { method: 'HEAD' })).toBe('upgrade_required');
  });
});
