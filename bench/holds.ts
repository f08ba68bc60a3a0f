import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { changeAccount } from '../client/account-settings.ts';
import { createKey, ensureAccount } from '../client/accounts.ts';
import { runSqlOn } from '../client/local/database.ts';
import { projectDir } from '../client/local/paths.ts';
import { listProcesses } from '../client/local/processes.ts';
import { startLocalService } from '../client/local/service.ts';
import { RollcallClient } from '../client/sdk/client.ts';
import { SCOPES } from '../src/jobs/app-services.ts';

/**
 * Waiting time of requests during a job, while its steps block the thread. `node --import tsx bench/holds.ts [repeats
 * of the one-minute conversation] [model] [path]` prints percentiles for the idle service and for each stage of the
 * job, in wall clock and in CPU time of the service's thread, and the longest waits. Linux only.
 */
const IDLE_MS = 5000;
const [repeats = '10', named, path = '/healthz'] = process.argv.slice(2);
/** A path with a key costs writes to the disk. */
const PING_MS = path === '/healthz' ? 20 : 200;
const model = named === 'community-1' ? named : 'precision-2';

const stateDir = mkdtempSync(join(tmpdir(), 'rollcall-holds-'));
const events: { readonly at: number; readonly event: string }[] = [];
const service = await startLocalService({
  stateDir,
  onLog: (text) => {
    for (const line of text.split('\n')) {
      const event =
        /"event":"(job_ingested|ingest_handed_over|shard_done|job_assembled|job_succeeded|first_shard_ready)"/.exec(
          line,
        )?.[1];
      if (event) events.push({ at: performance.now(), event });
    }
  },
});
const run = runSqlOn(service.db);
const accountId = await ensureAccount(run, { name: 'holds', subscribe: true }, Date.now());
const { token } = await createKey(run, { accountId, scopes: SCOPES, signingKey: service.signingKey }, Date.now());
await changeAccount(run, 'holds', { getLimit: 1_000_000 });
let cut = 0;
const pings: { readonly at: number; readonly ms: number; readonly cpuMs: number }[] = [];
const runtime = listProcesses().find(
  ({ parentPid, command }) => parentPid === process.pid && command.includes('workerd'),
);
/** CPU time of the service's thread so far; unlike the wall clock it excludes other programs. */
const threadMs = (): number =>
  Number(readFileSync(`/proc/${runtime?.pid}/task/${runtime?.pid}/schedstat`, 'utf8').split(' ')[0]) / 1e6;
const ping = async (): Promise<void> => {
  const at = performance.now();
  const from = threadMs();
  try {
    await (await fetch(service.url + path, { headers: { Authorization: `Bearer ${token}` } })).arrayBuffer();
    pings.push({ at, ms: performance.now() - at, cpuMs: threadMs() - from });
  } catch {
    cut++; // the idle connection was closed when the next request took it
  }
};

/** Bound of concurrent requests: requests that wait together are one hold. */
let open = 0;
const timer = setInterval(() => {
  if (open >= 50) return;
  open++;
  void ping().finally(() => open--);
}, PING_MS);

try {
  await new Promise((wake) => setTimeout(wake, IDLE_MS));
  const startedAt = performance.now();
  const client = new RollcallClient({ url: service.url, key: token });
  const minute = readFileSync(join(projectDir, 'test/fixtures/conversation.mp3'));
  const recording = Buffer.concat(Array.from({ length: Number(repeats) }, () => minute));
  const uploaded = await client.upload('holds', recording as unknown as Parameters<typeof client.upload>[1]);
  if (!uploaded.ok) throw new Error(uploaded.error.message);
  const uploadedAt = performance.now();
  const created = await client.diarize({ url: 'media://holds', model });
  if (!created.ok) throw new Error(created.error.message);
  const job = await client.wait(created.value.jobId, { pollMs: 1000 });
  const endedAt = performance.now();
  await new Promise((wake) => setTimeout(wake, 500));
  clearInterval(timer);
  process.stdout.write(
    `${job.ok ? job.value.status : job.error.message} after ${seconds(endedAt - uploadedAt)} s, ${cut} pings cut\n`,
  );
  const lastShard = events.filter(({ event }) => event === 'shard_done').at(-1)?.at ?? endedAt;
  const ingested = events.find(({ event }) => event === 'job_ingested')?.at ?? uploadedAt;
  table('idle', 0, startedAt);
  table('upload', startedAt, uploadedAt);
  table('ingest', uploadedAt, ingested);
  table('shards', ingested, lastShard);
  table('assembly', lastShard, endedAt);
  table('job', uploadedAt, endedAt);
  for (const { at, ms } of longest(uploadedAt, endedAt)) {
    const meanwhile = events.filter((event) => event.at >= at && event.at <= at + ms + 100).map(({ event }) => event);
    process.stdout.write(`${seconds(ms)} s from ${seconds(at - uploadedAt)} s on  ${meanwhile.join(' ')}\n`);
  }
} finally {
  clearInterval(timer);
  await service.stop();
  rmSync(stateDir, { recursive: true, force: true, maxRetries: 5 });
}

function table(name: string, from: number, to: number): void {
  const seen = pings.filter(({ at }) => at >= from && at < to);
  const percentiles = (values: number[]): string => {
    const sorted = values.sort((a, b) => a - b);
    const at = (share: number) =>
      Math.round(sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? 0);
    return `${at(0.5)} / ${at(0.99)} / ${at(1)} ms`;
  };
  const clock = percentiles(seen.map(({ ms }) => ms));
  const thread = percentiles(seen.map(({ cpuMs }) => cpuMs));
  process.stdout.write(`${name.padEnd(9)} ${seen.length} pings, p50 / p99 / max: ${clock}, of the thread: ${thread}\n`);
}

/** The longest holds that do not overlap. */
function longest(from: number, to: number) {
  const sorted = pings.filter(({ at }) => at >= from && at < to).sort((a, b) => b.ms - a.ms);
  const found: typeof pings = [];
  for (const ping of sorted) {
    if (found.length === 6) break;
    if (found.every(({ at, ms }) => ping.at > at + ms || ping.at + ping.ms < at)) found.push(ping);
  }
  return found;
}

function seconds(ms: number): string {
  return (ms / 1000).toFixed(1);
}
