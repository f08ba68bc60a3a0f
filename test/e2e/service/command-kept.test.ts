import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it, vi } from 'vitest';
import { root, runCli } from '../../helpers/local-process.ts';

vi.setConfig({ testTimeout: 180_000 });

const folders = () =>
  readdirSync(join(root, '.wrangler', 'rollcall')).filter((name) => /^kept-[0-9a-f]{16}$/.test(name));

it('parallel and later commands share one service, whose state is deleted after the last use', async () => {
  const before = folders();
  // A duration that no other test uses, because services are kept by duration.
  const env = { ROLLCALL_KEEP_SECONDS: '3', ROLLCALL_STATE: '/nonexistent' };
  const runs = await Promise.all([runCli('jobs', ['list'], env), runCli('jobs', ['list'], env)]);
  const created = folders().filter((name) => !before.includes(name));
  expect(runs.map(({ code }) => code)).toEqual([0, 0]);
  expect(created).toHaveLength(1);

  const next = await runCli('jobs', ['list'], env);
  expect(next).toMatchObject({ code: 0, stderr: '' });
  await expect.poll(() => folders().includes(created[0]), { timeout: 90_000, interval: 500 }).toBe(false);
});
