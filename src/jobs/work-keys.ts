/** R2 keys of a job. Everything below `work/` belongs to unfinished jobs only. */
export const WORK_PREFIX = 'work/';
export const workPrefix = (jobId: string) => `${WORK_PREFIX}${jobId}/`;
/**
 * Version of the working data that one step of a job passes to another: ingest state, chunks and parts. Raise it with
 * every change of their format.
 */
export const WORK_VERSION = 10;
/**
 * Working data belongs to one version of the service and one set of models, because embeddings of two models cannot be
 * compared. Data of another version or other models is ignored, and the recording is read again.
 *
 * @param models short name of the models in use, letters and digits
 */
export const workOf = (models: string) => `v${WORK_VERSION}-${models}`;
export const ingestKey = (jobId: string, work: string) => `${workPrefix(jobId)}ingest-${work}.json`;
/** The copy of a recording that cannot be read at its server. */
export const copyKey = (jobId: string) => `${workPrefix(jobId)}source`;
const numbered = (number: number) => String(number).padStart(5, '0');
/** @param tag tag of the file that was read (`tagOf`) */
export const chunkKey = (jobId: string, chunk: number, tag: string) =>
  `${workPrefix(jobId)}pcm-${tag}-${numbered(chunk)}`;
/** @param tag tag of the file that was analysed (`tagOf`) */
export const partKey = (jobId: string, shard: number, tag: string) =>
  `${workPrefix(jobId)}part-${tag}-${numbered(shard)}`;
/**
 * Speaker probabilities of a long recording, stored until the output is written.
 *
 * @param run id of the run of the assembly, because two concurrent runs would otherwise read each other's values
 */
export const tracksKey = (jobId: string, run: string, block: number) =>
  `${workPrefix(jobId)}tracks-${run}-${String(block).padStart(5, '0')}`;
/** The diarization output of a job whose transcription is pending. */
export const documentKey = (jobId: string, tag: string) => `${workPrefix(jobId)}document-${tag}.json`;
/** State of the transcription. */
export const transcriptionKey = (jobId: string, tag: string) => `${workPrefix(jobId)}transcription-${tag}.json`;
/** Words of a piece of the recording. */
export const wordsKey = (jobId: string, tag: string, piece: number) =>
  `${workPrefix(jobId)}words-${tag}-${numbered(piece)}.json`;
const RESULT_KEY = /^(?:outputs|analyses)\/([^/.]+)/;
export const outputKey = (jobId: string) => `outputs/${jobId}.json`;
/** Analysis that a recount of a diarize job needs; stored as long as the output. */
export const analysisKey = (jobId: string) => `analyses/${jobId}`;

/** The job that an object belongs to, by its key; undefined if it belongs to none. */
export function jobOfKey(key: string): string | undefined {
  if (key.startsWith(WORK_PREFIX)) return key.slice(WORK_PREFIX.length).split('/', 1)[0];
  return RESULT_KEY.exec(key)?.[1];
}

/** Placeholder in a stored request for a `data:` URL, whose text is a separate object until the job ends. */
export const INLINE_URL = 'data:';
export const inlineUrlKey = (jobId: string) => `${workPrefix(jobId)}url`;
/** The voiceprints of an identify request, until the job ends. */
export const voiceprintsKey = (jobId: string) => `${workPrefix(jobId)}voiceprints.json`;
