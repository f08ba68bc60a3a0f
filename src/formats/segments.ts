import type { Line } from './types.ts';

/** Two lines of subtitles. */
const MAX_CHARS = 84;
const MAX_SECONDS = 10;
const PAUSE_SECONDS = 1;
const SENTENCE_END = /[.!?…。！？]["'”’»)\]]*$/;

type SpokenLine = Line & { readonly text: string };

/**
 * Turns cut into segments: after a sentence, at a pause, and before one would become too long for subtitles.
 *
 * @param turns lines of several words, with white space between the words where the language has any
 * @param words those of all turns, in the same order
 */
export async function* segmentsOf(
  turns: AsyncIterable<SpokenLine>,
  words: AsyncIterable<SpokenLine>,
): AsyncGenerator<SpokenLine> {
  const following = words[Symbol.asyncIterator]();
  try {
    for await (const turn of turns) {
      let segment: SpokenLine | undefined;
      for (let at = 0; at < turn.text.length; ) {
        const next = await following.next();
        if (next.done) break;
        const word = next.value;
        const space = turn.text[at] === ' ' ? ' ' : '';
        at += space.length + word.text.length;
        if (segment && belongs(word, segment)) {
          const end = Math.max(segment.end, word.end);
          segment = { ...segment, end, text: segment.text + space + word.text };
        } else {
          if (segment) yield segment;
          segment = word;
        }
      }
      if (segment) yield segment;
    }
  } finally {
    await following.return?.();
  }
}

function belongs(word: SpokenLine, { start, end, text }: SpokenLine): boolean {
  return (
    !SENTENCE_END.test(text) &&
    word.start - end < PAUSE_SECONDS &&
    word.end - start <= MAX_SECONDS &&
    text.length + word.text.length < MAX_CHARS
  );
}
