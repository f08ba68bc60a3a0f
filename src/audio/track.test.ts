import { describe, expect, it } from 'vitest';
import { audioPorts, concat, memorySource } from '../../test/helpers/audio.ts';
import type { DecoderPort } from './audio-ports.ts';
import { BlockReader } from './block-reader.ts';
import type { PacketWalk, TrackCodec } from './container.ts';
import { openTrack, packetCounter } from './track.ts';

const track: TrackCodec = { codec: 'aac', sampleRateHz: 48_000, channels: 1, extraData: Uint8Array.of(0x11, 0x90) };

/** Tries a track of packets of one byte. The first `damaged` packets are zeros, which do not decode. */
async function attempt(packets: number, damaged: number) {
  let decodes = 0;
  const decoders: DecoderPort = {
    open: () => ({
      sampleRateHz: 48_000,
      decode: ([byte]) => {
        decodes++;
        return new Float32Array(byte === 0 ? 0 : 1024);
      },
      close: () => {},
    }),
  };
  async function* walk(): PacketWalk {
    for (let at = 0; at < packets; at += 100) {
      yield { packets: Array.from({ length: Math.min(100, packets - at) }, (_, i) => ({ offset: at + i, length: 1 })) };
    }
  }
  const reader = new BlockReader(memorySource(new Uint8Array(packets).fill(1, damaged)));
  return {
    result: await openTrack(reader, decoders, { format: 'mp4', displayName: 'The file', track, walk }),
    decodes,
  };
}

it('opens a track after damage of any length at the beginning', async () => {
  const opened = { ok: true, value: { sampleRateHz: 48_000 } };
  for (const [packets, damaged] of [
    [3, 0],
    [100, 63],
    [100, 70],
    [1000, 800],
    [200_000, 170_000],
  ]) {
    expect((await attempt(packets!, damaged!)).result).toMatchObject(opened);
  }
});

it('tries fewer than 600 of a million packets if none decodes', async () => {
  const { result, decodes } = await attempt(1_000_000, 1_000_000);
  expect(result).toMatchObject({ ok: false, error: { kind: 'corrupt' } });
  expect(decodes).toBeLessThan(600);
});

it('rejects Opus with too many channels for the memory of two decoders', async () => {
  const opus: TrackCodec = { codec: 'opus', sampleRateHz: 48_000, channels: 33, extraData: new Uint8Array(0) };
  async function* walk(): PacketWalk {}
  const reader = new BlockReader(memorySource(new Uint8Array(1)));
  const { decoder } = audioPorts();
  const opened = await openTrack(reader, decoder, { format: 'ogg', displayName: 'The Ogg file', track: opus, walk });
  expect(opened).toMatchObject({
    ok: false,
    error: { kind: 'unsupported', message: 'The Ogg file has 33 channels; Opus is supported with 1 to 32.' },
  });
});

const SIXTH = 0;
const WHOLE = 3;
const INDEPENDENT = 0;
const DEPENDENT = 1;

/** A frame of E-AC-3 with a header and no content. @param blocksCode 0 to 3 for 1, 2, 3 and 6 blocks */
function eac3Frame(blocksCode: number, streamType = INDEPENDENT, substream = 0, bytes = 64): Uint8Array {
  const frame = new Uint8Array(bytes);
  const words = bytes / 2 - 1;
  frame.set([0x0b, 0x77, (streamType << 6) | (substream << 3) | (words >> 8), words & 255, blocksCode << 4, 16 << 3]);
  return frame;
}

describe('the samples of an E-AC-3 packet', () => {
  const track = { codec: 'eac3', sampleRateHz: 48_000, channels: 2, extraData: new Uint8Array(0) } as const;
  const { headBytes, count } = packetCounter(track, 1536, true);
  const samplesOf = (...frames: Uint8Array[]) => {
    const packet = concat(...frames);
    return count(packet.subarray(0, headBytes), packet.length);
  };

  it('are those of a single frame', () => {
    expect(samplesOf(eac3Frame(WHOLE))).toBe(1536);
    expect(samplesOf(eac3Frame(SIXTH))).toBe(256);
  });

  it('are the sum of its short frames', () => {
    expect(samplesOf(...Array.from({ length: 6 }, () => eac3Frame(SIXTH, INDEPENDENT, 0, 2000)))).toBe(1536);
    expect(samplesOf(eac3Frame(2), eac3Frame(2))).toBe(1536);
  });

  it('do not include dependent streams or other programs', () => {
    expect(samplesOf(eac3Frame(WHOLE), eac3Frame(WHOLE, DEPENDENT))).toBe(1536);
    expect(samplesOf(eac3Frame(WHOLE), eac3Frame(WHOLE, INDEPENDENT, 1))).toBe(1536);
    expect(samplesOf(eac3Frame(2), eac3Frame(2, DEPENDENT), eac3Frame(2), eac3Frame(2, DEPENDENT))).toBe(1536);
    expect(samplesOf(eac3Frame(WHOLE, DEPENDENT))).toBe(0);
  });

  it('are those of an AC-3 core', () => {
    const core = Uint8Array.of(0x0b, 0x77, 0, 0, 0, 8 << 3, 0, 0);
    expect(samplesOf(core, eac3Frame(WHOLE, DEPENDENT))).toBe(1536);
  });

  it('are 0 for bytes that are no frame or a truncated one', () => {
    expect(samplesOf(new Uint8Array(100))).toBe(0);
    expect(samplesOf(eac3Frame(WHOLE).subarray(0, 5))).toBe(0);
    expect(samplesOf(eac3Frame(2), new Uint8Array(100))).toBe(768);
  });
});
