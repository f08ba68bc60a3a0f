import { Command, InvalidArgumentError, Option } from 'commander';
import { LATENCY_MS, MAX_SPEAKERS } from '../../src/contract/live-limits.ts';
import { fileIdOf, formatOutput } from '../format/output.ts';
import { nodeWebSocket } from '../live/node.ts';
import { openLiveStream } from '../live/open.ts';
import type { LiveStream } from '../live/stream.ts';
import type { LiveClose, LiveEvent } from '../live/types.ts';
import { wholeNumberIn } from './arguments.ts';
import { deliver, openDestination } from './deliver.ts';
import { aborted, callersDir, must, type Session, untilInterrupted, withService } from './job.ts';
import { describeEvent, outputOf } from './live-result.ts';
import { type LiveSource, openLiveSource } from './live-source.ts';
import { CliError, EXIT, INTERRUPTED, note } from './run.ts';
import { JOB_HELP } from './speaker-options.ts';
import { systemReason } from './system-error.ts';
import { collectVoice, type KnownVoice, openVoices, voiceprintsOf, writtenAs } from './voices.ts';

interface Options {
  readonly speed: number;
  readonly fast?: boolean;
  readonly latency?: number;
  readonly maxSpeakers?: number;
  readonly corrections: boolean;
  readonly voiceprint?: readonly [string, string][];
  readonly format: 'text' | 'rttm' | 'json';
  readonly output?: string;
}

/** What came of a stream. */
interface Heard {
  readonly events: readonly LiveEvent[];
  readonly sentSeconds: number;
  readonly close: LiveClose;
  /** Why the source broke off; the stream was ended properly nevertheless. */
  readonly failure?: CliError;
}

async function live(name: string, options: Options): Promise<void> {
  const { voiceprint = [], format, output, latency, maxSpeakers, corrections } = options;
  const speed = options.fast ? Number.POSITIVE_INFINITY : options.speed;
  const baseDir = callersDir('live');
  const voices = openVoices(voiceprint, baseDir);
  const destination = openDestination(output, baseDir, [name, ...voiceprint.map(([, file]) => file)]);
  // The last, as it holds a file open.
  const source = await openLiveSource(name, baseDir);
  let interrupted = false;
  const heard = await withService(
    async (session) => {
      const stream = await untilInterrupted(
        open(session, voices, { latency, maxSpeakers, corrections }),
        session.signal,
      );
      const result = stream && (await run(stream, source, speed, session.signal, name));
      interrupted = session.signal.aborted;
      return result;
    },
    { finishesAfterInterrupt: true },
  ).finally(() => source.close());
  if (!heard) process.exit(INTERRUPTED); // before the stream was open, maybe in the middle of an upload
  const { events, sentSeconds, close, failure } = heard;
  const result = outputOf(events, voices.length > 0, sentSeconds);
  if (result.diarization.length === 0) note('Nobody was heard.');
  await deliver(formatOutput(result, format, fileIdOf(name)), destination);
  failUnlessDone(close);
  if (failure) throw failure;
  // Ctrl-C is how a recording from the microphone ends; a file has not been heard to its end.
  if (interrupted && source.kind === 'file') process.exitCode = INTERRUPTED;
}

async function open(
  session: Session,
  voices: readonly KnownVoice[],
  wishes: Pick<Options, 'latency' | 'maxSpeakers' | 'corrections'>,
): Promise<LiveStream> {
  const voiceprints = voices.length > 0 ? await voiceprintsOf(session, voices) : undefined;
  session.progress.end();
  session.signal.throwIfAborted();
  const { client, signal } = session;
  const opened = await openLiveStream(client, { ...wishes, voiceprints, webSocket: nodeWebSocket, signal });
  return must(opened, writtenAs(voices));
}

/** Streams the source to its end, to the signal or to the end of the connection, whichever is first. */
async function run(
  stream: LiveStream,
  source: LiveSource,
  speed: number,
  signal: AbortSignal,
  name: string,
): Promise<Heard> {
  const events: LiveEvent[] = [];
  const startedMs = performance.now();
  const listening = (async () => {
    for await (const event of stream) {
      events.push(event);
      note(describeEvent(event));
    }
  })();
  const closed = new AbortController();
  void stream.closed.then(() => closed.abort());
  const stop = AbortSignal.any([signal, closed.signal]);
  // A connection that is full for good must not keep Ctrl-C from telling what was heard.
  const stopped = aborted(stop);
  if (source.kind === 'microphone') note('Listening; Ctrl-C ends.');
  const send = async (): Promise<void> => {
    for await (const chunk of source.chunks(stop)) {
      // What would be too fast for the service, after a standstill as well, the stream holds back.
      const dueMs = startedMs + (1000 * stream.sentSeconds) / speed;
      if (source.kind === 'file') await pause(dueMs - performance.now(), stop);
      if (stop.aborted) break;
      await Promise.race([stream.write(chunk), stopped]);
    }
  };
  try {
    // A microphone may go away, a file get shorter: what was heard until then is told all the same.
    const failure = await send().then(
      () => undefined,
      (error: unknown) => failureOf(error, name),
    );
    const close = await stream.end();
    await listening;
    return { events, sentSeconds: stream.sentSeconds, close, failure };
  } finally {
    stream.abort();
  }
}

function failureOf(error: unknown, name: string): CliError {
  if (error instanceof CliError) return error;
  const reason = systemReason(error) ?? (error instanceof Error ? error.message : String(error));
  return new CliError(EXIT.failed, `${name} cannot be read any further: ${reason}.`);
}

/** @throws CliError for a stream that did not end as asked */
function failUnlessDone(close: LiveClose): void {
  switch (close.kind) {
    case 'done':
      return;
    case 'aborted':
      throw new CliError(EXIT.failed, 'the stream was given up');
    case 'lost':
      throw new CliError(EXIT.unreachable, close.message);
    case 'length_limit':
    case 'policy':
    case 'too_large':
    case 'service_failed':
      throw new CliError(EXIT.failed, `the service ended the stream: ${close.message}`);
  }
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  if (ms <= 0 || signal.aborted) return Promise.resolve();
  return new Promise((done) => {
    const finish = (): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', finish);
      done();
    };
    const timer = setTimeout(finish, ms);
    signal.addEventListener('abort', finish);
  });
}

function speedOf(text: string): number {
  const value = Number(text);
  if (text.trim() === '' || !(value >= 0.1 && value <= 100)) throw new InvalidArgumentError('It must be 0.1 to 100.');
  return value;
}

export const command = new Command('live')
  .description('Tells who speaks while it is heard: events go to the standard error, the turns to the standard output.')
  .argument('<file-or-mic>', 'recording (WAV, MP3, FLAC, M4A and others: docs/formats.md), or mic for the microphone')
  .addOption(
    new Option(
      '--speed <n>',
      'send a file n times as fast as it plays; beyond 2 as far as the service shows that it follows, about 4',
    )
      .argParser(speedOf)
      .default(1),
  )
  .addOption(
    new Option(
      '--fast',
      'send a file as fast as the service shows that it follows, about 4 times as fast as it plays',
    ).conflicts('speed'),
  )
  .option(
    '--latency <ms>',
    `wanted time between a moment and what is said about it, ${LATENCY_MS.min} to ${LATENCY_MS.max}; ${LATENCY_MS.default} if not given`,
    wholeNumberIn(LATENCY_MS.min, LATENCY_MS.max),
  )
  .option(
    '--max-speakers <n>',
    `at most so many, 1 to ${MAX_SPEAKERS}; ${MAX_SPEAKERS} if not given`,
    wholeNumberIn(1, MAX_SPEAKERS),
  )
  .option('--no-corrections', 'leave what was told as it was told, also where it turns out to be somebody else')
  .option(
    '--voiceprint <name=file>',
    'a recording or voiceprint of somebody who may speak; may be repeated',
    collectVoice,
  )
  .addOption(new Option('--format <format>', 'form of the turns').choices(['text', 'rttm', 'json']).default('text'))
  .option('--output <file>', 'write the turns there instead of to the standard output')
  .addHelpText('after', `\nCtrl-C ends the stream and prints the turns up to there.${JOB_HELP}`)
  .action(live);
