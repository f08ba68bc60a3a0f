import type { AudioPorts } from '../../src/audio/recording.ts';
import type { Engine, JobPorts, ObjectStore } from '../../src/jobs/job-ports.ts';
import type { JobStore } from '../../src/jobs/job-store.ts';
import { createCopies, createProgress } from '../../src/platform/object-stubs.ts';
import { sourcesOf } from './sources.ts';
import { HOUR, type Invocation } from './timeline.ts';
import type { Isolate, World } from './world.ts';

type Methods = Record<string, (...args: unknown[]) => Promise<unknown>>;

/** Wraps each method in a call of `around`. */
function wrapped<T extends object>(
  methods: T,
  around: (name: string, args: readonly unknown[], run: () => Promise<unknown>) => Promise<unknown>,
): T {
  // TypeScript cannot express one wrapper for methods of different signatures.
  const entries = Object.entries(methods as unknown as Methods);
  const wrappers = entries.map(([name, method]) => [
    name,
    (...args: unknown[]) => around(name, args, () => method(...args)),
  ]);
  return Object.fromEntries(wrappers) as T;
}

/** Database calls that change the state of a job, for the log. */
const LOGGED_CALLS: ReadonlySet<string> = new Set([
  'settle',
  'start',
  'reserve',
  'finishIngest',
  'nextStep',
  'handOver',
  'reschedule',
]);
const ENDINGS: ReadonlySet<string> = new Set(['succeed', 'fail', 'cancel']);

/**
 * The ports of one invocation in an isolate: calls of the real storage with injected faults, all others simulated.
 */
export function portsOf(world: World, caller: Invocation, isolate: Pick<Isolate, 'work'>): JobPorts {
  const { time, faults, history } = world;

  const store: JobStore = wrapped(world.store, (name, args, run) =>
    faults.call(caller, `store.${name}`, async () => {
      const value = await run();
      if (ENDINGS.has(name) && value === true) {
        history.endings.push({ jobId: String(args[0]), outcome: name });
        time.trace(`END ${name} ${args[0]} by ${caller.name} ${name === 'fail' ? JSON.stringify(args[1]) : ''}`);
      }
      if (name === 'remove' && value) time.trace(`REMOVED ${args[1]}`);
      if (LOGGED_CALLS.has(name)) time.trace(`${name} ${args[0]} ${value ?? ''} by ${caller.name}`);
      return value;
    }),
  );

  const storage: ObjectStore = {
    ...wrapped(world.objects, (name, args, run) =>
      faults.call(caller, `objects.${name}`, async () => {
        const key = String(args[0]);
        if (name.startsWith('put')) history.writtenAt.set(key, time.now);
        if (name === 'put' && key.includes('/part-')) history.parts++;
        // R2 stores the time of the real machine.
        if (name === 'uploadedAt') return (await world.objects.exists(key)) ? history.writtenAt.get(key) : undefined;
        return run();
      }),
    ),
    // The real one needs several calls. No object here is large enough for a multipart upload.
    abortUploads: async () => 0,
  };
  const objects: ObjectStore = {
    ...storage,
    // Gather first: a call is one event of the simulation and cannot wait for calls that produce its chunks.
    putStream: async (key, chunks) => {
      const gathered: (string | Uint8Array)[] = [];
      for await (const chunk of chunks) gathered.push(typeof chunk === 'string' ? chunk : chunk.slice());
      return storage.putStream(key, gathered);
    },
  };

  return {
    store,
    objects,
    sources: sourcesOf(world, caller),
    copies: createCopies(world.copiesFor(caller)),
    progress: createProgress(world.progressFor(caller)),
    queue: world.queue.portOf(caller),
    webhook: world.receivers.portOf(caller),
    media: { resolve: async () => undefined },
    transcription: () => undefined,
    webhookSecret: async () => 'secret',
    // The doubles of the modules that use these need no other properties.
    codecs: () => ({}) as AudioPorts,
    engine: async () =>
      ({
        segmentation: { info: { windowSamples: 160 } },
        embedding: { form: 'waveform', info: {} },
        memoryBytes: () => 0,
      }) as unknown as Engine,
    work: isolate.work,
    plda: async () => undefined,
    identification: () => {
      throw new Error('results are made by a double');
    },
    log: (level, event, { stack: _, ...fields } = {}) => {
      if (level !== 'info') time.trace(`log ${event} ${JSON.stringify(fields)} in ${caller.name}`);
    },
    now: () => time.now,
    pause: () => caller.sleep(0),
    sleep: (ms) => caller.sleep(ms),
    outputTtlMs: 24 * HOUR,
  };
}
