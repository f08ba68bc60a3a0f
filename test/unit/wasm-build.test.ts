import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';

const script = fileURLToPath(new URL('../../wasm/check.sh', import.meta.url));

it('the committed wasm modules equal those that the build scripts make', (context) => {
  const { status, stdout, stderr } = spawnSync('bash', [script], { encoding: 'utf8' });
  // The checksums come first, with or without a compiler.
  expect(stdout, stderr).toMatch(/codecs\.wasm: OK[\s\S]*dsp\.wasm: OK/);
  if (status === 3) context.skip(stdout.trim().split('\n').pop());
  expect(status, stderr).toBe(0);
  expect(stdout).toContain('the rebuild is identical');
});
