import { join } from 'node:path';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { bundleCacheDir, defaultStateDir, makePrivateDir, projectDir } from './paths.ts';

// Whoever runs the tests may be root, to whom no folder is refused.
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

  it('is one that ROLLCALL_STATE moves, where that says so', () => {
    vi.stubEnv('ROLLCALL_STATE', '/somewhere/else');
    expect(() => makePrivateDir(defaultStateDir())).toThrow(moves);
    expect(() => makePrivateDir(bundleCacheDir(projectDir))).toThrow(checkout);
    expect(() => makePrivateDir(join(projectDir, '.wrangler', 'rollcall', 'oneshot-1'))).toThrow(checkout);
  });

  it('is in the checkout otherwise: moving the state would not help', () => {
    vi.stubEnv('ROLLCALL_STATE', '');
    expect(() => makePrivateDir(defaultStateDir())).toThrow(checkout);
  });
});
