import { oneWord } from './text.ts';
import type { TurnWriter } from './types.ts';

/** JSON of an `Annotation`, as `pyannote.core` 4 writes and reads it. */
export function pyannoteAnnotation(fileId: string): TurnWriter {
  return {
    head: `{"pyannote":"Annotation","uri":${JSON.stringify(oneWord(fileId))},"content":[`,
    line({ start, end, speaker }, index) {
      // Two turns may have the same times: separate tracks keep both.
      const record = { segment: { start, end }, track: `T${index}`, label: speaker };
      return `${index > 0 ? ',' : ''}\n${JSON.stringify(record)}`;
    },
    tail: () => [']}\n'],
  };
}

/**
 * The `diarized_json` of OpenAI's transcriptions, with the labels of this output; `text` is empty without a
 * transcription. `text` and `duration` come last, because they are known after the last turn.
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
