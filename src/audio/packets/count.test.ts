import { describe, expect, it } from 'vitest';
import { concat } from '../../../test/helpers/audio.ts';
import { packetCounter } from './count.ts';

const SIXTH = 0;
const WHOLE = 3;
const INDEPENDENT = 0;
const DEPENDENT = 1;

/** A frame of E-AC-3 that is its header and nothing else. @param blocksCode 0 to 3 for 1, 2, 3 and 6 blocks */
function eac3Frame(blocksCode: number, streamType = INDEPENDENT, substream = 0, bytes = 64): Uint8Array {
  const frame = new Uint8Array(bytes);
  const words = bytes / 2 - 1;
  frame.set([0x0b, 0x77, (streamType << 6) | (substream << 3) | (words >> 8), words & 255, blocksCode << 4, 16 << 3]);
  return frame;
}

describe('E-AC-3', () => {
  const track = { codec: 'eac3', sampleRateHz: 48_000, channels: 2, extraData: new Uint8Array(0) } as const;
  const { headBytes, count } = packetCounter(track, 1536, true);
  const samplesOf = (...frames: Uint8Array[]) => {
    const packet = concat(...frames);
    return count(packet.subarray(0, headBytes), packet.length);
  };

  it('of one frame', () => {
    expect(samplesOf(eac3Frame(WHOLE))).toBe(1536);
    expect(samplesOf(eac3Frame(SIXTH))).toBe(256);
  });

  it('of short frames: all of them count', () => {
    expect(samplesOf(...Array.from({ length: 6 }, () => eac3Frame(SIXTH, INDEPENDENT, 0, 2000)))).toBe(1536);
    expect(samplesOf(eac3Frame(2), eac3Frame(2))).toBe(1536);
  });

  it('of more channels of the same time, or of another program: these add nothing', () => {
    expect(samplesOf(eac3Frame(WHOLE), eac3Frame(WHOLE, DEPENDENT))).toBe(1536);
    expect(samplesOf(eac3Frame(WHOLE), eac3Frame(WHOLE, INDEPENDENT, 1))).toBe(1536);
    expect(samplesOf(eac3Frame(2), eac3Frame(2, DEPENDENT), eac3Frame(2), eac3Frame(2, DEPENDENT))).toBe(1536);
    expect(samplesOf(eac3Frame(WHOLE, DEPENDENT))).toBe(0);
  });

  it('with AC-3 as its core', () => {
    const core = Uint8Array.of(0x0b, 0x77, 0, 0, 0, 8 << 3, 0, 0);
    expect(samplesOf(core, eac3Frame(WHOLE, DEPENDENT))).toBe(1536);
  });

  it('that is none, or cut off', () => {
    expect(samplesOf(new Uint8Array(100))).toBe(0);
    expect(samplesOf(eac3Frame(WHOLE).subarray(0, 5))).toBe(0);
    expect(samplesOf(eac3Frame(2), new Uint8Array(100))).toBe(768);
  });
});
