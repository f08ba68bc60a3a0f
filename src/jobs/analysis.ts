import { release } from '../audio/memory.ts';
import { readRecording } from './ingest-state.ts';
import type { JobPorts } from './job-ports.ts';
import type { IngestedRecording } from './job-record.ts';
import { analysisKey, partKey } from './work-keys.ts';

/** Index of a stored analysis. The object holds all parts, then this index as JSON, then the length of the JSON. */
interface AnalysisIndex {
  /** Version and models that made the parts (`JobPorts.work`). */
  readonly work: string;
  readonly recording: IngestedRecording;
  /** Length of each part, in bytes. */
  readonly partBytes: readonly number[];
}

const LENGTH_BYTES = 4;

/**
 * Stores the parts of a job for as long as its output, because a job's end deletes its working data. If a part is
 * missing, nothing is stored: the job can then not be recounted.
 */
export async function keepAnalysis(
  ports: Pick<JobPorts, 'objects' | 'work' | 'log'>,
  jobId: string,
  pulse: () => Promise<void> = async () => undefined,
): Promise<void> {
  const { recording, tag } = await readRecording(ports, jobId);
  let isComplete = true;
  const chunks = (async function* () {
    const partBytes: number[] = [];
    for (let shard = 0; shard < recording.shardCount; shard++) {
      const part = await ports.objects.get(partKey(jobId, shard, tag));
      if (!part) {
        isComplete = false;
        return;
      }
      partBytes.push(part.length);
      yield part;
      release(part);
      await pulse();
    }
    const index: AnalysisIndex = { work: ports.work, recording, partBytes };
    const json = new TextEncoder().encode(JSON.stringify(index));
    const length = new Uint8Array(LENGTH_BYTES);
    new DataView(length.buffer).setUint32(0, json.length, true);
    yield json;
    yield length;
  })();
  await ports.objects.putStream(analysisKey(jobId), chunks);
  if (isComplete) return;
  await ports.objects.deleteMany([analysisKey(jobId)]);
  ports.log('warn', 'analysis_not_kept', { jobId });
}

/** A stored analysis. */
export interface Analysis {
  readonly recording: IngestedRecording;
  readPart(shard: number, offset: number, length: number): Promise<Uint8Array>;
}

/** @returns undefined if it was deleted, or is from another version of the service or other models */
export async function openAnalysis(
  ports: Pick<JobPorts, 'objects' | 'work'>,
  jobId: string,
): Promise<Analysis | undefined> {
  const key = analysisKey(jobId);
  const sizeBytes = await ports.objects.sizeBytes(key);
  if (sizeBytes === undefined) return undefined;
  const lengthAt = sizeBytes - LENGTH_BYTES;
  const length = await ports.objects.getRange(key, lengthAt, LENGTH_BYTES);
  const indexBytes = new DataView(length.buffer, length.byteOffset).getUint32(0, true);
  const json = await ports.objects.getRange(key, lengthAt - indexBytes, indexBytes);
  const { work, recording, partBytes } = JSON.parse(new TextDecoder().decode(json)) as AnalysisIndex;
  if (work !== ports.work) return undefined;
  const starts = [0];
  for (const bytes of partBytes) starts.push(starts[starts.length - 1] + bytes);
  return { recording, readPart: (shard, offset, count) => ports.objects.getRange(key, starts[shard] + offset, count) };
}
