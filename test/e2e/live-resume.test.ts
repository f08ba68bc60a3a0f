import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import { collectTurns } from '../../client/live/index.ts';
import { openLiveStream } from '../../client/live/open.ts';
import type { LiveStream } from '../../client/live/stream.ts';
import type { LiveEvent, WebSocketConstructor } from '../../client/live/types.ts';
import { openDatabase } from '../../client/local/database.ts';
import { findProcess } from '../../client/local/processes.ts';
import { RollcallClient } from '../../client/sdk/client.ts';
import { type RunningService, root, startService } from '../helpers/local-process.ts';
import { conversationSamples } from '../helpers/voices.ts';

const SAMPLE_RATE_HZ = 16_000;
const SECONDS = 40;

let stateDir: string;
let service: RunningService;

afterEach(async () => {
  if (service && (findProcess(service.pid) || service.workerdPids().length > 0)) await service.killAll();
  rmSync(stateDir, { recursive: true, force: true, maxRetries: 5 });
});

/** The connections of a stream, in the order of their creation. */
const sockets: WebSocket[] = [];
const RecordedWebSocket = class extends WebSocket {
  constructor(url: string) {
    super(url, { perMessageDeflate: false });
    sockets.push(this);
  }
} as unknown as WebSocketConstructor;

async function open(): Promise<LiveStream> {
  const client = new RollcallClient({ url: service.url, key: service.key });
  const opened = await openLiveStream(client, { webSocket: RecordedWebSocket });
  if (!opened.ok) throw new Error(opened.error.message);
  return opened.value;
}

/**
 * Streams the conversation in real time, as a microphone would.
 * @param drops faults by the second at which they happen
 */
async function run(stream: LiveStream, drops: Readonly<Record<number, () => unknown>> = {}) {
  const samples = (await conversationSamples()).subarray(0, SECONDS * SAMPLE_RATE_HZ);
  const events: LiveEvent[] = [];
  const listening = (async () => {
    for await (const event of stream) events.push(event);
  })();
  const startedAt = Date.now();
  for (let second = 0; second < SECONDS; second++) {
    void stream.write(samples.subarray(second * SAMPLE_RATE_HZ, (second + 1) * SAMPLE_RATE_HZ));
    void drops[second]?.();
    await sleep(startedAt + 1000 * (second + 1) - Date.now());
  }
  expect(await stream.end()).toEqual({ kind: 'done' });
  await listening;
  return events;
}

it('two dropped connections and a restart of the service change neither events nor billing of a stream', {
  timeout: 300_000,
}, async () => {
  stateDir = mkdtempSync(join(tmpdir(), 'rollcall-resume-'));
  service = await startService(stateDir);
  const reference = await run(await open());
  expect(collectTurns<string>(reference, SECONDS).length).toBeGreaterThan(4);
  expect(sockets).toHaveLength(1);

  sockets.length = 0;
  const stream = await open();
  const events = await run(stream, {
    7: () => sockets.at(-1)!.terminate(),
    16: async () => {
      await service.killAll();
      service = await startService(stateDir, Number(new URL(service.url).port));
    },
    33: () => sockets.at(-1)!.close(4000),
  });
  expect(sockets.length).toBeGreaterThanOrEqual(4);
  expect(events).toEqual(reference);

  const { run: sql, close } = await openDatabase(stateDir, root);
  const billed = await sql('SELECT billed_seconds FROM usage_records WHERE job_id = ?', stream.id);
  const streams = await sql('SELECT status FROM live_streams');
  await close();
  expect(billed).toEqual([{ billed_seconds: SECONDS }]);
  expect(streams).toEqual([{ status: 'done' }, { status: 'done' }]);
});
