import type { Result } from '../audio/audio-ports.ts';
import { type ByteRange, ItemScanner } from '../formats/json-scan.ts';
import { PLAIN_SRT, PLAIN_VTT } from '../formats/turn-formats.ts';
import { segmentsOf } from '../formats/writer.ts';
import type { Spoken, Transcript } from './app-services.ts';
import { chunksOf, liveOutputKey, membersOf, type OutputPorts } from './job-output.ts';
import type { JobRecord } from './ports.ts';

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

/** @throws when the output has gone meanwhile: half a list must not look like a whole one */
async function* itemsOf({ objects }: OutputPorts, key: string, range: ByteRange): AsyncGenerator<Spoken> {
  const body = await objects.openRange(key, range.offset, range.length);
  if (!body) throw new Error('the output has gone while it was read');
  const decoder = new TextDecoder();
  const scanner = new ItemScanner();
  for await (const chunk of chunksOf(body))
    for (const item of scanner.push(chunk)) yield JSON.parse(decoder.decode(item)) as Spoken;
}
