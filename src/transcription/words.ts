import { type EngineAnswer, joined, overlapSeconds, type Span, SpanWalk, type TimedText, type Word } from './spans.ts';

/** Tolerance for times outside the audio: some engines round to windows of whole seconds. */
const TIME_SLACK_SECONDS = 1;
/** Maximum distance at which the next word is searched in the text. */
const MAX_LOOKAHEAD_CHARS = 60;

/** Scripts without white space between words. */
const UNSPACED =
  /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]/u;

interface TimedWords {
  readonly words: Word[];
  /** Whether the engine returned no usable word times, so that the words are spread over the speech. */
  readonly isSpread: boolean;
}

/**
 * The words of an engine's answer with their times. If the engine returns no times, or impossible ones, the words of a
 * segment are spread over its speech in proportion to their length.
 *
 * @param lengthSeconds duration of the audio that was sent
 * @param speech speech spans, relative to the start of that audio
 */
export function timedWords(answer: EngineAnswer, lengthSeconds: number, speech: readonly Span[]): TimedWords {
  const words = answer.words.filter(({ text }) => text.trim() !== '');
  if (words.length > 0 && areTimesUsable(words, lengthSeconds)) {
    return { words: withPunctuation(words, answer.text), isSpread: false };
  }
  const segments = answer.segments.filter(({ text }) => text.trim() !== '');
  const whole = [{ startSeconds: 0, endSeconds: lengthSeconds, text: answer.text }];
  const spread = segments.length > 0 && areTimesUsable(segments, lengthSeconds) ? segments : whole;
  const spans = joined(speech);
  return { words: spread.flatMap((segment) => spreadOver(segment, spans)), isSpread: true };
}

function areTimesUsable(texts: readonly TimedText[], lengthSeconds: number): boolean {
  let last = Number.NEGATIVE_INFINITY;
  for (const { startSeconds, endSeconds } of texts) {
    const isInside = startSeconds >= -TIME_SLACK_SECONDS && endSeconds <= lengthSeconds + TIME_SLACK_SECONDS;
    if (!isInside || !(endSeconds >= startSeconds) || startSeconds < last - TIME_SLACK_SECONDS) return false;
    last = startSeconds;
  }
  return true;
}

/**
 * Adds the punctuation of the text to the words; OpenAI's whisper-1, for example, returns words without it. Between two
 * words, characters before the white space are added to the first word, characters after it to the second.
 */
function withPunctuation(words: readonly TimedText[], text: string): Word[] {
  const lower = foldedCase(text);
  const found: { start: number; end: number }[] = [];
  let at = 0;
  for (const word of words) {
    const core = foldedCase(word.text.trim().replace(/^[^\p{L}\p{N}]+|[^\p{L}\p{N}]+$/gu, ''));
    const start = core === '' ? -1 : lower.indexOf(core, at);
    if (start < 0 || start - at > MAX_LOOKAHEAD_CHARS) {
      found.push({ start: -1, end: -1 });
    } else {
      at = start + core.length;
      found.push({ start, end: at });
    }
  }
  return words.map(({ startSeconds, endSeconds, text: plain }, index) => {
    const { start, end } = found[index];
    if (start < 0) return { startSeconds, endSeconds, text: plain.trim(), isSpaced: !UNSPACED.test(plain) };
    const previous = found[index - 1]?.end;
    const next = found[index + 1]?.start;
    // Next to a word that was not found in the text, no punctuation is added.
    const before = previous === undefined ? text.slice(0, start) : previous < 0 ? ' ' : text.slice(previous, start);
    const after = next === undefined ? text.slice(end) : next < 0 ? '' : text.slice(end, next);
    const prefix = /\s/.test(before) || index === 0 ? before.replace(/^.*\s/su, '') : '';
    const suffix = after.replace(/\s.*$/su, '');
    const isSpaced = index === 0 ? !UNSPACED.test(plain) : /\s/.test(before);
    return { startSeconds, endSeconds, text: prefix + text.slice(start, end) + suffix, isSpaced };
  });
}

/** Lower case, if that keeps the positions of the characters. */
function foldedCase(text: string): string {
  const lower = text.toLowerCase();
  return lower.length === text.length ? lower : text;
}

/** Splits a text without times into words. */
function wordsOf(text: string): { text: string; isSpaced: boolean }[] {
  const words: { text: string; isSpaced: boolean }[] = [];
  for (const token of text.trim().split(/\s+/)) {
    if (!UNSPACED.test(token)) {
      words.push({ text: token, isSpaced: true });
      continue;
    }
    let isFirst = true;
    for (const { segment, isWordLike } of new Intl.Segmenter(undefined, { granularity: 'word' }).segment(token)) {
      const last = words.at(-1);
      // Punctuation belongs to the word before it.
      if (!isWordLike && !isFirst && last) last.text += segment;
      else words.push({ text: segment, isSpaced: isFirst && words.length > 0 });
      isFirst = false;
    }
  }
  return words.filter(({ text: word }) => word !== '');
}

/**
 * Spreads the words of a segment over its speech in proportion to their length, or over the whole segment if it
 * contains no speech.
 */
function spreadOver(segment: TimedText, speech: readonly Span[]): Word[] {
  const words = wordsOf(segment.text);
  const speechSpans = speech
    .map((span) => ({
      startSeconds: Math.max(span.startSeconds, segment.startSeconds),
      endSeconds: Math.min(span.endSeconds, segment.endSeconds),
    }))
    .filter(({ startSeconds, endSeconds }) => endSeconds > startSeconds);
  const spans = speechSpans.length > 0 ? speechSpans : [segment];
  const totalSeconds = spans.reduce((sum, { startSeconds, endSeconds }) => sum + endSeconds - startSeconds, 0);
  const lengths = words.map(({ text }) => text.length + 1);
  const totalLength = lengths.reduce((sum, length) => sum + length, 0);
  let before = 0;
  return words.map(({ text, isSpaced }, index) => {
    const from = (before / totalLength) * totalSeconds;
    before += lengths[index];
    const to = (before / totalLength) * totalSeconds;
    // A word does not extend over a pause.
    const start = placeIn(spans, from, 'start');
    const end = placeIn(spans, to, 'end');
    const middle = placeIn(spans, (from + to) / 2, 'end');
    const span =
      spans.find(({ startSeconds, endSeconds }) => startSeconds <= middle && middle <= endSeconds) ?? spans[0];
    return {
      startSeconds: Math.max(start, span.startSeconds),
      endSeconds: Math.min(end, span.endSeconds),
      text,
      isSpaced,
    };
  });
}

/**
 * The time at which `seconds` of the spans have passed. At the border of two spans: the end of the first or the start
 * of the second, depending on `side`.
 */
function placeIn(spans: readonly Span[], seconds: number, side: 'start' | 'end'): number {
  let rest = seconds;
  for (const { startSeconds, endSeconds } of spans) {
    const length = endSeconds - startSeconds;
    if (side === 'start' ? rest < length : rest <= length) return startSeconds + Math.max(0, rest);
    rest -= length;
  }
  return spans[spans.length - 1].endSeconds;
}

/** Tolerance at the edges of turns. */
const TURN_SLACK_SECONDS = 0.25;
/** Maximum duration of a word; engines often stretch the last word over the following pause. */
const MAX_WORD_SECONDS = 2;
/** Minimum duration of a word. */
const MIN_WORD_SECONDS = 0.01;
/** Maximum number of words in a repeated phrase… */
const MAX_LOOP_WORDS = 8;
/** …and how often it may be repeated: people repeat a word a few times, a looping engine many times. */
const MAX_REPETITIONS = 6;

/**
 * Removes hallucinated words: those outside of speech, and the repetition loops that engines produce on silence and
 * noise. Words that are too long are shortened.
 *
 * @param words with times from the start of the recording, sorted by start
 * @param speech spans with speech of any speaker
 */
export function plausibleWords(words: readonly Word[], speech: readonly Span[], durationSeconds: number): Word[] {
  const walk = new SpanWalk(joined(speech));
  const spoken: Word[] = [];
  let last = 0;
  for (const word of words) {
    const spans = walk.near(word, TURN_SLACK_SECONDS);
    if (spans.length === 0) continue;
    const speechOfWord = spans.find((span) => overlapSeconds(span, word) > 0);
    const isLong = word.endSeconds - word.startSeconds > MAX_WORD_SECONDS;
    const begin = isLong && speechOfWord ? Math.max(word.startSeconds, speechOfWord.startSeconds) : word.startSeconds;
    const startSeconds = Math.min(Math.max(0, last, begin), durationSeconds - MIN_WORD_SECONDS);
    const end = Math.min(word.endSeconds, startSeconds + MAX_WORD_SECONDS, durationSeconds);
    spoken.push({ ...word, startSeconds, endSeconds: Math.max(end, startSeconds + MIN_WORD_SECONDS) });
    last = startSeconds;
  }
  return withoutLoops(spoken);
}

/** Keeps one repetition of each loop. */
function withoutLoops(words: readonly Word[]): Word[] {
  const keys = words.map(({ text }) => foldedCase(text).replace(/[^\p{L}\p{N}]/gu, ''));
  const kept: Word[] = [];
  for (let at = 0; at < words.length; ) {
    let skipped = 0;
    for (let size = 1; size <= MAX_LOOP_WORDS && skipped === 0; size++) {
      let end = at + size;
      while (end < keys.length && keys[end] === keys[end - size]) end++;
      const repetitions = Math.floor((end - at) / size);
      if (repetitions > MAX_REPETITIONS) {
        kept.push(...words.slice(at, at + size));
        skipped = repetitions * size;
      }
    }
    if (skipped === 0) kept.push(words[at]);
    at += Math.max(1, skipped);
  }
  return kept;
}
