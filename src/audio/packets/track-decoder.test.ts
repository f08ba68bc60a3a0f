import { expect, it } from 'vitest';
import { memorySource } from '../../../test/helpers/audio.ts';
import { BlockReader } from '../block-reader.ts';
import type { DecoderPort } from '../types.ts';
import type { PacketWalk, TrackCodec } from './packet.ts';
import { tryDecoder } from './track-decoder.ts';

const track: TrackCodec = { codec: 'aac', sampleRateHz: 48_000, channels: 1, extraData: '1190' };

/** Tries a track of packets of one byte, of which those up to a number are zeros, which do not decode. */
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
  return { result: await tryDecoder(reader, track, decoders, walk(), 'The file'), decodes };
}

it('a hole at the beginning of a file, however long, is not taken for a wrong decoder', async () => {
  const found = { ok: true, value: { sampleRateHz: 48_000, packetSamples: 1024 } };
  for (const [packets, damaged] of [
    [3, 0],
    [100, 63],
    [100, 70],
    [1000, 800],
    [200_000, 170_000],
  ]) {
    expect((await attempt(packets!, damaged!)).result).toEqual(found);
  }
});

it('where nothing decodes little is tried', async () => {
  const { result, decodes } = await attempt(1_000_000, 1_000_000);
  expect(result).toMatchObject({ ok: false, error: { kind: 'corrupt' } });
  expect(decodes).toBeLessThan(600);
});
