import { expect, it } from 'vitest';
import { audioPorts, memorySource } from '../../../test/helpers/audio.ts';
import { BlockReader } from '../block-reader.ts';
import type { DecoderPort } from '../types.ts';
import type { PacketWalk, TrackCodec } from './packet.ts';
import { openTrack } from './track.ts';

const track: TrackCodec = { codec: 'aac', sampleRateHz: 48_000, channels: 1, extraData: Uint8Array.of(0x11, 0x90) };

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
  return { result: await openTrack(reader, decoders, { format: 'mp4', where: 'The file', track, walk }), decodes };
}

it('a hole at the beginning of a file, however long, is not taken for a wrong decoder', async () => {
  const found = { ok: true, value: { sampleRateHz: 48_000 } };
  for (const [packets, damaged] of [
    [3, 0],
    [100, 63],
    [100, 70],
    [1000, 800],
    [200_000, 170_000],
  ]) {
    expect((await attempt(packets!, damaged!)).result).toMatchObject(found);
  }
});

it('where nothing decodes little is tried', async () => {
  const { result, decodes } = await attempt(1_000_000, 1_000_000);
  expect(result).toMatchObject({ ok: false, error: { kind: 'corrupt' } });
  expect(decodes).toBeLessThan(600);
});

it('refuses Opus with too many channels for the memory of two decoders: it threw in the middle', async () => {
  const opus: TrackCodec = { codec: 'opus', sampleRateHz: 48_000, channels: 33, extraData: new Uint8Array(0) };
  async function* walk(): PacketWalk {}
  const reader = new BlockReader(memorySource(new Uint8Array(1)));
  const { decoder } = audioPorts();
  const opened = await openTrack(reader, decoder, { format: 'ogg', where: 'The Ogg file', track: opus, walk });
  expect(opened).toMatchObject({
    ok: false,
    error: { kind: 'unsupported', message: 'The Ogg file has 33 channels; of Opus, 1 to 32 are supported.' },
  });
});
