import { execFile, execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { makePrivateDir } from '../../client/local/paths.ts';
import { type Finished, root } from './local-process.ts';

/** Long enough for several gigabytes of wheels over a slow line. */
const INSTALL_TIMEOUT_MS = 15 * 60 * 1000;

/**
 * A virtual environment with exactly these packages, made once and kept in the system's folder for temporary files.
 * @param requirements pinned, as pip takes them
 * @returns the environment's folder of commands; undefined, with the reason printed, where it cannot be made
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
    rmSync(folder, { recursive: true, force: true }); // an installation that broke off
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

/** Runs a command to its end, whatever its exit code. */
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
