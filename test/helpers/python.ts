import { execFile, execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { makePrivateDir } from '../../client/local/paths.ts';
import { type Finished, root } from './local-process.ts';

/** Enough for several gigabytes of wheels over a slow connection. */
const INSTALL_TIMEOUT_MS = 15 * 60 * 1000;

/**
 * Installs exactly these packages once, in a kept virtual environment below the system's temporary folder.
 * @param requirements pinned, in pip's notation
 * @returns the environment's folder of commands; undefined after printing the reason if the installation fails
 */
export function pythonWith(requirements: readonly string[]): string | undefined {
  const name = createHash('sha256').update(requirements.join('\n')).digest('hex').slice(0, 16);
  const parent = join(tmpdir(), 'rollcall-python');
  const folder = join(parent, name);
  const bin = join(folder, 'bin');
  const complete = join(folder, 'complete');
  if (existsSync(complete)) return bin;
  try {
    makePrivateDir(parent);
    rmSync(folder, { recursive: true, force: true }); // an interrupted installation
    execFileSync('python3', ['-m', 'venv', folder], { stdio: 'pipe' });
    const install = ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', ...requirements];
    execFileSync(join(bin, 'python'), install, { stdio: 'pipe', timeout: INSTALL_TIMEOUT_MS });
    writeFileSync(complete, '');
    return bin;
  } catch (error) {
    rmSync(folder, { recursive: true, force: true });
    const { stderr, message } = error as { stderr?: Buffer; message: string };
    const reason = stderr?.toString().trim().split('\n').at(-1) || message;
    console.warn(`Skipped: ${requirements.join(', ')} could not be installed for python3: ${reason}`);
    return undefined;
  }
}

/** Runs a command to its end, with any exit code. */
export async function runPython(
  command: string,
  args: readonly string[],
  options: { env?: Record<string, string>; cwd?: string; timeoutMs?: number } = {},
): Promise<Finished> {
  const { env, cwd = root, timeoutMs = 5 * 60 * 1000 } = options;
  try {
    const { stdout, stderr } = await promisify(execFile)(command, args, {
      cwd,
      env: { ...process.env, ...env },
      timeout: timeoutMs,
      maxBuffer: 64 * 1024 * 1024,
    });
    return { code: 0, stdout, stderr };
  } catch (error) {
    const { code, stdout, stderr } = error as { code?: number | string; stdout?: string; stderr?: string };
    return { code: typeof code === 'number' ? code : null, stdout: stdout ?? '', stderr: stderr ?? String(error) };
  }
}
