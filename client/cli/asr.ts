import { execFileSync, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { Command } from 'commander';
import { localDir, makePrivateDir, projectDir } from '../local/paths.ts';
import { onInterrupt } from './interrupt.ts';
import { callersDir } from './job.ts';
import { ASR_PORT } from './local-engine.ts';
import { CliError, EXIT, INTERRUPTED, note } from './run.ts';

const engineDir = join(projectDir, 'containers', 'asr');
const requirements = join(engineDir, 'requirements.txt');
const venv = join(localDir, 'asr-venv');
const venvPython = process.platform === 'win32' ? join(venv, 'Scripts', 'python.exe') : join(venv, 'bin', 'python');

/** Oldest minor version of Python 3 that the pinned requirements support. */
const OLDEST_MINOR = 11;
const PYTHONS = ['python3', 'python3.13', 'python3.12', 'python3.11', 'python'];
/** Time after which a server that is still transcribing is killed. */
const STOP_MS = 3000;

interface Options {
  readonly whisper?: string;
  readonly parakeet?: string;
  readonly preload?: readonly string[];
  readonly host?: string;
  readonly port?: string;
}

async function run(options: Options): Promise<void> {
  let stop = (): void => process.exit(INTERRUPTED); // during the installation
  onInterrupt(() => stop());
  await install();

  const server = spawn(venvPython, [join(engineDir, 'server.py'), ...argumentsOf(options)], { stdio: 'inherit' });
  let isStopped = false;
  stop = () => {
    isStopped = true;
    server.kill('SIGTERM');
    setTimeout(() => server.kill('SIGKILL'), STOP_MS).unref();
  };
  const code = await new Promise<number | null>((done, refuse) => {
    server.on('error', refuse);
    server.on('close', done);
  });
  if (isStopped) process.exit(EXIT.done);
  if (code !== 0) throw new CliError(EXIT.failed, `The engine ended with code ${code}.`);
}

function argumentsOf({ whisper, parakeet, preload, host, port }: Options): string[] {
  const folder = (name: string): string => resolve(callersDir('asr'), name);
  return [
    ...(whisper === undefined ? [] : ['--whisper', folder(whisper)]),
    ...(parakeet === undefined ? [] : ['--parakeet', folder(parakeet)]),
    ...(preload === undefined ? [] : ['--preload', ...preload]),
    ...(host === undefined ? [] : ['--host', host]),
    ...(port === undefined ? [] : ['--port', port]),
  ];
}

/** Installs the requirements into a virtual environment, unless they are installed. */
async function install(): Promise<void> {
  const stamp = join(venv, 'installed.sha256');
  const requirementsHash = createHash('sha256').update(readFileSync(requirements)).digest('hex');
  if (existsSync(venvPython) && existsSync(stamp) && readFileSync(stamp, 'utf8') === requirementsHash) return;
  const python = findPython();
  note('Installing the engine (about 500 MB, once) …');
  makePrivateDir(localDir);
  rmSync(venv, { recursive: true, force: true, maxRetries: 5 });
  await call(
    python,
    ['-m', 'venv', venv],
    'The virtual environment could not be created (Debian: apt install python3-venv)',
  );
  const pip = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '--requirement', requirements];
  await call(venvPython, pip, 'The requirements could not be installed');
  writeFileSync(stamp, requirementsHash);
}

function call(command: string, args: readonly string[], failure: string): Promise<void> {
  return new Promise((done, refuse) => {
    const child = spawn(command, args, { stdio: ['ignore', process.stderr, process.stderr] });
    child.on('error', refuse);
    child.on('close', (code) => (code === 0 ? done() : refuse(new CliError(EXIT.failed, `${failure}.`))));
  });
}

function findPython(): string {
  const python = PYTHONS.find((name) => {
    try {
      const print = 'import sys; print(sys.version_info[0], sys.version_info[1])';
      const version = execFileSync(name, ['-c', print], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
      const [major, minor] = version.split(' ').map(Number);
      return major === 3 && minor >= OLDEST_MINOR;
    } catch {
      return false;
    }
  });
  if (python === undefined) throw new CliError(EXIT.failed, `The engine needs Python 3.${OLDEST_MINOR} or later.`);
  return python;
}

export const command = new Command('asr')
  .description('Runs the transcription engine of containers/asr on this machine. npm start uses it while it runs.')
  .option('--whisper <folder>', 'Whisper in the format of CTranslate2, instead of the pinned large-v3-turbo')
  .option('--parakeet <folder>', 'a Parakeet TDT model in ONNX, instead of the pinned 0.6b-v3')
  .option('--preload <model...>', 'load whisper, parakeet or both before the first request')
  .option('--host <address>', 'address to listen on (HOST, 127.0.0.1)')
  .option('--port <port>', `port to listen on (PORT, ${ASR_PORT})`)
  .action(run);
