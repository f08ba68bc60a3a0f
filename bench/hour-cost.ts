import { BenchService } from './bench-service.ts';
import { CPU_DAY, costItems, OBJECTS_COUNTED, USD_PER_MILLION } from './cost.ts';
import { processCpuMs } from './process-cpu.ts';
import type { LabelledRecording } from './recordings.ts';
import { table } from './report.ts';
import { say } from './shared.ts';
import { SETTINGS, type Setting } from './speed.ts';
import { type JobTimes, jobTimes } from './stages.ts';
import { tenVoices } from './ten-voices.ts';

const SECONDS = 3600;

interface Measured {
  readonly setting: Setting;
  readonly times: JobTimes;
  readonly cpuMs: number;
}

/** What an hour of audio costs on the platform, item by item, from the CPU that a job of an hour took. */
export async function measureCost(recordings: readonly LabelledRecording[] | undefined): Promise<string> {
  if (!recordings) return '**Not measured:** the recording needs `../shared/audio`.';
  const recording = await tenVoices(recordings, SECONDS, 'music');
  if (!recording) return '**Not measured:** the recording needs ffmpeg.';
  const measured: Measured[] = [];
  for (const setting of SETTINGS) {
    say(`cost of an hour with ${setting}`);
    const one = await measureOne(recording.path, setting, recordings[0].path);
    if (!one) return '**Not measured:** this system does not tell the CPU time of a process.';
    measured.push(one);
  }
  return render(measured);
}

async function measureOne(path: string, setting: Setting, warmUp: string): Promise<Measured | undefined> {
  const service = await BenchService.start();
  try {
    await service.diarize(warmUp, { model: setting });
    const pid = service.workerdPid();
    const before = processCpuMs(pid);
    const times = jobTimes(await service.diarize(path, { model: setting }));
    const after = processCpuMs(pid);
    return before === undefined || after === undefined ? undefined : { setting, times, cpuMs: after - before };
  } finally {
    await service.stop();
  }
}

function render(measured: readonly Measured[]): string {
  const costs = measured.map(({ times, cpuMs }) => costItems(cpuMs, times));
  const total = costs.map((items) => items.reduce((sum, { usdPerHour }) => sum + usdPerHour, 0));
  const rows = costs[0].map(({ name }, item) => [
    name,
    ...costs.flatMap((items) => [items[item].perHour.toFixed(0), items[item].usdPerHour.toFixed(6)]),
  ]);
  rows.push(['**all**', ...total.flatMap((usd) => ['', `**${usd.toFixed(6)}**`])]);
  const head = ['an hour of audio', ...measured.flatMap(({ setting }) => [setting, 'USD'])];
  const prices = Object.entries(USD_PER_MILLION).map(([name, usd]) => `${name} ${usd}`);
  return `A job on an hour of MP3 (44.1 kHz stereo, 128 kbit/s) in a fresh local service that one short job has warmed up. CPU is that of the whole workerd process: the Worker, and the
local database, buckets and queues, which the platform would not bill as CPU. The platform's list prices of ${CPU_DAY}, in USD a million: ${prices.join(', ')}.

${table(head, rows)}

Counted: ${OBJECTS_COUNTED}. Storage, database rows and Durable Object requests are not counted, nor what the plan includes.`;
}
