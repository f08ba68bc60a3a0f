import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { dirname, extname, join } from 'node:path';
import { projectDir } from '../client/local/paths.ts';
import { table } from './report.ts';
import { cacheDir, logProgress } from './shared.ts';

/** Copies the files of a clone, with uncommitted changes, into a new folder. */
function copyCheckout(): { readonly folder: string; remove(): void } {
  const folder = mkdtempSync(join(cacheDir(), 'checkout-'));
  const listing = execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], {
    cwd: projectDir,
    encoding: 'utf8',
    maxBuffer: 64 * 1024 * 1024,
  });
  for (const name of listing.split('\0')) {
    // Git lists files whose deletion is uncommitted, and a symbolic link node_modules, which ignore rules do not match.
    if (name === '' || name === 'node_modules' || !existsSync(join(projectDir, name))) continue;
    mkdirSync(join(folder, dirname(name)), { recursive: true });
    cpSync(join(projectDir, name), join(folder, name));
  }
  return { folder, remove: () => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }) };
}

const AUDIO_ENDINGS = new Set(['.wav', '.flac', '.mp3']);

/** Installs a fresh copy of the checkout and times the first and the second run of the main command. */
export function measureStart(): string {
  const fixture = findFixture();
  if (!fixture) return '**Not measured:** there is no recording in test/fixtures.';
  const { folder, remove } = copyCheckout();
  try {
    logProgress('installing a fresh checkout');
    const install = timed(folder, 'npm', ['ci']);
    logProgress('the first result');
    const first = timed(folder, 'npm', ['run', '--silent', 'diarize', '--', fixture]);
    const second = timed(folder, 'npm', ['run', '--silent', 'diarize', '--', fixture]);
    if (first.stdout !== second.stdout) throw new Error('two runs on the same recording gave different results');
    const turns = first.stdout.trim().split('\n').length;
    const rows = [
      ['`npm ci`', `${install.seconds.toFixed(1)} s`],
      [`**first \`npm run diarize -- ${fixture}\`**`, `**${first.seconds.toFixed(1)} s**`],
      ['second run', `${second.seconds.toFixed(1)} s`],
    ];
    return `A copy of the files in git, installed by \`npm ci\` (with this machine's npm cache), then the main command:
it bundles the Worker, creates the local database, seeds the models, starts workerd, uploads the recording, runs the
job, prints ${turns} turns and ends. The second run reuses the bundle. Both printed the same turns.

${table(['', 'wall clock'], rows)}`;
  } finally {
    remove();
  }
}

/** The first recording directly in test/fixtures. */
function findFixture(): string | undefined {
  const folder = join(projectDir, 'test/fixtures');
  const name = readdirSync(folder)
    .sort()
    .find((file) => AUDIO_ENDINGS.has(extname(file)));
  return name && `test/fixtures/${name}`;
}

/** @throws Error with the command's stderr if it fails */
function timed(cwd: string, command: string, args: readonly string[]): { seconds: number; stdout: string } {
  const from = performance.now();
  const { ROLLCALL_URL: _url, ROLLCALL_KEY: _key, ROLLCALL_STATE: _state, INIT_CWD: _cwd, ...env } = process.env;
  const { status, stdout, stderr } = spawnSync(command, args, {
    cwd,
    env,
    encoding: 'utf8',
    maxBuffer: 64 * 1024 * 1024,
  });
  if (status !== 0) throw new Error(`${command} ${args.join(' ')} ended with ${status}:\n${stderr}`);
  return { seconds: (performance.now() - from) / 1000, stdout };
}
