import { createHash } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Turn } from '../../client/sdk/types.ts';
import { type ContractService, startContractService } from '../contract/service.ts';
import { startServer } from '../helpers/http-server.ts';
import { conversation, root } from '../helpers/local-process.ts';
import { pythonWith, runPython } from '../helpers/python.ts';
import { errorRate } from '../helpers/score.ts';
import { conversationSamples, conversationTurns, voiceSample } from '../helpers/voices.ts';
import { wavFile } from '../helpers/wav.ts';

const bin = pythonWith(['pyannoteai-sdk==0.4.0', 'scipy==1.17.1']);

type Call = readonly [method: string, kwargs: Readonly<Record<string, unknown>>];
interface SdkResult {
  // biome-ignore lint/suspicious/noExplicitAny: results of every shape
  readonly results: any[];
  /** Class of the exception. */
  readonly error?: string;
  readonly arguments?: readonly string[];
}

const RETRIEVE = { every_seconds: 1 };

describe.skipIf(bin === undefined)('the public Python SDK, unchanged, with another base address', () => {
  let service: ContractService;
  let folder: string;
  let paths: object;
  let media: string;
  beforeAll(async () => {
    service = await startContractService();
    folder = mkdtempSync(join(tmpdir(), 'rollcall-sdk-'));
    const document = (await (await fetch(`${service.url}/openapi.json`)).json()) as { paths: object };
    paths = document.paths;
  });
  afterAll(async () => {
    await service?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  async function sdk(calls: readonly Call[], key = service.main.token): Promise<SdkResult> {
    const env = { ROLLCALL_URL: service.url, ROLLCALL_KEY: key };
    const script = join(root, 'test/e2e/clients/sdk.py');
    const { stdout, stderr } = await runPython(join(bin ?? '', 'python'), [script, JSON.stringify(calls)], { env });
    expect(stdout, stderr).not.toBe('');
    return JSON.parse(stdout) as SdkResult;
  }

  function write(name: string, bytes: Uint8Array): string {
    const path = join(folder, name);
    writeFileSync(path, bytes);
    return path;
  }

  it('accepts a good key in its constructor and raises its own error for a bad one', async () => {
    expect(await sdk([])).toEqual({ results: [] });
    const refused = await sdk([], 'bad');
    expect(refused).toMatchObject({ error: 'HTTPError' });
    expect(refused.arguments?.[0]).toContain('Failed to authenticate');
  });

  it('uploads, diarizes with its defaults and retrieves', async () => {
    const { results } = await sdk([
      ['upload', { audio: conversation }],
      ['diarize', { media_url: '$0' }],
      ['retrieve', { job_id: '$1', ...RETRIEVE }],
    ]);
    media = results[0];
    expect(media).toBe(`media://${createHash('md5').update(readFileSync(conversation)).digest('hex')}`);
    expect(results[2]).toMatchObject({ jobId: results[1], status: 'succeeded' });
    expect(Object.keys(results[2].output)).toEqual(['diarization']);
    expect(errorRate(conversationTurns(), results[2].output.diarization)).toBeLessThan(0.15);
  });

  it('returns every optional output and the requested number of speakers', async () => {
    const flags = { confidence: true, turn_level_confidence: true, exclusive: true, num_speakers: 2 };
    const { results } = await sdk([
      ['diarize', { media_url: media, model: 'community-1', ...flags, speechProbability: true }],
      ['retrieve', { job_id: '$0', ...RETRIEVE }],
    ]);
    const { output } = results[1];
    expect(new Set(output.diarization.map(({ speaker }: Turn) => speaker)).size).toBe(2);
    expect(output.diarization[0].confidence).toEqual({
      SPEAKER_00: expect.any(Number),
      SPEAKER_01: expect.any(Number),
    });
    expect(output.exclusiveDiarization.length).toBeGreaterThan(2);
    expect(output.confidence.score.length).toBe(output.speechProbability.score.length);
  });

  it('uploads samples as IEEE-float WAV', async () => {
    const samples = await conversationSamples();
    const options = { sampleRateHz: 16_000, channels: 1, tag: 3, bits: 32 };
    const path = write('float.wav', wavFile(options, new Uint8Array(samples.buffer)));
    const { results } = await sdk([
      ['waveform', { path }],
      ['diarize', { media_url: '$0' }],
      ['retrieve', { job_id: '$1', ...RETRIEVE }],
    ]);
    expect(errorRate(conversationTurns(), results[2].output.diarization)).toBeLessThan(0.15);
  });

  it('raises its own error with the message of a failed job', async () => {
    const ended = await sdk([
      ['diarize', { media_url: 'http://127.0.0.1:9/recording.wav' }],
      ['retrieve', { job_id: '$0', ...RETRIEVE }],
    ]);
    const { body: job } = await service.call('GET', `/v1/jobs/${ended.results[0]}`);
    expect(ended).toMatchObject({ error: 'PyannoteAIFailedJob', arguments: [job.output.error, ended.results[0]] });
    expect(job.output.error).toMatch(/^[A-Z].*\.$/);
  });

  it('raises an HTTP error for a request that is refused', async () => {
    const refused = await sdk([['diarize', { media_url: 'ftp://example.com/a.wav' }]]);
    expect(refused.error).toBe('HTTPError');
    expect(refused.arguments?.[0]).toContain('400 Client Error');
    const unknown = await sdk([['retrieve', { job_id: '00000000-0000-4000-8000-000000000000' }]]);
    expect(unknown.arguments?.[0]).toContain('404 Client Error');
  });

  it('raises its own error for a canceled job', async ({ skip }) => {
    if (!('/v1/jobs/{jobId}/cancel' in paths)) skip('this service has no POST /v1/jobs/{jobId}/cancel');
    const silent = await startServer(() => {}); // the job waits for its recording until it is canceled
    try {
      const { results } = await sdk([['diarize', { media_url: `${silent.origin}/recording.wav` }]]);
      const canceled = await service.call('POST', `/v1/jobs/${results[0]}/cancel`);
      expect(canceled).toMatchObject({ status: 200, body: { status: 'canceled' } });
      const ended = await sdk([['retrieve', { job_id: results[0], ...RETRIEVE }]]);
      expect(ended).toMatchObject({
        error: 'PyannoteAICanceledJob',
        arguments: [expect.stringMatching(/\w/), results[0]],
      });
    } finally {
      await silent.close();
    }
  });

  it('creates voiceprints and identifies their speakers', async ({ skip }) => {
    if (!('/v1/identify' in paths)) skip('this service has no POST /v1/identify');
    const [adam, beth] = await Promise.all(['adam', 'beth'].map(async (who) => write(who, await voiceSample(who))));
    const { results, ...ended } = await sdk([
      ['upload', { audio: adam }],
      ['voiceprint', { media_url: '$0' }],
      ['retrieve', { job_id: '$1', ...RETRIEVE }],
      ['upload', { audio: beth }],
      ['voiceprint', { media_url: '$3' }],
      ['retrieve', { job_id: '$4', ...RETRIEVE }],
      [
        'identify',
        {
          media_url: media,
          voiceprints: { Adam: '$2.output.voiceprint', Beth: '$5.output.voiceprint' },
          matching_threshold: 1,
          exclusive: true,
          turn_level_confidence: true,
        },
      ],
      ['retrieve', { job_id: '$6', ...RETRIEVE }],
    ]);
    expect(ended).toEqual({});
    expect(results[2].output).toEqual({ voiceprint: expect.stringMatching(/^[A-Za-z0-9+/=_-]+$/) });
    const { output } = results[7];
    expect(output.voiceprints.map(({ match }: { match: string | null }) => match).sort()).toEqual(
      expect.arrayContaining(['Adam', 'Beth']),
    );
    for (const name of ['Adam', 'Beth']) {
      const found = output.identification.filter(({ match }: { match: string | null }) => match === name);
      const truth = conversationTurns().filter(({ speaker }) => speaker === name.toLowerCase());
      expect(
        errorRate(
          truth,
          found.map((turn: Turn) => ({ ...turn, speaker: name })),
        ),
        name,
      ).toBeLessThan(0.3);
    }
    expect(output.identification.every((turn: Turn & { diarizationSpeaker: string }) => turn.diarizationSpeaker)).toBe(
      true,
    );
  });
});
