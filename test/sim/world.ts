import { admitAll } from '../../src/jobs/end-job.ts';
import type { JobPorts, ObjectStore } from '../../src/jobs/job-ports.ts';
import type { JobStore } from '../../src/jobs/job-store.ts';
import { Mutex } from '../../src/jobs/mutex.ts';
import { expire, failOverdue, resendLost } from '../../src/jobs/sweeps.ts';
import { createJobStore } from '../../src/platform/d1/job-rows.ts';
import type { CopyRpc, ObjectNamespace, ProgressRpc } from '../../src/platform/object-stubs.ts';
import { createObjectStore } from '../../src/platform/r2-objects.ts';
import type { Storage } from '../helpers/storage.ts';
import { SimulatedObject } from './durable-object.ts';
import { Faults } from './faults.ts';
import { type Copying, JobProgress, type Progress, SourceCopy } from './objects.ts';
import { portsOf } from './ports.ts';
import { SimulatedQueue } from './queue.ts';
import { Receivers } from './receivers.ts';
import type { SimulatedFile, SimulatedRecording } from './sources.ts';
import { Invocation, MINUTE, Timeline } from './timeline.ts';

/** State shared by the invocations on one machine. */
export interface Isolate {
  readonly mutex: Mutex;
  readonly work: string;
}

/** Events that the invariants check. */
interface History {
  readonly endings: { readonly jobId: string; readonly outcome: string }[];
  /** Ids of jobs in answers to callers. */
  readonly answeredIds: string[];
  readonly writtenAt: Map<string, number>;
  parts: number;
}

/** How long machines with the old version receive messages after a deployment. */
const OLD_ISOLATES_MS = 2 * MINUTE;

/**
 * A service with real storage and code; its machines, queues, remote servers and time are simulated.
 */
export class World {
  readonly time: Timeline;
  readonly faults: Faults;
  readonly store: JobStore;
  readonly objects: ObjectStore;
  readonly queue = new SimulatedQueue(this);
  readonly receivers = new Receivers(this);
  /** By URL. */
  readonly recordings = new Map<string, SimulatedRecording>();
  /** By the ETag of the object. */
  readonly copies = new Map<string, SimulatedFile>();
  readonly progressObjects = new Map<string, SimulatedObject<Progress>>();
  readonly copyObjects = new Map<string, SimulatedObject<Copying>>();
  readonly history: History = { endings: [], answeredIds: [], writtenAt: new Map(), parts: 0 };
  /** Name of the deployed version. */
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

  /** Ports for a call to the newest version. */
  portsFor(name: string): JobPorts {
    return portsOf(this, this.invocation(name), this.newestIsolate);
  }

  get newestIsolate(): Isolate {
    return this.#isolates.at(-1)!;
  }

  /** A random isolate that receives messages now. */
  anyIsolate(): Isolate {
    const { time } = this;
    const isChanging = time.now >= this.#deployedAt && time.now < this.#deployedAt + OLD_ISOLATES_MS;
    if (isChanging && time.chance(0.5)) return this.#isolates[0];
    return this.#isolates[this.#isolates.length - 1 - time.below(2)];
  }

  deploy(): void {
    this.time.trace('DEPLOY');
    this.work = 'v2';
    this.#deployedAt = this.time.now;
    this.#addIsolates();
    for (const objects of [this.progressObjects, this.copyObjects])
      for (const object of objects.values()) object.reset();
  }

  /** The sweep, which runs every five minutes. */
  sweep(): void {
    const ports = this.portsFor('sweep');
    void Promise.allSettled([resendLost(ports, this.time.now), failOverdue(ports), admitAll(ports), expire(ports)]);
  }

  /** The binding `JOB_PROGRESS` of an invocation. */
  progressFor(caller: Invocation): ObjectNamespace<ProgressRpc> {
    return namespaceOf((jobId): ProgressRpc => {
      const known = this.progressObjects.get(jobId);
      const object = known ?? new SimulatedObject(this, `object ${jobId}`, (state, env) => new JobProgress(state, env));
      this.progressObjects.set(jobId, object);
      return {
        begin: (...args) => object.call(caller, 'progress.begin', (progress) => progress.begin(...args)),
        reportIngest: (...args) =>
          object.call(caller, 'progress.reportIngest', (progress) => progress.reportIngest(...args)),
        ready: (...args) => object.call(caller, 'progress.ready', (progress) => progress.ready(...args)),
        expect: (...args) => object.call(caller, 'progress.expect', (progress) => progress.expect(...args)),
        startShard: (...args) => object.call(caller, 'progress.startShard', (progress) => progress.startShard(...args)),
        report: (...args) => object.call(caller, 'progress.report', (progress) => progress.report(...args)),
        putBack: (...args) => object.call(caller, 'progress.putBack', (progress) => progress.putBack(...args)),
        partDone: (...args) => object.call(caller, 'progress.partDone', (progress) => progress.partDone(...args)),
        restart: (...args) => object.call(caller, 'progress.restart', (progress) => progress.restart(...args)),
        resend: (...args) => object.call(caller, 'progress.resend', (progress) => progress.resend(...args)),
        end: (...args) => object.call(caller, 'progress.end', (progress) => progress.end(...args)),
        fraction: (...args) => object.call(caller, 'progress.fraction', (progress) => progress.fraction(...args)),
      };
    });
  }

  /** The binding of `SourceCopy` objects of an invocation. */
  copiesFor(caller: Invocation): ObjectNamespace<CopyRpc> {
    return namespaceOf((jobId): CopyRpc => {
      const known = this.copyObjects.get(jobId);
      const object = known ?? new SimulatedObject(this, `copy ${jobId}`, (state, env) => new SourceCopy(state, env));
      this.copyObjects.set(jobId, object);
      return { request: (...args) => object.call(caller, 'copies.request', (copying) => copying.request(...args)) };
    });
  }

  #addIsolates(): void {
    for (let i = 0; i < 2; i++) this.#isolates.push({ mutex: new Mutex(() => this.time.now), work: this.work });
  }
}

/** A binding whose ids are the names; only these two methods are used. */
const namespaceOf = <Methods>(get: (name: string) => Methods): ObjectNamespace<Methods> =>
  ({ idFromName: (name: string) => name, get }) as unknown as ObjectNamespace<Methods>;
