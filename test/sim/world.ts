import { expire } from '../../src/jobs/expire.ts';
import { Mutex } from '../../src/jobs/mutex.ts';
import { PlanMemory } from '../../src/jobs/plan-memory.ts';
import type { JobPorts, JobStore, ObjectStore } from '../../src/jobs/ports.ts';
import { resendLost } from '../../src/jobs/resend.ts';
import { createJobStore } from '../../src/platform/d1/job-store.ts';
import type { ProgressRpc } from '../../src/platform/progress.ts';
import { createObjectStore } from '../../src/platform/r2-objects.ts';
import { Faults } from './faults.ts';
import { portsOf } from './ports.ts';
import { ProgressObject } from './progress-object.ts';
import { SimulatedQueue } from './queue.ts';
import { Receivers } from './receivers.ts';
import type { Recording } from './sources.ts';
import type { Storage } from './storage.ts';
import { Invocation, MINUTE, Timeline } from './timeline.ts';

/** What invocations on one machine share. */
export interface Isolate {
  readonly mutex: Mutex;
  readonly plans: PlanMemory;
  readonly work: string;
}

/** What happened, for the invariants. */
interface History {
  readonly endings: { readonly jobId: string; readonly how: string }[];
  /** Ids of jobs that callers were given. */
  readonly given: string[];
  readonly writtenAt: Map<string, number>;
  parts: number;
}

/** After a deployment machines with the old version still take messages for a while. */
const OLD_ISOLATES_MS = 2 * MINUTE;

/** A service whose storage and code are real; its machines, its queues, the servers it asks and its time are simulated. */
export class World {
  readonly time: Timeline;
  readonly faults: Faults;
  readonly store: JobStore;
  readonly objects: ObjectStore;
  readonly queue = new SimulatedQueue(this);
  readonly receivers = new Receivers(this);
  readonly recordings = new Map<string, Recording>();
  /** By the key of the object. */
  readonly copies = new Map<string, Recording>();
  readonly progressObjects = new Map<string, ProgressObject>();
  readonly history: History = { endings: [], given: [], writtenAt: new Map(), parts: 0 };
  /** Of the version that is deployed. */
  work = 'v1';
  #deployedAt = Number.POSITIVE_INFINITY;
  readonly #isolates: Isolate[] = [];

  constructor(
    readonly seed: number,
    readonly storage: Storage,
    start: number,
    kill?: string,
  ) {
    this.time = new Timeline(seed, start);
    this.faults = new Faults(this.time, [0.15, 0.4, 1][seed % 3], kill);
    this.store = createJobStore(storage.db);
    this.objects = createObjectStore(storage.bucket);
    this.#addIsolates();
  }

  invocation(name: string): Invocation {
    return new Invocation(name, this.time);
  }

  /** Ports for something that is asked of the newest version. */
  portsFor(name: string): JobPorts {
    return portsOf(this, this.invocation(name), this.newestIsolate);
  }

  get newestIsolate(): Isolate {
    return this.#isolates.at(-1)!;
  }

  /** One that takes messages now. */
  anyIsolate(): Isolate {
    const { time } = this;
    const isChanging = time.now >= this.#deployedAt && time.now < this.#deployedAt + OLD_ISOLATES_MS;
    if (isChanging && time.chance(0.5)) return this.#isolates[0];
    return this.#isolates[this.#isolates.length - 1 - time.below(2)];
  }

  deploy(): void {
    this.time.say('DEPLOY');
    this.work = 'v2';
    this.#deployedAt = this.time.now;
    this.#addIsolates();
    for (const object of this.progressObjects.values()) object.reset();
  }

  /** What the service does every five minutes. */
  sweep(): void {
    const ports = this.portsFor('sweep');
    void Promise.allSettled([resendLost(ports, this.time.now), expire(ports)]);
  }

  /** The binding of the jobs' objects, as an invocation has it. */
  namespaceFor(caller: Invocation): DurableObjectNamespace {
    const get = (jobId: string): ProgressRpc => {
      const object = this.progressObjects.get(jobId) ?? new ProgressObject(this, jobId);
      this.progressObjects.set(jobId, object);
      return {
        begin: (...args) => object.call(caller, 'begin', (progress) => progress.begin(...args)),
        report: (...args) => object.call(caller, 'report', (progress) => progress.report(...args)),
        partDone: (...args) => object.call(caller, 'partDone', (progress) => progress.partDone(...args)),
        fraction: () => object.call(caller, 'fraction', (progress) => progress.fraction()),
      };
    };
    // Nothing else of the binding is used.
    return { idFromName: (name: string) => name, get } as unknown as DurableObjectNamespace;
  }

  #addIsolates(): void {
    for (let i = 0; i < 2; i++)
      this.#isolates.push({ mutex: new Mutex(() => this.time.now), plans: new PlanMemory(), work: this.work });
  }
}
