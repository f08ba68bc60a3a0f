import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { startServer, type TestServer } from '../../test/helpers/http-server.ts';
import { useLocalEngine } from './local-engine.ts';

const MODELS = ['asr-tdt-0.6b-v3', 'parakeet-tdt-0.6b-v3', 'asr-large-v3-turbo'];

let server: TestServer | undefined;
beforeEach(() => vi.stubEnv('ROLLCALL_ASR_URL', undefined));
afterEach(async () => {
  vi.unstubAllEnvs();
  await server?.close();
});

async function listing(models: readonly string[], delayMs = 0): Promise<string> {
  server = await startServer((_, response) => {
    setTimeout(() => response.end(JSON.stringify({ data: models.map((id) => ({ id })) })), delayMs);
  });
  return `${server.origin}/v1`;
}

it('uses the engine that has the models of this service', async () => {
  const address = await listing(MODELS);
  expect(await useLocalEngine(address)).toBe(address);
  expect(process.env.ROLLCALL_ASR_URL).toBe(address);
  expect(server?.requests.map(({ path }) => path)).toEqual(['/v1/models']);
});

it.each(['https://engine.example/v1', ''])('leaves ROLLCALL_ASR_URL=%s as it is', async (set) => {
  const address = await listing(MODELS);
  vi.stubEnv('ROLLCALL_ASR_URL', set);
  expect(await useLocalEngine(address)).toBeUndefined();
  expect(process.env.ROLLCALL_ASR_URL).toBe(set);
  expect(server?.requests).toEqual([]);
});

it('ignores a program with other models, a slow one and a closed port', async () => {
  expect(await useLocalEngine(await listing(['llama']))).toBeUndefined();
  await server?.close();
  expect(await useLocalEngine(await listing(MODELS, 2000))).toBeUndefined();
  await server?.close();
  expect(await useLocalEngine(`${server?.origin}/v1`)).toBeUndefined();
  expect(process.env.ROLLCALL_ASR_URL).toBeUndefined();
});
