import { expect, it } from 'vitest';
import { probeTrack } from './probe-track.ts';

it('refuses Opus of so many channels that a second decoder beside the first has no memory: it threw in the middle', async () => {
  const track = { codec: 'opus', sampleRateHz: 48_000, channels: 33, extraData: '' };
  const probed = await probeTrack({} as never, {} as never, { track, where: 'The Ogg file' } as never);
  expect(probed).toMatchObject({
    ok: false,
    error: { kind: 'unsupported', message: 'The Ogg file has 33 channels; of Opus, 1 to 32 are supported.' },
  });
});
