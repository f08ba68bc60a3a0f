/** R2 keys of a job. Everything below `work/` belongs to unfinished jobs only. */
export const WORK_PREFIX = 'work/';
export const workPrefix = (jobId: string) => `${WORK_PREFIX}${jobId}/`;
/**
 * Raised with every change of what the steps of a job leave for one another: the state of its ingest, the chunks, the
 * parts.
 */
export const WORK_VERSION = 10;
/**
 * What the steps of a job leave for one another is of one version of the service and of one pair of models: embeddings
 * of two models cannot be compared. What another version or other models left is not looked at: the recording is read
 * again.
 *
 * @param models the short name of those in use, letters and digits
 */
export const workOf = (models: string) => `v${WORK_VERSION}-${models}`;
export const ingestKey = (jobId: string, work: string) => `${workPrefix(jobId)}ingest-${work}.json`;
/** The copy of a recording that cannot be read where it is. */
export const copyKey = (jobId: string) => `${workPrefix(jobId)}source`;
const numbered = (number: number) => String(number).padStart(5, '0');
/** @param tag of the bytes that were read (`tagOf`) */
export const chunkKey = (jobId: string, chunk: number, tag: string) =>
  `${workPrefix(jobId)}pcm-${tag}-${numbered(chunk)}`;
/** @param tag of the bytes that the part was made of */
export const partKey = (jobId: string, shard: number, tag: string) =>
  `${workPrefix(jobId)}part-${tag}-${numbered(shard)}`;
/**
 * Speakers' probabilities of a long recording, between their making and the writing of the output.
 *
 * @param run of the assembly, different for each: of two copies at once, one would read what the other has put down in
 *   the middle of its work
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

/** The job that an object belongs to, by its key; undefined for one that is no job's. */
export function jobOfKey(key: string): string | undefined {
  if (key.startsWith(WORK_PREFIX)) return key.slice(WORK_PREFIX.length).split('/', 1)[0];
  return RESULT_KEY.exec(key)?.[1];
}

/** Stands in a stored request for a `data:` URL, whose text is an object of its own until the job ends. */
export const INLINE_URL = 'data:';
export const inlineUrlKey = (jobId: string) => `${workPrefix(jobId)}url`;
/** The voiceprints of an identify request, until the job ends. */
export const voiceprintsKey = (jobId: string) => `${workPrefix(jobId)}voiceprints.json`;
