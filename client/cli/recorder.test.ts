import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { findRecorder, record } from './recorder.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'rollcall-recorder-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

const install = (name: string): void => {
  writeFileSync(join(folder, name), '#!/bin/sh\n');
  chmodSync(join(folder, name), 0o755);
};

describe('findRecorder', () => {
  it('selects the first installed program, and names all candidates if none is installed', () => {
    expect(() => findRecorder(folder, 'linux')).toThrow(/arecord, rec, sox, ffmpeg/);
    install('ffmpeg');
    expect(findRecorder(folder, 'linux').args).toContain('alsa');
    expect(findRecorder(folder, 'darwin').args).toContain('avfoundation');
    install('arecord');
    expect(findRecorder(`/nowhere:${folder}`, 'linux').program).toBe('arecord');
  });

  it('finds sox.exe on Windows', () => {
    install('ffmpeg.exe');
    expect(() => findRecorder(folder, 'win32')).toThrow(/these programs: sox\./);
    install('sox.exe');
    expect(findRecorder(folder, 'win32')).toMatchObject({
      program: 'sox',
      args: expect.arrayContaining(['waveaudio']),
    });
  });
});

describe('record', () => {
  const program = (script: string) => ({ program: process.execPath, args: ['-e', script] });

  it('yields samples from chunks of any length until the signal aborts', async () => {
    const stop = new AbortController();
    const samples: number[] = [];
    const script = `process.stdout.write(Buffer.from([0, 0, 0]));
      setTimeout(() => process.stdout.write(Buffer.from([0x40, 0, 0x80])), 100); setInterval(() => {}, 1000);`;
    for await (const chunk of record(program(script), stop.signal)) {
      samples.push(...chunk);
      if (samples.length === 3) stop.abort();
    }
    expect(samples).toEqual([0, 0.5, -1]);
  });

  it('throws the reason when a recorder stops', async () => {
    const all = async (script: string) => {
      for await (const _ of record(program(script), new AbortController().signal));
    };
    await expect(all('console.error("no\\nsuch device"); process.exit(1)')).rejects.toThrow(/such device/);
    await expect(all('process.exit(3)')).rejects.toThrow(/exit code 3/);
  });
});
