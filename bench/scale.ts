import { SHARD_SECONDS, SHORT_SHARDS } from '../src/jobs/ingest-state.ts';
import { RESUME_EVERY_MS } from '../src/jobs/live-ports.ts';
import { table } from './report.ts';

/** The platform's documented limits. */
const CONSUMERS_A_QUEUE = 250;
const MESSAGES_A_SECOND_AND_QUEUE = 5000;
/** One thread: "about 1,000 queries a second at 1 ms each". */
const D1_STATEMENTS_A_SECOND = 1000;
const D1_BYTES = 10e9;
const OBJECT_REQUESTS_A_SECOND = 1000;

/** Assumed ratio of the busiest hour to the mean of a day. */
const PEAK = 3;
const COLD_START_MS = 1000;
const QUEUE_MS = 500;
const LARGEST_ACCOUNT_SHARE = 0.1;
/** Assumed lengths of recordings and their shares; the mean is 43 minutes. */
const RECORDINGS = [
  { hours: 1 / 12, share: 0.7 },
  { hours: 1, share: 0.25 },
  { hours: 8, share: 0.05 },
] as const;
const MEAN_HOURS = RECORDINGS.reduce((sum, { hours, share }) => sum + hours * share, 0);
/** Shards of a job in progress at a time (`durable-objects/job-progress.ts`). */
const WINDOW_SHARDS = 8;

/** Operations of a job, and additional ones of each shard; counted in `test/sim/crash.test.ts`. */
const OF_A_JOB = { statements: 43, r2: 14, rowBytes: 2500 };
const OF_A_SHARD = { statements: 1.4, r2: 12.3, objectRequests: 3.8 };
const RETENTION_DAYS = 30;
const REQUESTS_A_JOB = 6; // an upload, the job, four polls
const LIVE = { statementsAStream: 9, minutes: 30, creditEveryMs: 60_000 };

/** Measured by `bench cost` and `bench live`. */
export interface Costs {
  /** CPU milliseconds of an hour of audio, by stage. */
  readonly ingestMs: number;
  readonly analysisMs: number;
  readonly assembleMs: number;
  /** Live streams that one thread can follow. */
  readonly streamsAThread: number;
}

interface Peak {
  /** Maximum of concurrent consumers. */
  readonly busy: Readonly<Record<PoolName, number>>;
  /** Seconds from the creation to the end of a job, median and 95th percentile, by hours of audio. */
  readonly finish: ReadonlyMap<number, readonly [number, number]>;
}

type PoolName = 'ingest' | 'jobs' | 'priority';

/** Queues of one kind and their consumers: each consumer handles one message at a time, in the order of sending. */
class Pool {
  readonly #waiting: { readonly serviceMs: number; readonly done: () => void }[] = [];
  #first = 0;
  #busy = 0;
  peak = 0;

  constructor(
    readonly clock: Clock,
    readonly consumers: number,
  ) {}

  send(serviceMs: number, done: () => void): void {
    this.clock.after(QUEUE_MS, () => {
      this.#waiting.push({ serviceMs, done });
      this.#next();
    });
  }

  #next(): void {
    while (this.#busy < this.consumers && this.#first < this.#waiting.length) {
      const { serviceMs, done } = this.#waiting[this.#first++];
      this.#busy++;
      // Another consumer needs a new isolate.
      const coldMs = this.#busy > this.peak ? COLD_START_MS : 0;
      this.peak = Math.max(this.peak, this.#busy);
      this.clock.after(coldMs + serviceMs, () => {
        this.#busy--;
        done();
        this.#next();
      });
    }
  }
}

/** Simulated clock: runs calls in the order of their times (a binary heap). */
class Clock {
  readonly #heap: { readonly at: number; readonly call: () => void }[] = [];
  now = 0;

  after(ms: number, call: () => void): void {
    const heap = this.#heap;
    heap.push({ at: this.now + ms, call });
    for (let i = heap.length - 1; i > 0; ) {
      const parent = (i - 1) >> 1;
      if (heap[parent].at <= heap[i].at) break;
      [heap[parent], heap[i]] = [heap[i], heap[parent]];
      i = parent;
    }
  }

  run(): void {
    const heap = this.#heap;
    while (heap.length > 0) {
      const [{ at, call }] = heap;
      const last = heap.pop()!;
      if (heap.length > 0) {
        heap[0] = last;
        for (let i = 0; ; ) {
          const left = 2 * i + 1;
          const least = left + 1 < heap.length && heap[left + 1].at < heap[left].at ? left + 1 : left;
          if (least >= heap.length || heap[i].at <= heap[least].at) break;
          [heap[i], heap[least]] = [heap[least], heap[i]];
          i = least;
        }
      }
      this.now = at;
      call();
    }
  }
}

/**
 * Simulates the busiest hour. Jobs arrive evenly, in a fixed mixture of lengths. Each recording is read, its shards are
 * sent when ready, at most eight at a time, and the job is assembled, as in `durable-objects/job-progress.ts`.
 *
 * @param hoursADay hours of audio
 * @param queues number of each kind, among which jobs are hashed
 */
export function simulatePeak(hoursADay: number, queues: number, costs: Costs): Peak {
  const clock = new Clock();
  const pool = (): Pool => new Pool(clock, queues * CONSUMERS_A_QUEUE);
  const pools = { ingest: pool(), jobs: pool(), priority: pool() };
  const took = new Map<number, number[]>(RECORDINGS.map(({ hours }) => [hours, []]));
  const jobs = Math.max(1, Math.round((hoursADay * PEAK) / 24 / MEAN_HOURS));
  const start = (hours: number): void => {
    const createdAt = clock.now;
    const shards = Math.max(1, Math.round((hours * 3600) / SHARD_SECONDS));
    const readMs = hours * costs.ingestMs;
    const shardMs = (hours * costs.analysisMs) / shards;
    const shardPool = shards <= SHORT_SHARDS ? pools.priority : pools.jobs;
    let [ready, sent, done] = [0, 0, 0];
    const sendShards = (): void => {
      for (; sent < ready && sent - done < WINDOW_SHARDS; sent++) shardPool.send(shardMs, partDone);
    };
    const partDone = (): void => {
      done++;
      sendShards();
      if (done < shards) return;
      pools.priority.send(hours * costs.assembleMs, () => {
        took.get(hours)!.push((clock.now - createdAt) / 1000);
      });
    };
    const read = (): void => {
      ready++;
      sendShards();
      // Continues with the audio of the next shard.
      if (ready < shards) pools.ingest.send(readMs / shards, read);
    };
    pools.ingest.send(readMs / shards, read);
  };
  for (let job = 0; job < jobs; job++) {
    // The golden ratio spreads the lengths evenly over the hour, the same in every run.
    const drawn = (job * 0.6180339887498949) % 1;
    let below = 0;
    const { hours } =
      RECORDINGS.find(({ share }) => {
        below += share;
        return drawn < below;
      }) ?? RECORDINGS[0];
    clock.after((job * 3_600_000) / jobs, () => start(hours));
  }
  clock.run();
  const finish = new Map(
    [...took].map(([hours, seconds]) => {
      const sorted = seconds.sort((a, b) => a - b);
      const at = (share: number): number => sorted[Math.floor(share * (sorted.length - 1))];
      return [hours, [at(0.5), at(0.95)] as const];
    }),
  );
  return {
    busy: { ingest: pools.ingest.peak, jobs: pools.jobs.peak, priority: pools.priority.peak },
    finish,
  };
}

/** Load of each resource in the busiest hour as a share of its limit, highest share first. */
export function usesOf(hoursADay: number, queues: number, peak: Peak): { name: string; used: string; share: number }[] {
  const jobsASecond = (hoursADay * PEAK) / 86_400 / MEAN_HOURS;
  const shardsASecond = (hoursADay * PEAK) / 24 / SHARD_SECONDS;
  const use = (name: string, value: number, unit: string, limit: number) => ({
    name,
    used: `${value < 10 ? value.toFixed(1) : value.toFixed(0)} of ${limit.toFixed(0)} ${unit}`,
    share: value / limit,
  });
  const consumers = queues * CONSUMERS_A_QUEUE;
  const rows = ((hoursADay / MEAN_HOURS) * RETENTION_DAYS * OF_A_JOB.rowBytes) / 1e9;
  return [
    use('consumers of shards', peak.busy.jobs, '', consumers),
    use('consumers of short jobs and assemblies', peak.busy.priority, '', consumers),
    use('consumers that read', peak.busy.ingest, '', consumers),
    use('messages of a kind', (2 * shardsASecond + 3 * jobsASecond) / queues, 'a second', MESSAGES_A_SECOND_AND_QUEUE),
    use(
      'D1 statements',
      jobsASecond * (OF_A_JOB.statements + REQUESTS_A_JOB) + shardsASecond * OF_A_SHARD.statements,
      'a second',
      D1_STATEMENTS_A_SECOND,
    ),
    use('D1 rows of 30 days', rows, 'GB', D1_BYTES / 1e9),
    use(
      'AccountQuota of an account with a tenth of all requests',
      LARGEST_ACCOUNT_SHARE * jobsASecond * REQUESTS_A_JOB,
      'a second',
      OBJECT_REQUESTS_A_SECOND,
    ),
  ].sort((a, b) => b.share - a.share);
}

/** Load of concurrent live streams. */
function usesOfLive(streams: number, { streamsAThread }: Costs): { name: string; used: string }[] {
  const endsASecond = streams / (60 * LIVE.minutes);
  const statements = endsASecond * LIVE.statementsAStream + (streams * 1000) / LIVE.creditEveryMs;
  const objectWrites = (3 * streams * 1000) / RESUME_EVERY_MS;
  return [
    { name: 'threads, if the platform spreads the objects evenly', used: (streams / streamsAThread).toFixed(0) },
    { name: 'D1 statements', used: `${statements.toFixed(0)} of ${D1_STATEMENTS_A_SECOND} a second` },
    { name: 'rows written in objects by streams that can be resumed', used: `${objectWrites.toFixed(0)} a second` },
  ];
}

/** Report text: days of 1,000 and 100,000 hours, and 10,000 live streams. */
export function renderScale(costs: Costs): string {
  const seconds = (value: number): string => `${value.toFixed(0)} s`;
  const cases = [
    [1000, 1],
    [100_000, 1],
    [100_000, 2],
    [100_000, 4],
    [100_000, 8],
  ] as const;
  const peaks = cases.map(([hoursADay, queues]) => ({
    hoursADay,
    queues,
    peak: simulatePeak(hoursADay, queues, costs),
  }));
  const rows = peaks.map(({ hoursADay, queues, peak }) => [
    hoursADay.toLocaleString('en'),
    String(queues),
    ...[...peak.finish.values()].map(([median, late]) => `${seconds(median)}, ${seconds(late)}`),
    ...usesOf(hoursADay, queues, peak)
      .slice(0, 3)
      .map(({ name, used, share }) => `${name}: ${(100 * share).toFixed(0)} % (${used.trim()})`),
  ]);
  const live = usesOfLive(10_000, costs).map(({ name, used }) => [name, used]);
  const measured = [costs.ingestMs, costs.analysisMs, costs.assembleMs].map((ms) => `${(ms / 1000).toFixed(0)} s`);
  return `Simulated: the busiest hour of a day (${PEAK} times its mean), recordings of 5 minutes (70 %), one hour (25 %)
and eight hours (5 %), ${CONSUMERS_A_QUEUE} consumers a queue, eight shards of a job at a time. Measured: statements and
object operations of a job, and the CPU of an hour of audio (reading, analysis, assembly: ${measured.join(', ')}).
Assumed: ${COLD_START_MS / 1000} s for an isolate to start, ${QUEUE_MS / 1000} s between sending and delivery of a
message, ${D1_STATEMENTS_A_SECOND} statements a second for D1. Network and storage cost no time.

${table(
  [
    'hours a day',
    'queues of each kind',
    'jobs of 5 min: median, 95 %',
    '1 h',
    '8 h',
    'first bottleneck',
    'second',
    'third',
  ],
  rows,
)}

Ten thousand live streams at once, ${LIVE.minutes} minutes each, ${costs.streamsAThread} streams a thread:

${table(['what', 'in use'], live)}`;
}
