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

async function startEngine(models: readonly string[], delayMs = 0): Promise<string> {
  server = await startServer((_, response) => {
    setTimeout(() => response.end(JSON.stringify({ data: models.map((id) => ({ id })) })), delayMs);
  });
  return `${server.origin}/v1`;
}

it('uses an engine that lists the models of this service', async () => {
  const address = await startEngine(MODELS);
  expect(await useLocalEngine(address)).toBe(address);
  expect(process.env.ROLLCALL_ASR_URL).toBe(address);
  expect(server?.requests.map(({ path }) => path)).toEqual(['/v1/models']);
});

it.each(['https://engine.example/v1', ''])('does not change ROLLCALL_ASR_URL=%s', async (set) => {
  const address = await startEngine(MODELS);
  vi.stubEnv('ROLLCALL_ASR_URL', set);
  expect(await useLocalEngine(address)).toBeUndefined();
  expect(process.env.ROLLCALL_ASR_URL).toBe(set);
  expect(server?.requests).toEqual([]);
});

it('ignores a program with other models, a slow program and a closed port', async () => {
  expect(await useLocalEngine(await startEngine(['llama']))).toBeUndefined();
  await server?.close();
  expect(await useLocalEngine(await startEngine(MODELS, 2000))).toBeUndefined();
  await server?.close();
  expect(await useLocalEngine(`${server?.origin}/v1`)).toBeUndefined();
  expect(process.env.ROLLCALL_ASR_URL).toBeUndefined();
});
