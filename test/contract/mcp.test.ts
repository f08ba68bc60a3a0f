import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { conversationFile } from '../helpers/voices.ts';
import { type ContractService, startContractService } from './service.ts';
import { storeJob } from './stored-job.ts';

let service: ContractService;
let client: Client;
beforeAll(async () => {
  service = await startContractService();
  client = await connected(service.main.token);
});
afterAll(async () => {
  await client?.close();
  await service?.stop();
});

async function connected(key: string): Promise<Client> {
  const created = new Client({ name: 'test', version: '1' });
  const requestInit = { headers: { Authorization: `Bearer ${key}` } };
  await created.connect(new StreamableHTTPClientTransport(new URL(`${service.url}/mcp`), { requestInit }));
  return created;
}

interface ToolResult {
  readonly isError?: boolean;
  readonly content: readonly { readonly text: string }[];
}
const call = async (name: string, args: object, by = client) =>
  (await by.callTool({ name, arguments: { ...args } })) as unknown as ToolResult;

describe('the MCP server, called with the SDK client', () => {
  it('lists its tools', async () => {
    expect(client.getServerVersion()).toMatchObject({ name: 'rollcall' });
    const { tools } = await client.listTools();
    expect(tools.map(({ name }) => name).sort()).toEqual([
      'diarize',
      'get_job',
      'identify',
      'list_jobs',
      'recount',
      'transcribe',
      'voiceprint',
    ]);
    const { inputSchema } = tools.find(({ name }) => name === 'identify')!;
    expect(inputSchema).toMatchObject({ type: 'object', required: ['url', 'voiceprints'] });
  });

  it('diarizes a recording, waits for the job, returns its turns and recounts it', async () => {
    const { body } = await service.call('POST', '/v1/media/input', { body: { url: 'media://conversation' } });
    await service.call('PUT', body.url, { key: null, body: await conversationFile(12) });
    const [created] = (await call('diarize', { url: 'media://conversation' })).content;
    const { jobId } = JSON.parse(created.text);
    const [head, turns] = (await call('get_job', { jobId, waitSeconds: 60 })).content;
    expect(JSON.parse(head.text)).toMatchObject({ jobId, status: 'succeeded' });
    expect(turns.text).toMatch(/^\d+\.\d{3} {2}\d+\.\d{3} {2}SPEAKER_00\n/);
    const [again] = (await call('recount', { jobId, numSpeakers: 1 })).content;
    const recounted = await call('get_job', { ...JSON.parse(again.text), format: 'rttm', waitSeconds: 60 });
    expect(recounted.content[1].text).not.toContain('SPEAKER_01');
    const [list] = (await call('list_jobs', { limit: 1 })).content;
    expect(JSON.parse(list.text)).toMatchObject({ items: [{ status: 'succeeded' }], nextCursor: expect.any(String) });
  }, 90_000);

  it('returns errors of the service', async () => {
    const wrong = await call('identify', { url: 'ftp://x', voiceprints: [{ label: 'Ann', voiceprint: 'x' }] });
    expect(wrong.isError).toBe(true);
    const { errors } = JSON.parse(wrong.content[0].text) as { errors: { field: string }[] };
    expect(errors.map(({ field }) => field)).toEqual(expect.arrayContaining(['url', 'voiceprints.0.voiceprint']));
    // No engine is configured here.
    expect((await call('transcribe', { url: 'media://x' })).content[0].text).toContain('transcription');
    expect(await call('get_job', { jobId: 'nowhere' })).toMatchObject({ isError: true });
  });

  it('uses the key of the caller', async () => {
    await storeJob(service, { id: 'mine', status: 'succeeded', output: '{"diarization":[]}' });
    const stranger = await connected((await service.newKey({ account: 'other' })).token);
    expect(await call('get_job', { jobId: 'mine' }, stranger)).toMatchObject({ isError: true });
    await stranger.close();
    const reader = await connected((await service.newKey({ scopes: ['jobs:read'] })).token);
    expect((await call('diarize', { url: 'media://x' }, reader)).content[0].text).toContain(
      'lacks the scope jobs:write',
    );
    await reader.close();
    await expect(connected('no-key')).rejects.toThrow();
  });

  it('truncates a long output', async () => {
    const turn = { speaker: 'SPEAKER_00', start: 0, end: 1 };
    await storeJob(service, {
      id: 'long',
      status: 'succeeded',
      output: JSON.stringify({ diarization: Array(20_000).fill(turn) }),
    });
    const [, { text }] = (await call('get_job', { jobId: 'long' })).content;
    expect(text.length).toBeLessThan(300_000);
    expect(text).toMatch(/\[The output is longer\..*\]$/);
  });

  it('accepts only POST with a key', async () => {
    expect((await service.call('GET', '/mcp')).status).toBe(405);
    expect((await service.call('POST', '/mcp', { key: null, body: {} })).status).toBe(401);
  });
});
