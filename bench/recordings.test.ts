import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { nodeAudio } from '../client/audio/ports.ts';
import { loadFolder } from './recordings.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'rollcall-recordings-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

it('refuses a folder without recordings', async () => {
  writeFileSync(join(folder, 'talk.wav'), '');
  await expect(loadFolder(folder, 'generated', nodeAudio())).rejects.toThrow(`no FLAC in ${folder}`);
});

it('refuses a recording without a reference', async () => {
  writeFileSync(join(folder, 'talk.flac'), '');
  await expect(loadFolder(folder, 'generated', nodeAudio())).rejects.toThrow('talk.rttm');
});
