import { BenchService, type FinishedJob } from './bench-service.ts';
import { percentile } from './load.ts';
import { processCpuMs } from './machine.ts';
import { type LabelledRecording, tenVoices } from './recordings.ts';
import { table } from './report.ts';
import { logProgress } from './shared.ts';
import { jobTimes } from './stages.ts';

const RECORDING_SECONDS = 120;
const AT_ONCE = [1, 4, 16];
const SETTING = 'community-1';

interface Round {
  readonly jobs: readonly FinishedJob[];
  readonly wallMs: number;
  readonly cpuMs: number | undefined;
}

/** Concurrent jobs on one local service: throughput of an isolate and duration of each job. */
export async function measureThroughput(recordings: readonly LabelledRecording[] | undefined): Promise<string> {
  const recording = recordings && (await tenVoices(recordings, RECORDING_SECONDS, 'music'));
  if (!recording) return '**Not measured:** the recording needs `../shared/audio` and ffmpeg.';
  const rounds: Round[] = [];
  const service = await BenchService.start();
  try {
    await service.raiseLimits();
    await service.diarize(recording.path, { model: SETTING });
    const pid = service.workerdPid();
    for (const count of AT_ONCE) {
      logProgress(`${count} jobs at once`);
      const [from, cpuFrom] = [performance.now(), processCpuMs(pid)];
      const one = () => service.diarize(recording.path, { model: SETTING });
      const jobs = await Promise.all(Array.from({ length: count }, one));
      const cpuTo = processCpuMs(pid);
      const cpuMs = cpuFrom === undefined || cpuTo === undefined ? undefined : cpuTo - cpuFrom;
      rounds.push({ jobs, wallMs: performance.now() - from, cpuMs });
    }
  } finally {
    await service.stop();
  }
  return render(rounds);
}

function render(rounds: readonly Round[]): string {
  const rows = rounds.map(({ jobs, wallMs, cpuMs }) => {
    const audioMs = 1000 * jobs.reduce((sum, job) => sum + jobTimes(job).audioSeconds, 0);
    const walls = jobs.map((job) => job.wallMs);
    return [
      String(jobs.length),
      `${(wallMs / 1000).toFixed(1)} s`,
      `**${(audioMs / wallMs).toFixed(1)}**`,
      cpuMs === undefined ? 'not obtainable here' : (audioMs / cpuMs).toFixed(1),
      `${(percentile(walls, 0.5) / 1000).toFixed(1)} s`,
      `${(Math.max(...walls) / 1000).toFixed(1)} s`,
    ];
  });
  return `Jobs of ${RECORDING_SECONDS / 60} minutes of MP3 each (44.1 kHz stereo), ${SETTING}, created at the same
moment; one local workerd, whose one thread computes one analysis at a time. The platform runs one isolate for each
message, up to 250.

${table(['jobs at once', 'all done after', '× real time, all together', '× real time of the CPU', 'a job, median', 'a job, longest'], rows, 0)}`;
}
