import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { WebSocket } from 'ws';

/** Path of Chromium; undefined if it is not installed. `CHROMIUM` overrides it. */
export const chromium = [process.env.CHROMIUM, '/usr/bin/chromium', '/usr/bin/google-chrome'].find(
  (path) => path !== undefined && existsSync(path),
);
if (chromium === undefined) console.warn('skipped: no Chromium is installed (CHROMIUM may name one)');

/** A page of a real browser, controlled through the DevTools protocol. */
export interface Page {
  /** Exceptions, and violations of the page's content security policy. */
  readonly complaints: string[];
  send(method: string, params?: object): Promise<Record<string, unknown>>;
  open(address: string): Promise<void>;
  /** Evaluates an expression and awaits its promise. @returns the value as JSON */
  evaluate<T>(expression: string): Promise<T>;
  /** Selects a file of this machine in a file input. */
  choose(selector: string, path: string): Promise<void>;
  press(key: keyof typeof KEY_CODES): Promise<void>;
}

export interface Browser {
  newPage(): Promise<Page>;
  close(): Promise<void>;
}

const KEY_CODES = { Tab: 9, Enter: 13, ' ': 32, ArrowRight: 39 } as const;

/** @param args additional options of Chromium */
export async function startBrowser(args: readonly string[] = []): Promise<Browser> {
  const profile = mkdtempSync(join(tmpdir(), 'rollcall-browser-'));
  const options = ['--headless=new', '--no-sandbox', '--remote-debugging-port=0', `--user-data-dir=${profile}`];
  const child = spawn(chromium ?? '', [...options, ...args, 'about:blank'], { stdio: ['ignore', 'ignore', 'pipe'] });
  const ended = once(child, 'exit');
  let stderr = '';
  const address = await new Promise<string>((found, refuse) => {
    child.stderr.on('data', (chunk: Buffer) => {
      stderr += chunk.toString();
      const line = /DevTools listening on (\S+)/.exec(stderr);
      if (line) found(line[1]);
    });
    void ended.then(() => refuse(new Error(`Chromium has ended:\n${stderr}`)));
  });
  const socket = new WebSocket(address, { perMessageDeflate: false });
  await once(socket, 'open');

  type Message = {
    readonly id?: number;
    readonly sessionId?: string;
    readonly method?: string;
    readonly params?: Record<string, unknown>;
    readonly result?: Record<string, unknown>;
    readonly error?: { readonly message: string };
  };
  const waiting = new Map<number, (message: Message) => void>();
  const listeners = new Map<string, (method: string, params: Record<string, unknown>) => void>();
  socket.on('message', (data) => {
    const message = JSON.parse(String(data)) as Message;
    if (message.id !== undefined) waiting.get(message.id)?.(message);
    else if (message.method) listeners.get(message.sessionId ?? '')?.(message.method, message.params ?? {});
  });
  let lastId = 0;
  const send = (method: string, params: object = {}, sessionId?: string): Promise<Record<string, unknown>> =>
    new Promise((done, refuse) => {
      const id = ++lastId;
      waiting.set(id, ({ result, error }) => {
        waiting.delete(id);
        if (error) refuse(new Error(`${method}: ${error.message}`));
        else done(result ?? {});
      });
      socket.send(JSON.stringify({ id, method, params, ...(sessionId && { sessionId }) }));
    });

  const newPage = async (): Promise<Page> => {
    const { targetId } = await send('Target.createTarget', { url: 'about:blank' });
    const { sessionId } = await send('Target.attachToTarget', { targetId, flatten: true });
    const call = (method: string, params?: object) => send(method, params, String(sessionId));
    const complaints: string[] = [];
    let loaded = () => {};
    listeners.set(String(sessionId), (method, params) => {
      if (method === 'Page.loadEventFired') loaded();
      if (method === 'Runtime.exceptionThrown') complaints.push(JSON.stringify(params.exceptionDetails));
      const entry = params.entry as { readonly level?: string } | undefined;
      if (entry?.level === 'error') complaints.push(JSON.stringify(entry));
    });
    for (const domain of ['Page', 'Runtime', 'Log', 'DOM']) await call(`${domain}.enable`);
    const run = async (expression: string, returnByValue: boolean) => {
      const { result, exceptionDetails } = await call('Runtime.evaluate', {
        expression,
        returnByValue,
        awaitPromise: true,
        userGesture: true,
      });
      if (exceptionDetails) throw new Error(`${expression}: ${JSON.stringify(exceptionDetails)}`);
      return result as { readonly value?: unknown; readonly objectId?: string };
    };
    return {
      complaints,
      send: call,
      async open(where) {
        const load = new Promise<void>((done) => {
          loaded = done;
        });
        await call('Page.navigate', { url: 'about:blank' });
        await load;
        const again = new Promise<void>((done) => {
          loaded = done;
        });
        await call('Page.navigate', { url: where });
        await again;
      },
      evaluate: async <T>(expression: string) => (await run(expression, true)).value as T,
      async choose(selector, path) {
        const { objectId } = await run(`document.querySelector(${JSON.stringify(selector)})`, false);
        await call('DOM.setFileInputFiles', { files: [path], objectId });
      },
      async press(key) {
        const code = { key, windowsVirtualKeyCode: KEY_CODES[key], ...(key === 'Enter' && { text: '\r' }) };
        await call('Input.dispatchKeyEvent', { type: 'keyDown', ...code, ...(key === ' ' && { text: ' ' }) });
        await call('Input.dispatchKeyEvent', { type: 'keyUp', ...code, text: undefined });
      },
    };
  };
  return {
    newPage,
    async close() {
      // After a kill, its child processes would still write to the profile while it is removed.
      void send('Browser.close').catch(() => undefined);
      const kill = setTimeout(() => child.kill('SIGKILL'), 5000);
      await ended;
      clearTimeout(kill);
      socket.terminate();
      await rm(profile, { recursive: true, force: true, maxRetries: 10, retryDelay: 200 });
    },
  };
}
