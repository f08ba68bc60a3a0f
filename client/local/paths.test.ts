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

describe('the error for a private folder that cannot be created', () => {
  const stateAdvice = /ROLLCALL_STATE/;
  const checkoutAdvice = /\(EACCES\)\. The checkout must be writable by this user\.$/;

  it('names ROLLCALL_STATE if that variable sets the folder', () => {
    vi.stubEnv('ROLLCALL_STATE', '/somewhere/else');
    expect(() => makePrivateDir(defaultStateDir())).toThrow(stateAdvice);
    expect(() => makePrivateDir(bundleCacheDir(projectDir))).toThrow(checkoutAdvice);
    expect(() => makePrivateDir(join(projectDir, '.wrangler', 'rollcall', 'oneshot-1'))).toThrow(checkoutAdvice);
  });

  it('names the checkout otherwise', () => {
    vi.stubEnv('ROLLCALL_STATE', '');
    expect(() => makePrivateDir(defaultStateDir())).toThrow(checkoutAdvice);
  });
});
