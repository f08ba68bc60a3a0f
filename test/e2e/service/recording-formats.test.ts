import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { type ContractService, startContractService } from '../../contract/service.ts';

const FIXTURES = join(import.meta.dirname, '../../fixtures/formats');

let service: ContractService;
beforeAll(async () => {
  service = await startContractService();
}, 180_000);
afterAll(() => service?.stop());

/** Runs a job on a fixture in a data: URL until it ends. */
async function runJob(file: string) {
  const url = `data:application/octet-stream;base64,${readFileSync(join(FIXTURES, file)).toString('base64')}`;
  const { status, body } = await service.call('POST', '/v1/diarize', { body: { url } });
  expect(status).toBe(200);
  for (;;) {
    const job = (await service.call('GET', `/v1/jobs/${body.jobId}`)).body;
    if (['succeeded', 'failed', 'canceled'].includes(job.status)) return job;
    await new Promise((wake) => setTimeout(wake, 200));
  }
}

// Each decoder once in workerd; unit tests in src cover the containers.
it.each([
  'adts-heaacv2-44100-stereo.aac',
  'amr-nb-8000-mono.amr',
  'amr-wb-16000-mono.amr',
  'mp2-16000-mono.mp2',
  'wav-adpcm-ima-22050-mono.wav',
  'wav-adpcm-ms-11025-mono.wav',
  'wav-gsm-8000-mono.wav',
  'aifc-ima4-22050-stereo.aifc',
  'mp4-alac-22050-mono.m4a',
  'mp4-ac3-48000-stereo.mp4',
  'mp4-eac3-48000-6ch.mp4',
  'matroska-opus-mono.webm',
  'ogg-vorbis-8000-mono.ogg',
])('finds the speech in %s', async (file) => {
  const job = await runJob(file);
  expect(job).toMatchObject({ status: 'succeeded' });
  // The voice talks from the start to the end of the recording.
  expect(job.output.diarization.length).toBeGreaterThan(0);
  expect(job.output.diarization[0].start).toBeLessThan(0.7);
  expect(job.output).not.toHaveProperty('warning');
});
