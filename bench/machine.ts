import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { cpus, totalmem } from 'node:os';
import { fetch } from '../client/local/miniflare.ts';
import { projectDir } from '../client/local/paths.ts';

/** One line about this machine. */
export function describeMachine(): string {
  const cores = cpus();
  const memoryGiB = Math.round(totalmem() / 2 ** 30);
  const model = cores[0]?.model.trim() || 'unknown processor';
  return `${model}, ${cores.length} cores, ${memoryGiB} GiB, ${process.platform} ${process.arch}, Node ${process.version.slice(1)}`;
}

const WATCH_MS = 2000;

/** Load by other processes over two idle seconds, in cores. Measured times are valid only if it is near 0. */
export async function coresInUse(): Promise<number> {
  const before = cpuTimes();
  await new Promise((wake) => setTimeout(wake, WATCH_MS));
  const after = cpuTimes();
  const all = after.all - before.all;
  return all === 0 ? 0 : (cpus().length * (all - (after.idle - before.idle))) / all;
}

function cpuTimes(): { idle: number; all: number } {
  let idle = 0;
  let all = 0;
  for (const { times } of cpus()) {
    idle += times.idle;
    all += times.user + times.nice + times.sys + times.idle + times.irq;
  }
  return { idle, all };
}

/** Commit of this checkout or another one, with a remark if the tree differs from it. */
export function describeCommit(root: string = projectDir): string {
  try {
    const git = (...args: string[]): string => execFileSync('git', args, { cwd: root, encoding: 'utf8' }).trim();
    // The report changes with every run.
    const changes = git('status', '--porcelain', '--', '.', ':!bench/RESULTS.md');
    return `${git('rev-parse', '--short=10', 'HEAD')}${changes === '' ? '' : ' with uncommitted changes'}`;
  } catch {
    return 'unknown (not a git checkout)';
  }
}

const TICKS_PER_SECOND = 100;

/** CPU time of a process so far, milliseconds, all threads; undefined without /proc. */
export function processCpuMs(pid: number | undefined): number | undefined {
  if (pid === undefined) return undefined;
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The name, in brackets, may hold spaces.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
    return (1000 * (Number(fields[11]) + Number(fields[12]))) / TICKS_PER_SECOND;
  } catch {
    return undefined;
  }
}

/** Memory of one isolate as V8 counts it, without WebAssembly memories. */
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

  /** Resolves when the isolate is between two steps. */
  async usage(): Promise<HeapUsage> {
    const result = (await this.#call('Runtime.getHeapUsage')) as { usedSize: number; backingStorageSize: number };
    return { usedBytes: result.usedSize, bufferBytes: result.backingStorageSize };
  }

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
