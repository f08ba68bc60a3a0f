import { type ChildProcess, spawn } from 'node:child_process';
import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';
import { CliError, EXIT } from './run.ts';

/**
 * A program that writes the microphone's audio to its stdout: 16-bit little-endian, 16 kHz, mono, no header.
 */
interface Recorder {
  readonly program: string;
  readonly args: readonly string[];
}

const SOX_OUTPUT = ['-q', '-t', 'raw', '-r', '16000', '-e', 'signed-integer', '-b', '16', '-L', '-c', '1', '-'];

/** In order of preference. On Windows `sox` needs the name of its driver, and `ffmpeg` the name of the device. */
function recorders(platform: NodeJS.Platform): Recorder[] {
  if (platform === 'win32') return [{ program: 'sox', args: ['-t', 'waveaudio', 'default', ...SOX_OUTPUT] }];
  const input = platform === 'darwin' ? ['-f', 'avfoundation', '-i', ':default'] : ['-f', 'alsa', '-i', 'default'];
  const ffmpeg = ['-v', 'error', '-nostdin', ...input, '-ar', '16000', '-ac', '1', '-f', 's16le', '-'];
  return [
    { program: 'arecord', args: ['-q', '-t', 'raw', '-f', 'S16_LE', '-r', '16000', '-c', '1'] },
    { program: 'rec', args: SOX_OUTPUT },
    { program: 'sox', args: ['-d', ...SOX_OUTPUT] },
    { program: 'ffmpeg', args: ffmpeg },
  ];
}

/** @throws CliError if none is installed */
export function findRecorder(path = process.env.PATH ?? '', platform = process.platform): Recorder {
  const candidates = recorders(platform);
  const endings = platform === 'win32' ? ['.com', '.exe'] : ['']; // executables that need no shell
  const isIn = (folder: string, program: string): boolean =>
    folder !== '' && endings.some((ending) => isExecutable(join(folder, `${program}${ending}`)));
  const found = candidates.find(({ program }) => path.split(delimiter).some((folder) => isIn(folder, program)));
  if (found) return found;
  const names = candidates.map(({ program }) => program).join(', ');
  throw new CliError(EXIT.usage, `The microphone needs one of these programs: ${names}. None is installed.`);
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/**
 * Records until the signal aborts.
 *
 * @returns samples in −1…1
 * @throws CliError with the program's message if it ends before the signal aborts
 */
export async function* record(recorder: Recorder, signal: AbortSignal): AsyncGenerator<Float32Array> {
  const child = spawn(recorder.program, recorder.args, { stdio: ['ignore', 'pipe', 'pipe'] });
  const stop = (): void => void child.kill('SIGTERM');
  signal.addEventListener('abort', stop, { once: true });
  const ended = endOf(child);
  try {
    let odd: Buffer = Buffer.alloc(0);
    for await (const chunk of child.stdout) {
      const bytes = Buffer.concat([odd, chunk as Buffer]);
      odd = bytes.subarray(bytes.length & ~1);
      yield Float32Array.from({ length: bytes.length >> 1 }, (_, at) => bytes.readInt16LE(2 * at) / 32768);
    }
    const reason = await ended;
    if (!signal.aborted) throw new CliError(EXIT.failed, `${recorder.program} has stopped recording: ${reason}`);
  } finally {
    signal.removeEventListener('abort', stop);
    stop();
  }
}

const MAX_STDERR_CHARS = 2000;

/** Returns the reason why a process ended: its last line on stderr, or its exit code. */
function endOf(child: ChildProcess): Promise<string> {
  let stderr = '';
  child.stderr?.on('data', (chunk: Buffer) => {
    stderr = (stderr + chunk.toString()).slice(-MAX_STDERR_CHARS);
  });
  return new Promise((done) => {
    child.on('error', (error) => done(error.message));
    child.on('close', (code) => done(stderr.trim().split('\n').at(-1) || `exit code ${code}`));
  });
}
