import { expect, it } from 'vitest';
import { alacTrack } from './alac.ts';

const config = Uint8Array.from([0, 0, 16, 0, 0, 16, 40, 10, 14, 2, 0, 255, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xac, 0x44]);
const withByte = (at: number, value: number) => config.map((byte, i) => (i === at ? value : byte));

it('reads rate and channels of a configuration and puts the atom around it', () => {
  const extraData = Uint8Array.from([0, 0, 0, 36, ...Buffer.from('alac'), 0, 0, 0, 0, ...config]);
  expect(alacTrack(config)).toEqual({ codec: 'alac', sampleRateHz: 44100, channels: 2, extraData });
});

it('refuses what no encoder writes', () => {
  expect(alacTrack(config.slice(1))).toBeUndefined();
  expect(alacTrack(withByte(9, 9))).toBeUndefined();
  expect(alacTrack(withByte(5, 17))).toBeUndefined();
  expect(alacTrack(withByte(0, 9))).toBeUndefined();
});
