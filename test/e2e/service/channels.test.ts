import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { diarizeOutputSchema, type Turn } from '../../../src/contract/outputs.ts';
import { type Answer, type ContractService, faultyFields, startContractService } from '../../contract/service.ts';
import { voiceSample } from '../../helpers/voices.ts';
import { wavFile } from '../../helpers/wav.ts';

const HEADER_BYTES = 44;

let service: ContractService;
beforeAll(async () => {
  service = await startContractService();
});
afterAll(() => service?.stop());

async function run(path: string, request: object): Promise<Answer['body']> {
  const { status, body } = await service.call('POST', path, { body: request });
  expect(status).toBe(200);
  for (;;) {
    const job = (await service.call('GET', `/v1/jobs/${body.jobId}`)).body;
    if (['succeeded', 'failed', 'canceled'].includes(job.status)) return job;
    await new Promise((wake) => setTimeout(wake, 200));
  }
}

/** A stereo call in which both people talk all the time, each on one channel. */
async function stereoCall(): Promise<Uint8Array<ArrayBuffer>> {
  const [left, right] = [await voiceSample('adam', 8), await voiceSample('beth', 8)].map(
    (file) => new Int16Array(file.slice(HEADER_BYTES).buffer),
  );
  const interleaved = Int16Array.from({ length: 2 * Math.min(left.length, right.length) }, (_, i) =>
    i % 2 === 0 ? left[i >> 1] : right[i >> 1],
  );
  return new Uint8Array(
    wavFile({ sampleRateHz: 16_000, channels: 2, tag: 1, bits: 16 }, new Uint8Array(interleaved.buffer)),
  );
}

describe('a diarize job with `channels: "separate"`', () => {
  it('diarizes each side of a call separately, also in a recount', async () => {
    const recording = await stereoCall();
    const { body } = await service.call('POST', '/v1/media/input', { body: { url: 'media://call' } });
    expect((await service.call('PUT', body.url, { key: null, body: recording })).status).toBe(200);
    const first = await run('/v1/diarize', { url: 'media://call', channels: 'separate', embeddings: true });
    const second = await run(`/v1/jobs/${first.jobId}/recount`, { numSpeakers: 1 });
    for (const { status, output } of [first, second]) {
      expect(status).toBe('succeeded');
      expect(diarizeOutputSchema.strict().safeParse(output).error).toBeUndefined();
      const turns: (Turn & { channel: number })[] = output.diarization;
      expect(new Set(turns.map(({ speaker, channel }) => `${speaker} ${channel}`))).toEqual(
        new Set(['SPEAKER_00 0', 'SPEAKER_01 1']),
      );
      expect(output.voiceprints).toHaveLength(2);
    }
    const headers = { Authorization: `Bearer ${service.main.token}` };
    const rttm = await fetch(`${service.url}/v1/jobs/${first.jobId}/output?format=rttm`, { headers });
    expect(await rttm.text()).toMatch(/^SPEAKER call 2 .* SPEAKER_01 /m);
    const { body: usage } = await service.call('GET', '/v1/usage');
    expect(usage.totals.billedSeconds).toBe(20);
  }, 90_000);

  it('refuses fields that need the mean of the channels, and unknown values', async () => {
    const mixed = { confidence: true, speechProbability: true, crosstalkProbability: true, speakerProbability: true };
    const answer = await service.call('POST', '/v1/diarize', {
      body: { url: 'media://call', channels: 'separate', exclusive: true, ...mixed },
    });
    expect([answer.status, faultyFields(answer).sort()]).toEqual([400, Object.keys(mixed).sort()]);
    const other = await service.call('POST', '/v1/diarize', { body: { url: 'media://call', channels: 'left' } });
    expect([other.status, faultyFields(other)]).toEqual([400, ['channels']]);
  });
});
