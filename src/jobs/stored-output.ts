import type { Result } from '../audio/audio-ports.ts';
import { type ByteRange, ItemScanner, MemberScanner } from '../formats/json-scan.ts';
import { PLAIN_SRT, PLAIN_VTT } from '../formats/turn-formats.ts';
import { fileIdOf, type Line, type TurnFormat, type TurnWriter } from '../formats/turn-text.ts';
import { createTurnWriter, listToShow, type Match, segmentsOf, VOICEPRINTS } from '../formats/writer.ts';
import type { Spoken, Transcript } from './app-services.ts';
import type { JobPorts } from './job-ports.ts';
import type { JobRecord } from './job-record.ts';

export type OutputPorts = Pick<JobPorts, 'objects' | 'now' | 'outputTtlMs'>;

/** Length of a chunk of text; smaller chunks would cost more to send than to write. */
const CHUNK_CHARS = 64 * 1024;

/** Key of a job's stored output; undefined if there is none or it has expired. */
export function liveOutputKey(ports: OutputPorts, job: JobRecord | undefined): string | undefined {
  if (!job?.outputKey || job.completedAt === undefined) return undefined;
  // Not left to the sweep, which may be minutes late.
  return job.completedAt + ports.outputTtlMs <= ports.now() ? undefined : job.outputKey;
}

/** The stored output document, unchanged. */
export async function openOutput(
  ports: OutputPorts,
  job: JobRecord | undefined,
): Promise<ReadableStream<Uint8Array> | undefined> {
  const key = liveOutputKey(ports, job);
  return key === undefined ? undefined : ports.objects.openStream(key);
}

/**
 * The turns of a job's output in a text format. Memory holds one chunk and one turn: a first read finds the position of
 * the list in the document, a second one reads only the list.
 */
export async function openTurns(
  ports: OutputPorts,
  job: JobRecord,
  format: TurnFormat,
): Promise<ReadableStream<Uint8Array> | undefined> {
  const key = liveOutputKey(ports, job);
  const document = key === undefined ? undefined : await ports.objects.openStream(key);
  if (key === undefined || !document) return undefined;
  const members = await membersOf(document);
  const list = listToShow(format, (member) => members.has(member));
  const range = list === undefined ? undefined : members.get(list);
  if (list === undefined || range === undefined) throw new Error(`the output of job ${job.id} has no turns`);
  const matches = await matchesOf(ports, key, members.get(VOICEPRINTS));
  const body = await ports.objects.openRange(key, range.offset, range.length);
  if (!body) return undefined;
  const writer = createTurnWriter(format, list, fileIdOf(job.request.url), matches, job.durationSeconds);
  return toStream(textChunks(body, writer));
}

/** The matches of an identify job's speakers; undefined if there is no output or it has expired. */
export async function findMatches(
  ports: OutputPorts,
  job: JobRecord | undefined,
): Promise<readonly Match[] | undefined> {
  const key = liveOutputKey(ports, job);
  const document = key === undefined ? undefined : await ports.objects.openStream(key);
  if (key === undefined || !document) return undefined;
  return matchesOf(ports, key, (await membersOf(document)).get(VOICEPRINTS));
}

/** Byte ranges of the members of a document's root object. */
export async function membersOf(document: ReadableStream<Uint8Array>): Promise<ReadonlyMap<string, ByteRange>> {
  const scanner = new MemberScanner();
  for await (const chunk of chunksOf(document)) scanner.push(chunk);
  return scanner.members;
}

/** Short enough to read whole: one match per speaker. */
async function matchesOf({ objects }: OutputPorts, key: string, range: ByteRange | undefined) {
  if (!range) return [];
  const bytes = await objects.getRange(key, range.offset, range.length);
  return JSON.parse(new TextDecoder().decode(bytes)) as readonly Match[];
}

async function* textChunks(body: ReadableStream<Uint8Array>, writer: TurnWriter): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  const scanner = new ItemScanner();
  let text = writer.head;
  let count = 0;
  for await (const chunk of chunksOf(body)) {
    for (const item of scanner.push(chunk)) {
      text += writer.line(JSON.parse(decoder.decode(item)) as Line, count++);
      if (text.length < CHUNK_CHARS) continue;
      yield text;
      text = '';
    }
  }
  for (const line of writer.tail?.() ?? []) {
    text += line;
    if (text.length < CHUNK_CHARS) continue;
    yield text;
    text = '';
  }
  if (text !== '') yield text;
}

export async function* chunksOf(body: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array> {
  const reader = body.getReader();
  try {
    for (let next = await reader.read(); !next.done; next = await reader.read()) yield next.value;
  } finally {
    await reader.cancel().catch(() => undefined); // the stream has ended or failed
  }
}

function toStream(chunks: AsyncGenerator<string>): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      const next = await chunks.next();
      if (next.done) controller.close();
      else controller.enqueue(encoder.encode(next.value));
    },
    async cancel() {
      await chunks.return(undefined);
    },
  });
}

/** The transcript in a job's output; see `JobService.openTranscript`. */
export async function openTranscript(
  ports: OutputPorts,
  job: JobRecord | undefined,
): Promise<Result<Transcript, { readonly warning?: string }> | undefined> {
  const key = liveOutputKey(ports, job);
  const document = key === undefined ? undefined : await ports.objects.openStream(key);
  if (key === undefined || !document) return undefined;
  const members = await membersOf(document);
  const words = members.get('wordLevelTranscription');
  const turns = members.get('turnLevelTranscription');
  if (!words || !turns) return { ok: false, error: { warning: await textOf(ports, key, members.get('warning')) } };

  const wordItems = () => itemsOf(ports, key, words);
  const turnItems = () => itemsOf(ports, key, turns);
  const segments = () => segmentsOf(turnItems(), wordItems());
  const transcript: Transcript = {
    durationSeconds: job?.durationSeconds ?? 0,
    words: wordItems,
    turns: turnItems,
    segments,
    async *subtitles(format) {
      const writer = format === 'srt' ? PLAIN_SRT : PLAIN_VTT;
      if (writer.head !== '') yield writer.head;
      let index = 0;
      for await (const segment of segments()) yield writer.line(segment, index++);
    },
  };
  return { ok: true, value: transcript };
}

async function textOf({ objects }: OutputPorts, key: string, range: ByteRange | undefined) {
  if (!range) return undefined;
  return JSON.parse(new TextDecoder().decode(await objects.getRange(key, range.offset, range.length))) as string;
}

/** @throws if the output was deleted during the read: an incomplete list must not look like a complete one */
async function* itemsOf({ objects }: OutputPorts, key: string, range: ByteRange): AsyncGenerator<Spoken> {
  const body = await objects.openRange(key, range.offset, range.length);
  if (!body) throw new Error('the output was deleted while it was read');
  const decoder = new TextDecoder();
  const scanner = new ItemScanner();
  for await (const chunk of chunksOf(body))
    for (const item of scanner.push(chunk)) yield JSON.parse(decoder.decode(item)) as Spoken;
}
