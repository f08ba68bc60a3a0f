import { execFileSync, spawnSync } from 'node:child_process';
import { transform } from 'esbuild';
import { expect, it } from 'vitest';
import { snippet } from './snippets.ts';

const hasPython = spawnSync('python3', ['--version']).status === 0;
const CALL = {
  origin: 'http://127.0.0.1:8787',
  url: "https://example.com/it's.mp3",
  options: { model: 'precision-2', numSpeakers: 2, transcription: true },
};

it('writes valid curl commands, TypeScript and Python', async () => {
  for (const call of [CALL, { ...CALL, file: `a "quoted" name's.mp3` }]) {
    execFileSync('bash', ['-n'], { input: snippet('curl', call) });
    await expect(transform(snippet('typescript', call), { loader: 'ts', format: 'esm' })).resolves.toBeDefined();
    const parse = ['-c', 'import ast, sys; ast.parse(sys.stdin.read())'];
    if (hasPython) execFileSync('python3', parse, { input: snippet('python', call) });
  }
});

it('writes the options of the form in each language', () => {
  expect(snippet('curl', CALL)).toContain(`"model":"precision-2","numSpeakers":2,"transcription":true`);
  expect(snippet('python', CALL)).toContain('    num_speakers=2,\n    transcription=True,\n');
  expect(snippet('typescript', { ...CALL, file: 'a.mp3' })).toContain('"url": "media://recording"');
});
