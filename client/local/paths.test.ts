import { join } from 'node:path';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { bundleCacheDir, defaultStateDir, makePrivateDir, projectDir } from './paths.ts';

// The tests may run as root, who can write to every folder.
vi.mock('node:fs', async (original) => ({
  ...(await original<typeof import('node:fs')>()),
  mkdirSync: () => {
    throw Object.assign(new Error('refused'), { code: 'EACCES' });
  },
}));

afterEach(() => vi.unstubAllEnvs());

describe('a private folder that cannot be made', () => {
  const moves = /ROLLCALL_STATE/;
  const checkout = /\(EACCES\)\. The checkout must be writable by this user\.$/;

  it('names ROLLCALL_STATE if that variable names the folder', () => {
    vi.stubEnv('ROLLCALL_STATE', '/somewhere/else');
    expect(() => makePrivateDir(defaultStateDir())).toThrow(moves);
    expect(() => makePrivateDir(bundleCacheDir(projectDir))).toThrow(checkout);
    expect(() => makePrivateDir(join(projectDir, '.wrangler', 'rollcall', 'oneshot-1'))).toThrow(checkout);
  });

  it('names the checkout otherwise', () => {
    vi.stubEnv('ROLLCALL_STATE', '');
    expect(() => makePrivateDir(defaultStateDir())).toThrow(checkout);
  });
});
