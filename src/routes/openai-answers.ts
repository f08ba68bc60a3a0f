import type { DiarizedSegment, TranscriptionEvent, TranscriptionForm } from '../contract/openai.ts';
import type { Spoken, Transcript } from '../jobs/app-services.ts';

/** Values of a whisper segment that this service does not measure. */
const UNMEASURED = { tokens: [], temperature: 0, avg_logprob: 0, compression_ratio: 1, no_speech_prob: 0 };

const CONTENT_TYPES = {
  json: 'application/json',
  verbose_json: 'application/json',
  diarized_json: 'application/json',
  text: 'text/plain; charset=utf-8',
  srt: 'application/x-subrip; charset=utf-8',
  vtt: 'text/vtt; charset=utf-8',
} as const;

/** A transcript in the requested form, as a stream of text. */
export interface TranscriptAnswer {
  readonly contentType: string;
  readonly text: AsyncIterable<string>;
}

/** @param names of known speakers by label */
export function answerOf(
  transcript: Transcript,
  form: TranscriptionForm,
  names: ReadonlyMap<string, string>,
): TranscriptAnswer {
  return { contentType: CONTENT_TYPES[form.format], text: textOf(transcript, form, names) };
}

async function* textOf(
  transcript: Transcript,
  { format, granularities, language }: TranscriptionForm,
  names: ReadonlyMap<string, string>,
): AsyncGenerator<string> {
  const { durationSeconds } = transcript;
  const duration = Math.round(durationSeconds * 1000) / 1000;
  const end = `"usage":${JSON.stringify({ type: 'duration', seconds: Math.ceil(durationSeconds) })}}`;
  switch (format) {
    case 'srt':
    case 'vtt':
      yield* transcript.subtitles(format);
      return;
    case 'text':
      yield* turnTexts(transcript);
      yield '\n';
      return;
    case 'json':
      yield '{';
      yield* textMember(transcript);
      yield end;
      return;
    case 'verbose_json':
      yield `{"task":"transcribe","language":${JSON.stringify(language ?? 'unknown')},"duration":${duration},`;
      yield* textMember(transcript);
      if (granularities.includes('word')) {
        const wordOf = ({ text, start, end }: Spoken) => ({ word: text, start, end });
        yield* listMember('words', transcript.words(), wordOf);
      }
      if (granularities.includes('segment'))
        yield* listMember('segments', transcript.segments(), ({ start, end, text }, id) => {
          return { id, seek: 0, start, end, text, ...UNMEASURED };
        });
      yield end;
      return;
    case 'diarized_json':
      yield `{"task":"transcribe","duration":${duration},`;
      yield* textMember(transcript);
      yield* listMember('segments', transcript.turns(), diarizedSegments(names));
      yield end;
  }
}

/** Events of a streamed answer. */
export async function* eventsOf(
  transcript: Transcript,
  { format }: TranscriptionForm,
  names: ReadonlyMap<string, string>,
): AsyncGenerator<TranscriptionEvent> {
  const segmentOf = diarizedSegments(names);
  let text = '';
  let index = 0;
  for await (const turn of transcript.turns()) {
    const delta = index === 0 ? turn.text : ` ${turn.text}`;
    text += delta;
    const segment = segmentOf(turn, index++);
    if (format !== 'diarized_json') {
      yield { type: 'transcript.text.delta', delta };
      continue;
    }
    yield { type: 'transcript.text.delta', delta, segment_id: segment.id };
    yield segment;
  }
  yield { type: 'transcript.text.done', text };
}

function diarizedSegments(names: ReadonlyMap<string, string>): (turn: Spoken, index: number) => DiarizedSegment {
  const nameOf = speakerNames(names);
  return ({ start, end, speaker, text }, index) => {
    const id = `seg_${String(index + 1).padStart(3, '0')}`;
    return { type: 'transcript.text.segment', id, start, end, speaker: nameOf(speaker), text };
  };
}

/** Names known speakers by name and others by letter, in order of first appearance. */
export function speakerNames(known: ReadonlyMap<string, string>): (label: string) => string {
  const names = new Map(known);
  const taken = new Set(known.values());
  let next = 0;
  return (label) => {
    let name = names.get(label);
    if (name !== undefined) return name;
    do name = letters(next++);
    while (taken.has(name));
    names.set(label, name);
    return name;
  };
}

/** A … Z, AA, AB … */
function letters(index: number): string {
  const last = String.fromCharCode('A'.charCodeAt(0) + (index % 26));
  return index < 26 ? last : letters(Math.floor(index / 26) - 1) + last;
}

/** Texts of the turns, separated by spaces. */
async function* turnTexts(transcript: Transcript): AsyncGenerator<string> {
  let space = '';
  for await (const { text } of transcript.turns()) {
    yield space + text;
    space = ' ';
  }
}

async function* textMember(transcript: Transcript): AsyncGenerator<string> {
  yield '"text":"';
  for await (const text of turnTexts(transcript)) yield JSON.stringify(text).slice(1, -1);
  yield '",';
}

async function* listMember<T>(
  name: string,
  items: AsyncIterable<T>,
  describe: (item: T, index: number) => object,
): AsyncGenerator<string> {
  yield `"${name}":[`;
  let index = 0;
  for await (const item of items) {
    yield (index > 0 ? ',' : '') + JSON.stringify(describe(item, index));
    index++;
  }
  yield '],';
}

/** Minimum length of a chunk of the answer, except the last. */
const CHUNK_CHARS = 64 * 1024;

/** A failure of `text` aborts the stream, so that a client never takes an incomplete answer for a complete one. */
export function byteStream(text: AsyncIterable<string>): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  const iterator = text[Symbol.asyncIterator]();
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      let chunk = '';
      while (chunk.length < CHUNK_CHARS) {
        const next = await iterator.next();
        if (next.done) {
          if (chunk !== '') controller.enqueue(encoder.encode(chunk));
          return controller.close();
        }
        chunk += next.value;
      }
      controller.enqueue(encoder.encode(chunk));
    },
    async cancel() {
      await iterator.return?.();
    },
  });
}
