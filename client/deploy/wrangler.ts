import { spawn } from 'node:child_process';
import { stripVTControlCharacters } from 'node:util';
import { quietWranglerEnv, wranglerScript } from '../local/bundle.ts';

export interface WranglerResult {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/**
 * Runs wrangler and collects its output.
 *
 * @param input text for stdin; without it, questions get their default answers
 */
export function wrangler(root: string, args: readonly string[], input?: string): Promise<WranglerResult> {
  return new Promise((done, refuse) => {
    const child = spawn(process.execPath, [wranglerScript(), ...args], {
      cwd: root,
      env: { ...process.env, ...quietWranglerEnv(), CI: 'true', NO_COLOR: '1' },
      stdio: 'pipe',
    });
    let stdout = '';
    let stderr = '';
    // Decodes characters that are split over two chunks.
    child.stdout.setEncoding('utf8').on('data', (text: string) => {
      stdout += text;
    });
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      stderr += text;
    });
    child.on('error', refuse);
    child.on('close', (code) => done({ code: code ?? 1, stdout, stderr }));
    child.stdin.end(input ?? '');
  });
}

/** Runs wrangler. @returns its stdout @throws an error with its output if it fails */
export async function mustWrangler(root: string, args: readonly string[], input?: string): Promise<string> {
  const { code, stdout, stderr } = await wrangler(root, args, input);
  if (code !== 0 && /CLOUDFLARE_API_TOKEN/.test(stderr)) {
    throw new Error('Not logged in to Cloudflare. Run npx wrangler login, or set CLOUDFLARE_API_TOKEN.');
  }
  if (code !== 0) {
    const output = stripVTControlCharacters(stderr + stdout).trim();
    throw new Error(`wrangler ${args.slice(0, 3).join(' ')} failed:\n${output}`);
  }
  return stdout;
}
