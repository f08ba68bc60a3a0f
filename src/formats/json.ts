import { oneWord } from './text.ts';
import type { TurnWriter } from './types.ts';

/** What `pyannote.core` 4 writes and reads as the JSON of an `Annotation`. */
export function pyannoteAnnotation(fileId: string): TurnWriter {
  return {
    head: `{"pyannote":"Annotation","uri":${JSON.stringify(oneWord(fileId))},"content":[`,
    line({ start, end, speaker }, index) {
      // Two turns may have the same times, so that each has a track of its own.
      const record = { segment: { start, end }, track: `T${index}`, label: speaker };
      return `${index > 0 ? ',' : ''}\n${JSON.stringify(record)}`;
    },
    tail: () => [']}\n'],
  };
}

/**
 * The `diarized_json` of OpenAI's transcriptions, with the labels of this output; `text` is empty where nothing was
 * transcribed. Its members come in the order in which they are known.
 */
export function diarizedJson(durationSeconds: number | undefined): TurnWriter {
  const texts: string[] = [];
  let lastSeconds = 0;
  return {
    head: '{"task":"transcribe","segments":[',
    line({ start, end, speaker, text = '' }, index) {
      if (text !== '') texts.push(text);
      lastSeconds = Math.max(lastSeconds, end);
      const id = `seg_${String(index + 1).padStart(3, '0')}`;
      const segment = { type: 'transcript.text.segment', id, start, end, speaker, text };
      return `${index > 0 ? ',' : ''}\n${JSON.stringify(segment)}`;
    },
    tail() {
      const duration = Math.round((durationSeconds ?? lastSeconds) * 1000) / 1000;
      const usage = { type: 'duration', seconds: Math.ceil(duration) };
      return [`],"text":${JSON.stringify(texts.join(' '))},"duration":${duration},"usage":${JSON.stringify(usage)}}\n`];
    },
  };
}
