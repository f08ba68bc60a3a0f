import { nodeAudio } from '../../client/audio/ports.ts';
import { nodeEngine } from '../node-engine.ts';
import { packOfService, pldaOf } from '../packs.ts';
import { type LabelledRecording, loadGeneratedMeetings } from '../recordings.ts';
import { SETTINGS } from '../speed.ts';
import { boundMinutes, joined, within } from './material.ts';
import { type LatencyResult, measureLatency, measureLong, measureOffline } from './measure.ts';
import { observeStream, SAMPLE_RATE_HZ } from './observe.ts';
import { measureService } from './service.ts';
import { LATENCIES_MS, liveEngine, openSession } from './sessions.ts';
import { type AccuracyRow, accuracyTable, capacityTable, delayTable, longTable, serviceTable } from './tables.ts';

/** Latency of the long stream and of the streams through the service: that of a client that does not choose. */
const USUAL_LATENCY_MS = 1000;
const LONG_MINUTES = 60;
const ABOUT_ACCURACY = `Corrected: a client that asks for corrections and applies them to what was told before; starts and ends are the same. Published figures of others, on whole corpora:
diart 34.1 on AMI and 22.2 on VoxConverse at 0.5 s of latency, 27.5 and 16.8 at 5 s; LS-EEND 20.8 on AMI.`;
const WARM_UP_SAMPLES = 10 * SAMPLE_RATE_HZ;

/** Live diarization: accuracy beside the jobs', delays, capacity of a core, stability of labels over an hour. */
export async function measureLive(recordings: readonly LabelledRecording[] | undefined): Promise<string> {
  if (!recordings) return '**Not measured:** the labelled recordings of `../shared/audio` are not here.';
  const minutes = boundMinutes();
  const bounded = within(recordings, minutes);
  const measured = await measureRecordings(bounded);
  const generated = await loadGeneratedMeetings(nodeAudio());
  const meetings = generated && within(generated, minutes);
  const engine = await liveEngine(packOfService('community-1'));
  const hour = joined(recordings, 60 * Math.min(LONG_MINUTES, minutes));
  const long = await measureLong(engine, USUAL_LATENCY_MS, hour);
  const service = await measureService(recordings, USUAL_LATENCY_MS, 60 * minutes);
  const parts = [
    `${bounded.length} labelled recordings, each a stream of its own, in frames of 100 ms; DER in per cent, no collar, overlap scored, pooled over a folder. The jobs' settings on the
same recordings in the same run. Made in Node with the Worker's code and WebAssembly.`,
    `${accuracyTable(bounded, measured.rows)}

${ABOUT_ACCURACY}`,
    '### Delay of events',
    delayTable(measured.live),
    '### Capacity',
    capacityTable(measured.live),
    serviceTable(service, USUAL_LATENCY_MS),
    '### A long stream',
    longTable(long),
  ];
  if (meetings) {
    const { rows, live } = await measureRecordings(meetings);
    parts.push('### Generated meetings', accuracyTable(meetings, rows), delayTable(live));
  }
  return parts.join('\n\n');
}

async function measureRecordings(
  recordings: readonly LabelledRecording[],
): Promise<{ rows: AccuracyRow[]; live: LatencyResult[] }> {
  const pack = packOfService('community-1');
  const rows: AccuracyRow[] = [];
  const live: LatencyResult[] = [];
  const engine = await liveEngine(pack);
  // The first run of a model takes longer.
  await observeStream(openSession(engine, USUAL_LATENCY_MS), recordings[0].samples.subarray(0, WARM_UP_SAMPLES));
  for (const latencyMs of LATENCIES_MS) {
    const result = await measureLatency(engine, latencyMs, recordings);
    live.push(result);
    rows.push({ what: `live, ${latencyMs} ms`, errors: result.errors });
    rows.push({ what: `live, ${latencyMs} ms, corrected`, errors: result.corrected });
  }
  const jobs = await nodeEngine(pack);
  for (const setting of SETTINGS) {
    rows.push({ what: setting, errors: await measureOffline(jobs, pldaOf(pack), setting, recordings) });
  }
  return { rows, live };
}
