import { spawnSync } from 'node:child_process';
import { expect, it } from 'vitest';
import { allFiles } from '../../src/platform/onnx/manifest.ts';
import { root } from '../../test/helpers/local-process.ts';
import { readManifest } from './store.ts';

it('keeps Git from changing the line ends of model files', (context) => {
  const paths = [...readManifest(root).packs.values()].flatMap(allFiles).map(({ path }) => `models/${path}`);
  expect(paths).toContain('models/embedder-v6-plda.json');
  const git = spawnSync('git', ['check-attr', 'text', '--', ...paths], { cwd: root, encoding: 'utf8' });
  if (git.status !== 0) context.skip('There is no Git checkout here.');
  expect(git.stdout.trim().split('\n')).toEqual(paths.map((path) => `${path}: text: unset`));
});
