import { type Diarization, joined, speakerLabel } from '../diarization/diarization.ts';
import { BYTES_PER_SAMPLE, CHUNK_SAMPLES } from '../ingest/chunks.ts';
import { type Piece, piecesOf } from '../transcription/pieces.ts';
import type { SpeakerTurns, SpokenText, Word } from '../transcription/spans.ts';
import { speakersOfWords, spokenTurns } from '../transcription/speakers.ts';
import { plausibleWords, timedWords } from '../transcription/words.ts';
import { keepAnalysis } from './analysis.ts';
import type { DispatchPorts } from './dispatch.ts';
import { dispatch, JobGone, QUEUE_LEASE_MS, sendAgain } from './dispatch.ts';
import type { EndPorts } from './end-job.ts';
import { billOf, succeed } from './end-job.ts';
import { readRecording } from './ingest-state.ts';
import { outboxId } from './job-messages.ts';
import type { EngineFault, JobPorts, StepPorts, TranscriptionEngine } from './job-ports.ts';
import type { JobRecord } from './job-record.ts';
import type { JobSteps } from './job-store.ts';
import { writeDiarization } from './results.ts';
import { chunkKey, documentKey, outputKey, transcriptionKey, wordsKey } from './work-keys.ts';

type TranscriptionPorts = EndPorts &
  StepPorts<'transcription' | 'work' | 'pause', Pick<JobSteps, 'settle' | 'handOver' | 'nextStep'>>;

const SAMPLE_RATE_HZ = 16_000;
/** An invocation starts pieces for this long and then hands over, so that jobs take turns. */
const SLICE_MS = 15_000;
/** Time for the first answer of an engine that has not answered this job yet, or not lately. */
const FIRST_ANSWER_MS = 60_000;
/** Pauses before the retries if no piece succeeds in between; then the job ends without a transcript. */
const PAUSES_SECONDS = [2, 5, 15, 30, 60, 120, 300];
/** Retries of a refused request: the answer is unlikely to change. */
const MAX_REFUSALS = 2;
const NO_TRANSCRIPT = 'The recording could not be transcribed';

/** The stored words of a piece. */
interface PieceWords {
  readonly words: readonly Word[];
  readonly isSpread: boolean;
}

/**
 * Last step of a job with a transcription: sends the pieces of the recording to the engine, assigns the words to
 * speakers and ends the job. Stored pieces are not sent again. If the engine fails permanently, the job succeeds
 * without a transcript and with a warning.
 *
 * @param signal aborted when the job has ended
 * @throws JobGone when the job ended meanwhile
 */
export async function transcribeJob(ports: TranscriptionPorts, job: JobRecord, signal?: AbortSignal): Promise<void> {
  const id = outboxId({ step: 'transcribe', jobId: job.id });
  if (job.status !== 'running' || !isTranscribed(job)) return ports.store.settle(id);
  const { tag } = await readRecording(ports, job.id);
  const state = await read(ports, job.id, tag);
  const { model, language } = transcriptionSettings(job);
  const engine = ports.transcription(model);
  if (!engine) return finish(ports, job, tag, { kind: 'failed', reason: 'no engine is configured for the model' });
  const pieces = piecesOf(state.turns, engine.maxPieceSeconds);
  const run = new Run(ports, job.id, tag, engine, language, signal);
  const fault = await run.transcribe(pieces, state);
  if (fault) return retry(ports, job, tag, { ...state, failures: run.hasSucceeded ? 1 : state.failures + 1 }, fault);
  if (!run.isComplete) {
    await save(ports, job.id, tag, { ...state, pieces: run.next, failures: 0 });
    await ports.store.handOver(id, ports.now() + QUEUE_LEASE_MS);
    return sendAgain(ports, { step: 'transcribe', jobId: job.id });
  }
  const words = await Promise.all(pieces.map((_, piece) => readWords(ports, job.id, tag, piece)));
  await finish(ports, job, tag, { kind: 'whole', pieces, words });
}

/** Sends the pieces of one invocation. */
class Run {
  /** Whether a piece has succeeded in this invocation. */
  hasSucceeded = false;
  isComplete = false;
  /** Number of the next piece. */
  next = 0;

  constructor(
    private readonly ports: TranscriptionPorts,
    private readonly jobId: string,
    private readonly tag: string,
    private readonly engine: TranscriptionEngine,
    private readonly language: string | undefined,
    private readonly signal: AbortSignal | undefined,
  ) {}

  /**
   * An engine that does not answer must not hold up the transcriptions of others: its first piece is sent alone and must
   * be answered soon.
   *
   * @returns the first fault of the engine; undefined if all pieces are done or the time is up
   */
  async transcribe(
    pieces: readonly Piece[],
    { turns, pieces: done, failures }: Transcription,
  ): Promise<EngineFault | undefined> {
    const { ports, jobId, tag } = this;
    const answersBefore = done > 0 && failures === 0;
    const startedAt = ports.now();
    const isOver = () => this.hasSucceeded && ports.now() - startedAt > SLICE_MS;
    this.next = done;
    let fault: EngineFault | undefined;
    const work = async (isEnough: () => boolean, timeoutMs?: number): Promise<void> => {
      while (this.next < pieces.length && !fault && !isEnough()) {
        const piece = this.next++;
        if (await ports.objects.exists(wordsKey(jobId, tag, piece))) continue;
        fault = (await this.#transcribe(pieces[piece], piece, turns, timeoutMs)) ?? fault;
      }
    };
    if (!answersBefore) await work(() => this.hasSucceeded, FIRST_ANSWER_MS);
    await Promise.all(Array.from({ length: this.engine.concurrency }, () => work(isOver)));
    this.isComplete = !fault && this.next >= pieces.length;
    return fault;
  }

  async #transcribe(
    { audio }: Piece,
    piece: number,
    turns: SpeakerTurns,
    timeoutMs: number | undefined,
  ): Promise<EngineFault | undefined> {
    const { ports, jobId, tag, signal } = this;
    const samples = await readSamples(ports, jobId, tag, audio);
    const answer = await this.engine.transcribe(samples, { language: this.language, signal, timeoutMs });
    if (signal?.aborted) throw new JobGone(jobId);
    if (!answer.ok) {
      ports.log('warn', 'transcription_failed', { jobId, piece, kind: answer.error.kind, error: answer.error.message });
      return answer.error;
    }
    const speech = turns.turns
      .filter((turn) => turn.endSeconds > audio.startSeconds && turn.startSeconds < audio.endSeconds)
      .map((turn) => ({
        startSeconds: turn.startSeconds - audio.startSeconds,
        endSeconds: turn.endSeconds - audio.startSeconds,
      }));
    const timed = timedWords(answer.value, audio.endSeconds - audio.startSeconds, speech);
    const shifted: PieceWords = {
      isSpread: timed.isSpread,
      words: timed.words.map((word) => ({
        ...word,
        startSeconds: word.startSeconds + audio.startSeconds,
        endSeconds: word.endSeconds + audio.startSeconds,
      })),
    };
    await ports.objects.put(wordsKey(jobId, tag, piece), new TextEncoder().encode(JSON.stringify(shifted)));
    this.hasSucceeded = true;
    return undefined;
  }
}

async function readSamples(
  ports: TranscriptionPorts,
  jobId: string,
  tag: string,
  { startSeconds, endSeconds }: Piece['audio'],
): Promise<Uint8Array> {
  const from = Math.floor(startSeconds * SAMPLE_RATE_HZ);
  const to = Math.floor(endSeconds * SAMPLE_RATE_HZ);
  const samples = new Uint8Array((to - from) * BYTES_PER_SAMPLE);
  for (let sample = from; sample < to; ) {
    const chunk = Math.floor(sample / CHUNK_SAMPLES);
    const count = Math.min(to, (chunk + 1) * CHUNK_SAMPLES) - sample;
    const offset = (sample - chunk * CHUNK_SAMPLES) * BYTES_PER_SAMPLE;
    const bytes = await ports.objects.getRange(chunkKey(jobId, chunk, tag), offset, count * BYTES_PER_SAMPLE);
    samples.set(bytes, (sample - from) * BYTES_PER_SAMPLE);
    sample += count;
  }
  return samples;
}

async function retry(
  ports: TranscriptionPorts,
  job: TranscribedJob,
  tag: string,
  state: Transcription,
  fault: EngineFault,
): Promise<void> {
  const tries = fault.kind === 'refused' ? MAX_REFUSALS : PAUSES_SECONDS.length;
  if (state.failures > tries) return finish(ports, job, tag, { kind: 'failed', reason: reasonOf(fault) });
  await save(ports, job.id, tag, state);
  const retryAfterSeconds = fault.kind === 'busy' ? (fault.retryAfterSeconds ?? 0) : 0;
  const pauseSeconds = Math.max(PAUSES_SECONDS[state.failures - 1], Math.ceil(retryAfterSeconds));
  const id = outboxId({ step: 'transcribe', jobId: job.id });
  await ports.store.handOver(id, ports.now() + pauseSeconds * 1000 + QUEUE_LEASE_MS);
  await sendAgain(ports, { step: 'transcribe', jobId: job.id }, pauseSeconds);
}

/** The reason for the caller. The engine's own message is only logged: it may contain its address or key. */
function reasonOf({ kind }: EngineFault): string {
  switch (kind) {
    case 'busy':
      return 'the transcription engine is overloaded';
    case 'unavailable':
      return 'the transcription engine does not answer';
    case 'refused':
      return 'the transcription engine rejects the request';
    case 'nonsense':
      return 'the answers of the transcription engine cannot be read';
  }
}

/**
 * Ends a job without a transcript after its message was given up: the diarization is kept.
 *
 * @returns false if the job does not run or has no transcription
 */
export async function finishWithoutTranscript(ports: TranscriptionPorts, job: JobRecord): Promise<boolean> {
  if (job.status !== 'running' || !isTranscribed(job)) return false;
  const { tag } = await readRecording(ports, job.id);
  await finish(ports, job, tag, { kind: 'failed', reason: 'the service failed several times' });
  return true;
}

type TranscriptionEnd =
  | { readonly kind: 'whole'; readonly pieces: readonly Piece[]; readonly words: readonly PieceWords[] }
  | { readonly kind: 'failed'; readonly reason: string };

async function finish(
  ports: TranscriptionPorts,
  job: TranscribedJob,
  tag: string,
  end: TranscriptionEnd,
): Promise<void> {
  const { turns, warning } = await read(ports, job.id, tag);
  const transcript = end.kind === 'whole' ? await transcriptOf(ports.pause, turns, end) : undefined;
  const warnings = [warning, end.kind === 'failed' ? `${NO_TRANSCRIPT}: ${end.reason}.` : transcript?.warning];
  await ports.objects.putStream(outputKey(job.id), document(ports, job.id, tag, transcript, warnings));
  const bill = billOf(job.kind, turns.durationSeconds);
  const transcribedSeconds = transcript && bill.billedSeconds;
  const outcome = { outputKey: outputKey(job.id), ...bill, transcribedSeconds };
  await keepAnalysis(ports, job.id);
  await succeed(ports, job, outcome);
}

interface Transcript {
  readonly words: readonly SpokenText[];
  readonly turns: readonly SpokenText[];
  readonly warning?: string;
}

async function transcriptOf(
  pause: () => Promise<void>,
  turns: SpeakerTurns,
  { pieces, words: answers }: Extract<TranscriptionEnd, { kind: 'whole' }>,
): Promise<Transcript> {
  const ownedWords = answers.flatMap(({ words }, piece) => {
    const { startSeconds, endSeconds } = pieces[piece].owned;
    return words.filter((word) => {
      const middle = (word.startSeconds + word.endSeconds) / 2;
      return middle >= startSeconds && middle < endSeconds;
    });
  });
  ownedWords.sort((a, b) => a.startSeconds - b.startSeconds);
  const words = plausibleWords(ownedWords, turns.turns, turns.durationSeconds);
  const speakers = await speakersOfWords(words, turns, pause);
  const isSpread = answers.some((answer) => answer.isSpread && answer.words.length > 0);
  const hints = [
    words.length === 0 ? 'No words were recognised.' : undefined,
    isSpread ? 'The transcription engine gave no times of words: they are spread over the speech.' : undefined,
  ].filter((hint) => hint !== undefined);
  return {
    words: words.map(({ startSeconds, endSeconds, text }, index) => ({
      startSeconds,
      endSeconds,
      text,
      speaker: speakers[index],
    })),
    turns: spokenTurns(words, speakers),
    ...(hints.length > 0 && { warning: hints.join(' ') }),
  };
}

/** The output document: the stored diarization, then the transcript and the warnings. */
async function* document(
  ports: TranscriptionPorts,
  jobId: string,
  tag: string,
  transcript: Transcript | undefined,
  warnings: readonly (string | undefined)[],
): AsyncGenerator<string> {
  const key = documentKey(jobId, tag);
  const sizeBytes = (await ports.objects.sizeBytes(key)) ?? 0;
  // Leave out the closing brace, so that members can be added.
  const body = await ports.objects.openRange(key, 0, sizeBytes - 1);
  if (!body) throw new JobGone(jobId);
  const decoder = new TextDecoder();
  for await (const bytes of body) yield decoder.decode(bytes, { stream: true });
  if (transcript) {
    yield ',"wordLevelTranscription":[';
    yield* joined(transcript.words, spokenText);
    yield '],"turnLevelTranscription":[';
    yield* joined(transcript.turns, spokenText);
    yield ']';
  }
  const text = warnings.filter((warning) => warning !== undefined).join(' ');
  if (text !== '') yield `,"warning":${JSON.stringify(text)}`;
  yield '}';
}

function spokenText({ startSeconds, endSeconds, text, speaker }: SpokenText): string {
  const [start, end] = [rounded(startSeconds), rounded(endSeconds)];
  return JSON.stringify({ start, end: Math.max(end, rounded(start + 0.001)), text, speaker: speakerLabel(speaker) });
}

const rounded = (seconds: number): number => Math.round(seconds * 1000) / 1000;

const readWords = (ports: Pick<JobPorts, 'objects'>, jobId: string, tag: string, piece: number): Promise<PieceWords> =>
  readJson(ports, jobId, wordsKey(jobId, tag, piece));

/** A diarize job. Use `isTranscribed` to check whether it asks for a transcription. */
export type TranscribedJob = Extract<JobRecord, { kind: 'diarize' }>;

/** State of a transcription, stored as JSON. */
export interface Transcription {
  readonly turns: SpeakerTurns;
  /** Warning of the diarization. */
  readonly warning?: string;
  /** Number of leading pieces that are done; later pieces may be done as well. */
  readonly pieces: number;
  /** Consecutive failures of the engine. */
  readonly failures: number;
}

export const isTranscribed = (job: JobRecord): job is TranscribedJob =>
  job.kind === 'diarize' && job.request.transcription === true;

/** @throws if the request has no settings, which the contract's check rules out */
export function transcriptionSettings({ request }: TranscribedJob) {
  if (!request.transcriptionConfig) throw new Error('a request for a transcription without its settings');
  return request.transcriptionConfig;
}

/** Stores the diarization and queues the transcription. Idempotent. */
export async function beginTranscription(
  ports: DispatchPorts & StepPorts<'objects', Pick<JobSteps, 'nextStep'>>,
  job: TranscribedJob,
  tag: string,
  { warning, ...diarization }: Diarization,
): Promise<void> {
  await ports.objects.putStream(documentKey(job.id, tag), writeDiarization(diarization, job.request));
  const { durationSeconds, turns, exclusiveTurns } = diarization;
  const spans = (all: Diarization['exclusiveTurns']) =>
    all.map(({ speaker, startSeconds, endSeconds }) => ({ speaker, startSeconds, endSeconds }));
  const speakerTurns = { durationSeconds, turns: spans(turns), exclusiveTurns: spans(exclusiveTurns) };
  await save(ports, job.id, tag, { turns: speakerTurns, warning, pieces: 0, failures: 0 });
  if (await ports.store.nextStep(job.id, ['assemble'], 'transcribe', ports.now())) {
    await dispatch(ports, { step: 'transcribe', jobId: job.id });
  }
}

export const save = (
  ports: Pick<JobPorts, 'objects'>,
  jobId: string,
  tag: string,
  state: Transcription,
): Promise<void> => ports.objects.put(transcriptionKey(jobId, tag), new TextEncoder().encode(JSON.stringify(state)));

/** @throws JobGone if the object is missing: the job has ended and its working data was removed */
export async function readJson<T>(ports: Pick<JobPorts, 'objects'>, jobId: string, key: string): Promise<T> {
  const bytes = await ports.objects.get(key);
  if (!bytes) throw new JobGone(jobId);
  return JSON.parse(new TextDecoder().decode(bytes)) as T;
}

export const read = (ports: Pick<JobPorts, 'objects'>, jobId: string, tag: string): Promise<Transcription> =>
  readJson(ports, jobId, transcriptionKey(jobId, tag));
