import { Command, InvalidArgumentError, Option } from 'commander';
import { LATENCY_MS, MAX_SPEAKERS } from '../../src/contract/live-limits.ts';
import { fileIdOf, formatOutput } from '../format/output.ts';
import { nodeWebSocket } from '../live/node.ts';
import { openLiveStream } from '../live/open.ts';
import type { LiveStream } from '../live/stream.ts';
import type { LiveClose, LiveEvent } from '../live/types.ts';
import { aborted, pause } from '../sdk/pause.ts';
import { wholeNumberIn } from './arguments.ts';
import { deliver, openDestination } from './deliver.ts';
import { callersDir, must, type Session, untilInterrupted, withService } from './job.ts';
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

/** Result of a stream. */
interface StreamResult {
  readonly events: readonly LiveEvent[];
  readonly sentSeconds: number;
  readonly close: LiveClose;
  /** Fault of the source; the stream itself ended properly. */
  readonly failure?: CliError;
}

async function live(name: string, options: Options): Promise<void> {
  const { voiceprint = [], format, output, latency, maxSpeakers, corrections } = options;
  const speed = options.fast ? Number.POSITIVE_INFINITY : options.speed;
  const baseDir = callersDir('live');
  const voices = openVoices(voiceprint, baseDir);
  const destination = openDestination(output, baseDir, [name, ...voiceprint.map(([, file]) => file)]);
  // Last, because it opens a file.
  const source = await openLiveSource(name, baseDir);
  let interrupted = false;
  const streamed = await withService(
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
  // The command was interrupted before the stream was open, perhaps during an upload.
  if (!streamed) process.exit(INTERRUPTED);
  const { events, sentSeconds, close, failure } = streamed;
  const result = outputOf(events, voices.length > 0, sentSeconds);
  if (result.diarization.length === 0) note('No speech was found.');
  await deliver(formatOutput(result, format, fileIdOf(name)), destination);
  failUnlessDone(close);
  if (failure) throw failure;
  // Ctrl-C is the normal end of the microphone; a file was not read to its end.
  if (interrupted && source.kind === 'file') process.exitCode = INTERRUPTED;
}

async function open(
  session: Session,
  voices: readonly KnownVoice[],
  options: Pick<Options, 'latency' | 'maxSpeakers' | 'corrections'>,
): Promise<LiveStream> {
  const voiceprints = voices.length > 0 ? await voiceprintsOf(session, voices) : undefined;
  session.progress.end();
  session.signal.throwIfAborted();
  const { client, signal } = session;
  const opened = await openLiveStream(client, { ...options, voiceprints, webSocket: nodeWebSocket, signal });
  return must(opened, writtenAs(voices));
}

/** Streams the source until its end, an interrupt or the end of the connection. */
async function run(
  stream: LiveStream,
  source: LiveSource,
  speed: number,
  signal: AbortSignal,
  name: string,
): Promise<StreamResult> {
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
  // `write` may wait forever while the connection's buffer is full; Ctrl-C must still print the turns.
  const stopped = aborted(stop);
  if (source.kind === 'microphone') note('Listening. Press Ctrl-C to stop.');
  const send = async (): Promise<void> => {
    for await (const chunk of source.chunks(stop)) {
      // The stream itself delays audio that the service cannot process yet.
      const waitMs = startedMs + (1000 * stream.sentSeconds) / speed - performance.now();
      if (source.kind === 'file' && waitMs > 0) await pause(waitMs, stop);
      if (stop.aborted) break;
      await Promise.race([stream.write(chunk), stopped]);
    }
  };
  try {
    // A microphone may be unplugged and a file truncated; the turns so far are still a result.
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

/** @throws CliError for a stream that did not end normally */
function failUnlessDone(close: LiveClose): void {
  switch (close.kind) {
    case 'done':
      return;
    case 'aborted':
      throw new CliError(EXIT.failed, 'the stream was aborted');
    case 'lost':
      throw new CliError(EXIT.unreachable, close.message);
    case 'length_limit':
    case 'policy':
    case 'too_large':
    case 'service_failed':
      throw new CliError(EXIT.failed, `the service ended the stream: ${close.message}`);
  }
}

function speedOf(text: string): number {
  const value = Number(text);
  if (text.trim() === '' || !(value >= 0.1 && value <= 100)) throw new InvalidArgumentError('It must be 0.1 to 100.');
  return value;
}

export const command = new Command('live')
  .description('Finds who is speaking in real time: prints events on stderr and the turns on stdout.')
  .argument('<file-or-mic>', 'recording (WAV, MP3, FLAC, M4A and others: docs/formats.md), or mic for the microphone')
  .addOption(
    new Option('--speed <n>', 'send a file at n times real time; above 2 limited by the speed of the service, about 4')
      .argParser(speedOf)
      .default(1),
  )
  .addOption(
    new Option('--fast', 'send a file as fast as the service processes it, about 4 times real time').conflicts('speed'),
  )
  .option(
    '--latency <ms>',
    `target delay of events, ${LATENCY_MS.min} to ${LATENCY_MS.max}; ${LATENCY_MS.default} if not given`,
    wholeNumberIn(LATENCY_MS.min, LATENCY_MS.max),
  )
  .option(
    '--max-speakers <n>',
    `largest number of speakers, 1 to ${MAX_SPEAKERS}; ${MAX_SPEAKERS} if not given`,
    wholeNumberIn(1, MAX_SPEAKERS),
  )
  .option('--no-corrections', 'do not correct turns that were sent with the wrong speaker')
  .option('--voiceprint <name=file>', 'recording or voiceprint of a known person; may be repeated', collectVoice)
  .addOption(new Option('--format <format>', 'format of the turns').choices(['text', 'rttm', 'json']).default('text'))
  .option('--output <file>', 'write the turns to this file, not to stdout')
  .addHelpText('after', `\nCtrl-C ends the stream and prints the turns so far.${JOB_HELP}`)
  .action(live);
