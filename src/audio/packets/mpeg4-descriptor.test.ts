import { describe, expect, it } from 'vitest';
import { decoderConfig } from './mpeg4-descriptor.ts';

describe('decoderConfig', () => {
  const specific = [5, 2, 0x14, 0x08];
  const decoder = [4, 13 + specific.length, 0x40, ...Array(12).fill(7), ...specific];
  const found = { objectType: 0x40, privateData: Uint8Array.of(0x14, 0x08) };

  it('steps over all optional fields', () => {
    // Flags 0xe0: another stream's number (9, 9), an address of 3 bytes, a clock's number (9, 9).
    expect(decoderConfig(Uint8Array.from([3, 30, 0, 0, 0xe0, 9, 9, 3, 1, 1, 1, 9, 9, ...decoder]))).toEqual(found);
    expect(decoderConfig(Uint8Array.from([3, 30, 0, 0, 0, ...decoder]))).toEqual(found);
    expect(decoderConfig(Uint8Array.from([6, 1, 9, ...decoder]))).toEqual(found);
  });

  it('has no private data where there is none, and nothing in what is none', () => {
    expect(decoderConfig(Uint8Array.from([3, 30, 0, 0, 0, 4, 13, 0x69]))).toEqual({
      objectType: 0x69,
      privateData: new Uint8Array(0),
    });
    expect(decoderConfig(new Uint8Array(0))).toBeUndefined();
    expect(decoderConfig(Uint8Array.of(1, 2, 3, 4, 5, 6))).toBeUndefined();
  });
});
