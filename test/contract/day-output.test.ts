import { afterAll, beforeAll, expect, it } from 'vitest';
import { type ContractService, startContractService } from './service.ts';
import { storeJob } from './stored-job.ts';

let service: ContractService;
beforeAll(async () => {
  service = await startContractService();
});
afterAll(() => service?.stop());

it('extracts the turns of a day from an output of 140 MB', async () => {
  const turns = Array.from({ length: 50_000 }, (_, i) => ({
    speaker: `SPEAKER_0${i % 8}`,
    start: i * 1.7,
    end: i * 1.7 + 1.5,
    confidence: Object.fromEntries(Array.from({ length: 8 }, (_, speaker) => [`SPEAKER_0${speaker}`, 50])),
  }));
  const track = `[${Array.from({ length: 4_320_000 }, () => '0.25').join(',')}]`;
  const tracks = [0, 1, 2, 3, 4].map((speaker) => `"SPEAKER_0${speaker}":${track}`);
  const probability = `{"score":{${tracks.join(',')}},"resolution":0.02}`;
  const output = `{"diarization":${JSON.stringify(turns)},"speakerProbability":${probability},"warning":"x"}`;
  expect(output.length).toBeGreaterThan(110_000_000);
  await storeJob(service, { id: 'day', status: 'succeeded', output });
  const response = await fetch(`${service.url}/v1/jobs/day/output?format=rttm`, {
    headers: { Authorization: `Bearer ${service.main.token}` },
  });
  const rows = (await response.text()).split('\n');
  expect(rows).toHaveLength(50_001);
  expect(rows[49_999]).toBe('SPEAKER talk 1 84998.300 1.500 <NA> <NA> SPEAKER_07 <NA> <NA>');
}, 120_000);
