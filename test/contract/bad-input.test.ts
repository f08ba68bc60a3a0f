import type { IncomingMessage, ServerResponse } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { serveRanges, startServer, type TestServer } from '../helpers/http-server.ts';
import { wav16 } from '../helpers/wav.ts';
import { type Answer, type ContractService, startContractService } from './service.ts';

const RATE = 16000;
const tone = (seconds: number) => Float32Array.from({ length: seconds * RATE }, (_, i) => 0.1 * Math.sin(i / 5));
/** The right channel is the inverted left channel. */
const cancelled = wav16(
  Float32Array.from({ length: 24 * RATE }, (_, i) => (i % 2 === 0 ? 0.1 : -0.1) * Math.sin((i >> 1) / 5)),
  RATE,
  2,
);
const silence = wav16(new Float32Array(12 * RATE), RATE);

const PAGES: Record<string, (request: IncomingMessage, response: ServerResponse) => void> = {
  '/missing.wav': (_, response) => response.writeHead(404).end('not here'),
  '/forbidden.wav': (_, response) => response.writeHead(403).end(),
  '/page.wav': (_, response) =>
    response.writeHead(200, { 'Content-Type': 'text/html' }).end('<!doctype html><html><body>Sign in</body></html>'),
  '/empty.wav': (_, response) => response.writeHead(200, { 'Content-Length': '0' }).end(),
  '/zero-seconds.wav': (request, response) => serveRanges(request, response, { bytes: wav16([], RATE), etag: '"0"' }),
  '/silence.wav': (request, response) => serveRanges(request, response, { bytes: silence, etag: '"s"' }),
  '/cancelled.wav': (request, response) => serveRanges(request, response, { bytes: cancelled, etag: '"c"' }),
  '/noise.bin': (_, response) => response.end(Uint8Array.from({ length: 5000 }, (_, i) => (i * 7919) % 251)),
  '/huge.wav': (_, response) => {
    response.writeHead(200, { 'Content-Length': String(2 * 1024 ** 3) });
    response.write(wav16(tone(1), RATE));
  },
  '/large.wav': (_, response) => {
    response.writeHead(200, { 'Content-Length': String(100 * 1024 ** 2 + 1) });
    response.end(wav16(tone(1), RATE));
  },
  '/loop.wav': (_, response) => response.writeHead(302, { Location: '/loop.wav' }).end(),
  '/inside.wav': (_, response) => response.writeHead(302, { Location: 'http://169.254.169.254/latest' }).end(),
  '/video.mp4': (_, response) =>
    response.end(Buffer.concat([Buffer.from([0, 0, 0, 24]), Buffer.from('ftypisom0000isommp42'), Buffer.alloc(4000)])),
};

let service: ContractService;
let files: TestServer;
beforeAll(async () => {
  files = await startServer((request, response) => {
    const page = PAGES[request.url ?? ''];
    if (page) page(request, response);
    else response.writeHead(404).end();
  });
  service = await startContractService();
});
afterAll(async () => {
  await service?.stop();
  await files?.close();
});

/** Jobs of this file: other files share the service. */
const jobIds: string[] = [];

async function runJob(url: string, kind = 'diarize'): Promise<Answer['body']> {
  const created = await service.call('POST', `/v1/${kind}`, { body: { url } });
  expect(created.status).toBe(200);
  jobIds.push(created.body.jobId);
  for (;;) {
    const { body } = await service.call('GET', `/v1/jobs/${created.body.jobId}`);
    if (body.status === 'failed' || body.status === 'succeeded') return body;
    await new Promise((wake) => setTimeout(wake, 100));
  }
}

describe('bad input fails its job with one clear sentence and is not billed', () => {
  it.each([
    ['/missing.wav', /404/],
    ['/forbidden.wav', /403/],
    ['/page.wav', /web page|HTML/],
    ['/empty.wav', /empty/],
    ['/zero-seconds.wav', /no (audio )?samples|empty|no audio/i],
    ['/silence.wav', /no speech\.$/i],
    ['/cancelled.wav', /no speech.*its 2 channels.*cancel each other out/i],
    ['/noise.bin', /not.*(audio|recogni)/i],
    ['/huge.wav', /1 GiB/],
    ['/loop.wav', /redirect/],
    ['/inside.wav', /private|not allowed|link-local/i],
    ['/video.mp4', /MP4/],
  ])('%s', async (path, message) => {
    const job = await runJob(files.origin + path);
    expect(job.status).toBe('failed');
    expect(job.output.error).toMatch(message);
    expect(job.output.error).toMatch(/^\S[^\n]{10,200}$/);
    expect(job.output.code).toMatch(/^[a-z][a-z0-9_]+$/);
    expect(await service.run('SELECT * FROM usage_records WHERE job_id = ?', job.jobId)).toEqual([]);
  });

  it('a file larger than 100 MiB for a voiceprint', async () => {
    const url = `${files.origin}/large.wav`;
    const voice = await runJob(url, 'voiceprint');
    expect(voice.output).toMatchObject({ code: 'source_too_large', error: expect.stringContaining('100 MiB') });
  });

  it('an address without a listening server', async () => {
    const job = await runJob('http://127.0.0.1:9/a.wav');
    expect(job.output).toMatchObject({ code: 'source_unreachable' });
  });

  it.each([
    'http://10.1.2.3/a.wav',
    'http://[::ffff:10.0.0.1]/a.wav',
    'http://0x7f.1/a.wav?x=',
    'http://user:pass@example.com/a.wav',
    'ftp://example.com/a.wav',
    'http://metadata.google.internal/',
  ])('the request with %s is refused', async (url) => {
    const answer = await service.call('POST', '/v1/diarize', { body: { url } });
    if (url.includes('0x7f')) {
      // Loopback is open in local development, in every notation.
      expect(answer.status).toBe(200);
      return;
    }
    expect(answer.status).toBe(400);
    expect(answer.body.errors).toEqual([{ field: 'url', message: expect.any(String) }]);
  });

  it('media that was never uploaded', async () => {
    const job = await runJob('media://never/uploaded');
    expect(job.output).toMatchObject({ code: 'source_not_found', error: expect.stringContaining('never/uploaded') });
  });

  it('deletes the working data of failed jobs', async () => {
    expect(jobIds.length).toBeGreaterThan(10);
    for (const jobId of jobIds) {
      const { objects } = await service.bucket.list({ prefix: `work/${jobId}` });
      expect(objects).toEqual([]);
    }
  });
});
