import { defaultStateDir } from '../local/paths.ts';
import { findAnnounced } from './announcement.ts';
import { checkAddress } from './arguments.ts';
import { openKept } from './kept.ts';
import { readLogin } from './login-file.ts';
import { CliError, EXIT, note } from './run.ts';

/** The service that a command uses. */
export interface Target {
  readonly url: string;
  readonly key: string;
  /**
   * Whether the service keeps results for hours. A service that a command started ends soon after its last use.
   */
  readonly keepsResults: boolean;
  /** Ends the use by this command, and the service itself if it runs only for this command. */
  close(): Promise<void>;
}

/** @throws CliError for characters that keys cannot have */
export function checkKey(name: string, text: string): string {
  const key = text.trim();
  if (/^[!-~]+$/.test(key)) return key;
  throw new CliError(EXIT.usage, `${name} is not a key: it contains characters that keys cannot have.`);
}

/**
 * Opens the first of these services: that of ROLLCALL_URL and ROLLCALL_KEY, that of `rollcall login`, that of
 * `rollcall serve`, one that an earlier command left running, or one that this command starts.
 *
 * @param signal aborts the start of a service
 */
export async function openTarget(signal: AbortSignal): Promise<Target> {
  const { ROLLCALL_URL: url, ROLLCALL_KEY: key } = process.env;
  if (url) {
    checkAddress('ROLLCALL_URL', url);
    if (!key) throw new CliError(EXIT.usage, 'ROLLCALL_URL is set but ROLLCALL_KEY is not.');
    return { url, key: checkKey('ROLLCALL_KEY', key), keepsResults: true, close: async () => {} };
  }
  if (key) note('ROLLCALL_KEY is not used because ROLLCALL_URL is not set.');
  const login = readLogin();
  if (login) return { ...login, keepsResults: true, close: async () => {} };
  const announced = await findAnnounced(defaultStateDir());
  if (announced) return { ...announced, keepsResults: true, close: async () => {} };
  return { ...(await openKept(signal)), keepsResults: false };
}
