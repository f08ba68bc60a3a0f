import { createServer } from 'node:net';
import { fetch } from '../client/local/miniflare.ts';

/** Memory of one isolate as V8 counts it; WebAssembly memories are not in it. */
export interface HeapUsage {
  /** Live JavaScript objects, bytes. */
  readonly usedBytes: number;
  /** Contents of ArrayBuffers outside WebAssembly, bytes. */
  readonly bufferBytes: number;
}

/** A free port for `inspectorPort`. */
export function freePort(): Promise<number> {
  return new Promise((done, refuse) => {
    const probe = createServer();
    probe.once('error', refuse);
    probe.listen(0, '127.0.0.1', () => {
      const address = probe.address();
      probe.close(() => done(typeof address === 'object' && address ? address.port : 0));
    });
  });
}

/** Asks a running Worker's isolate for its heap, over workerd's inspector (Chrome DevTools protocol). */
export class HeapProbe {
  #lastId = 0;
  readonly #waiting = new Map<number, (result: unknown) => void>();

  private constructor(private readonly send: (text: string) => void) {}

  /** @throws when no inspector listens there */
  static async connect(inspectorPort: number): Promise<HeapProbe> {
    const origin = `http://127.0.0.1:${inspectorPort}`;
    const targets = (await (await fetch(`${origin}/json`)).json()) as { id: string }[];
    const target = targets.find(({ id }) => id.startsWith('core:user:'));
    if (!target) throw new Error('the inspector knows no Worker');
    const { webSocket } = await fetch(`${origin}/${target.id}`, { headers: { Upgrade: 'websocket' } });
    if (!webSocket) throw new Error('the inspector refused the connection');
    webSocket.accept();
    const probe = new HeapProbe((text) => webSocket.send(text));
    webSocket.addEventListener('message', ({ data }) => probe.#receive(String(data)));
    return probe;
  }

  /** Answered when the isolate is between two steps; while it computes, it waits. */
  async usage(): Promise<HeapUsage> {
    const result = (await this.#call('Runtime.getHeapUsage')) as { usedSize: number; backingStorageSize: number };
    return { usedBytes: result.usedSize, bufferBytes: result.backingStorageSize };
  }

  /** Throws away what nothing refers to any more. */
  async collectGarbage(): Promise<void> {
    await this.#call('HeapProfiler.collectGarbage');
  }

  #call(method: string): Promise<unknown> {
    const id = ++this.#lastId;
    return new Promise((done) => {
      this.#waiting.set(id, done);
      this.send(JSON.stringify({ id, method }));
    });
  }

  #receive(text: string): void {
    const { id, result } = JSON.parse(text) as { id?: number; result?: unknown };
    if (id === undefined) return;
    this.#waiting.get(id)?.(result);
    this.#waiting.delete(id);
  }
}
