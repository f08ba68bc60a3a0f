import { BenchService } from '../bench-service.ts';
import { table } from '../report.ts';
import { say } from '../shared.ts';
import type { Recording } from './hour.ts';
import { firstShardSent, median, SETTING, seconds, succeed } from './job.ts';
import { type Origin, serveOrigin } from './origins.ts';

const SLOW_ORIGINS = 10;
export const SLOW_BYTES_PER_SECOND = 20 * 1024;
const RUNS = 3;
/** After the end of the jobs of slow origins their connections are closed within the patience for a server. */
const CLOSING_MS = 60_000;

interface Run {
  readonly wallMs: number;
  readonly firstShardMs: number;
}

/** One job alone, and behind jobs whose origins are slow. */
export async function measureSlow(recording: Recording, warmUp: string): Promise<string> {
  const alone: Run[] = [];
  const behind: Run[] = [];
  let copied = 0;
  const service = await BenchService.start();
  const plain = await serveOrigin(recording.path);
  const run = async (): Promise<Run> => {
    const job = await succeed(service, plain);
    return { wallMs: job.wallMs, firstShardMs: firstShardSent(job) ?? job.wallMs };
  };
  try {
    await service.raiseLimits();
    await service.diarize(warmUp, { model: SETTING });
    for (let round = 0; round < RUNS; round++) {
      say(`alone and behind ${SLOW_ORIGINS} slow origins, run ${round + 1} of ${RUNS}`);
      alone.push(await run());
      const origins: Origin[] = [];
      const jobs: string[] = [];
      try {
        for (let index = 0; index < SLOW_ORIGINS; index++) {
          const origin = await serveOrigin(recording.path, { bytesPerSecond: SLOW_BYTES_PER_SECOND });
          origins.push(origin);
          jobs.push(await service.create({ url: origin.url, model: SETTING }));
        }
        behind.push(await run());
      } finally {
        for (const jobId of jobs) await service.cancel(jobId);
        await closed(origins);
        copied += jobs.filter((jobId) => service.logOf(jobId).some(({ event }) => event === 'source_copied')).length;
        for (const origin of origins) await origin.close();
      }
    }
  } finally {
    await plain.close();
    await service.stop();
  }
  const rows = (['wallMs', 'firstShardMs'] as const).map((what) => {
    const [one, other] = [alone, behind].map((runs) => median(runs.map((each) => each[what])));
    const name = what === 'wallMs' ? '**created to output**' : 'created to the message of the first shard';
    return [name, seconds(one), seconds(other), (other / one).toFixed(2)];
  });
  return `A job of ${(recording.seconds / 60).toFixed(0)} minutes of MP3 from a plain origin, ${SETTING}, alone and right
behind ${SLOW_ORIGINS} jobs of the same account whose origins give 20 KiB/s each; medians of ${RUNS} alternating runs.
By the end of these runs ${copied} of the ${RUNS * SLOW_ORIGINS} slow origins were being copied.

${table(['', 'alone', 'behind slow origins', 'ratio'], rows)}`;
}

/** Waits until the service has let go of all origins. */
async function closed(origins: readonly Origin[]): Promise<void> {
  const end = Date.now() + CLOSING_MS;
  while (origins.some((origin) => origin.openAnswers() > 0) && Date.now() < end)
    await new Promise((wake) => setTimeout(wake, 200));
}
