import { type Line, oneLabel, oneLine, oneWord, type TurnWriter } from './turn-text.ts';

/** NIST Rich Transcription Time Marked: type, file, channel, start, duration, then the speaker among `<NA>` columns. */
export function rttm(fileId: string): TurnWriter {
  const file = oneWord(fileId);
  return {
    head: '',
    line({ start, end, speaker, channel = 0 }) {
      // From whole milliseconds: the difference of two doubles may round differently.
      const durationMs = Math.round(end * 1000) - Math.round(start * 1000);
      const duration = (durationMs / 1000).toFixed(3);
      return `SPEAKER ${file} ${channel + 1} ${start.toFixed(3)} ${duration} <NA> <NA> ${oneWord(speaker)} <NA> <NA>\n`;
    },
  };
}

/** `start  end  speaker  text`, separated by two spaces; seconds with three decimals, text if there is any. */
export const TXT: TurnWriter = {
  head: '',
  line({ start, end, speaker, text }) {
    const columns = [
      start.toFixed(3),
      end.toFixed(3),
      oneLabel(speaker),
      ...(text === undefined ? [] : [oneLine(text)]),
    ];
    return `${columns.join('  ')}\n`;
  },
};

/** Comma-separated with a header, quoted as in RFC 4180. Text like a formula gets an apostrophe before it. */
export function csv(withText: boolean): TurnWriter {
  return {
    head: `start,end,speaker${withText ? ',text' : ''}\n`,
    line({ start, end, speaker, text }) {
      const row = [start.toFixed(3), end.toFixed(3), csvField(speaker), ...(withText ? [csvField(text ?? '')] : [])];
      return `${row.join(',')}\n`;
    },
  };
}

/** A spreadsheet may ignore white space and line breaks before a formula. */
function csvField(text: string): string {
  const escaped = /^[\s\p{Cc}]*[=+\-@]|^[\t\r\n]/u.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(escaped) ? `"${escaped.replaceAll('"', '""')}"` : escaped;
}

/** Label track of Audacity: start, end and label, separated by tabs. The label is the speaker, then the text. */
export const AUDACITY: TurnWriter = {
  head: '',
  line({ start, end, speaker, text }) {
    const label = oneLabel(speaker);
    const content = text === undefined ? label : `${label}: ${oneLine(text)}`;
    return `${start.toFixed(3)}\t${end.toFixed(3)}\t${content}\n`;
  },
};

/** SubRip: numbered cues, `[SPEAKER_00]` followed by the text. */
export const SRT: TurnWriter = {
  head: '',
  line({ start, end, speaker, text }, index) {
    const cue = `[${srtText(oneLabel(speaker))}]${text === undefined ? '' : ` ${srtText(text)}`}`;
    return `${index > 0 ? '\n' : ''}${index + 1}\n${clock(start, ',')} --> ${clock(end, ',')}\n${cue}\n`;
  },
};

/** WebVTT with voice spans; a cue without text shows the speaker's name. */
export const VTT: TurnWriter = {
  head: 'WEBVTT\n',
  line({ start, end, speaker, text }) {
    const label = escapeMarkup(oneLabel(speaker));
    const content = text === undefined ? label : escapeMarkup(text);
    // Dashes before the end of the tag would form an arrow, and make the cue a line of times. Parsers trim the space.
    const name = label.endsWith('--') ? `${label} ` : label;
    return `\n${clock(start, '.')} --> ${clock(end, '.')}\n<v ${name}>${content}</v>\n`;
  },
};

/** SubRip of the text without speakers, as speech-to-text services write it. */
export const PLAIN_SRT: TurnWriter = {
  head: '',
  line: ({ start, end, text = '' }, index) =>
    `${index > 0 ? '\n' : ''}${index + 1}\n${clock(start, ',')} --> ${clock(end, ',')}\n${srtText(text)}\n`,
};

/** WebVTT of the text without speakers. */
export const PLAIN_VTT: TurnWriter = {
  head: 'WEBVTT\n',
  line: ({ start, end, text = '' }) => `\n${clock(start, '.')} --> ${clock(end, '.')}\n${escapeMarkup(text)}\n`,
};

/** HH:MM:SS, the decimal mark, and milliseconds. */
function clock(seconds: number, mark: ',' | '.'): string {
  const totalMs = Math.round(seconds * 1000);
  const two = (value: number): string => String(Math.floor(value)).padStart(2, '0');
  const whole = `${two(totalMs / 3_600_000)}:${two((totalMs / 60_000) % 60)}:${two((totalMs / 1000) % 60)}`;
  return `${whole}${mark}${String(totalMs % 1000).padStart(3, '0')}`;
}

/**
 * SubRip has no escapes, and an arrow in a text would look like a line of times. The lookbehind lets a match start only
 * at the first dash of a run: otherwise the time would be quadratic in the length of the run.
 */
function srtText(text: string): string {
  return oneLine(text).replace(/(?<!-)-{2,}>/g, '->');
}

function escapeMarkup(text: string): string {
  return oneLine(text).replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;');
}

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

/** Interval of a tier, in whole milliseconds, and its text. */
interface Interval {
  readonly startMs: number;
  readonly endMs: number;
  readonly text: string;
}

/** Intervals by speaker, in order of first appearance. The intervals of a speaker are sorted and do not overlap. */
type Tiers = ReadonlyMap<string, readonly Interval[]>;

/** Collects the turns by speaker, because these formats state counts or times before the first turn. */
function tierWriter(write: (tiers: Tiers, lastMs: number) => Iterable<string>): TurnWriter {
  const tiers = new Map<string, Interval[]>();
  let lastMs = 0;
  return {
    head: '',
    line({ start, end, speaker, text }: Line) {
      const label = oneLabel(speaker);
      const intervals = tiers.get(label) ?? [];
      tiers.set(label, intervals);
      // Two turns of a transcript may overlap by a word.
      const startMs = Math.max(Math.round(start * 1000), intervals.at(-1)?.endMs ?? 0);
      const endMs = Math.round(end * 1000);
      lastMs = Math.max(lastMs, endMs);
      if (startMs < endMs) intervals.push({ startMs, endMs, text: text === undefined ? label : oneLine(text) });
      return '';
    },
    tail: () => write(tiers, lastMs),
  };
}

/**
 * Praat's long text format: one tier per speaker, silence as intervals without text.
 *
 * @param durationSeconds of the recording; undefined if unknown: the tiers then end with the last turn
 */
export function textGrid(durationSeconds: number | undefined): TurnWriter {
  return tierWriter(function* (tiers, lastMs) {
    const endMs = Math.max(lastMs, Math.round((durationSeconds ?? 0) * 1000));
    yield `File type = "ooTextFile"\nObject class = "TextGrid"\n\nxmin = 0\nxmax = ${seconds(endMs)}\n`;
    if (tiers.size === 0) {
      yield 'tiers? <absent>\n';
      return;
    }
    yield `tiers? <exists>\nsize = ${tiers.size}\nitem []:\n`;
    let tier = 0;
    for (const [label, intervals] of tiers) {
      const filled = withSilence(intervals, endMs);
      yield `    item [${++tier}]:\n        class = "IntervalTier"\n        name = ${quoted(label)}\n` +
        `        xmin = 0\n        xmax = ${seconds(endMs)}\n        intervals: size = ${filled.length}\n`;
      for (const [index, { startMs, endMs: until, text }] of filled.entries()) {
        yield `        intervals [${index + 1}]:\n            xmin = ${seconds(startMs)}\n` +
          `            xmax = ${seconds(until)}\n            text = ${quoted(text)}\n`;
      }
    }
  });
}

function withSilence(intervals: readonly Interval[], endMs: number): Interval[] {
  const filled: Interval[] = [];
  let atMs = 0;
  for (const interval of intervals) {
    if (interval.startMs > atMs) filled.push({ startMs: atMs, endMs: interval.startMs, text: '' });
    filled.push(interval);
    atMs = interval.endMs;
  }
  if (atMs < endMs) filled.push({ startMs: atMs, endMs, text: '' });
  return filled;
}

const seconds = (ms: number): string => String(ms / 1000);
const quoted = (text: string): string => `"${text.replaceAll('"', '""')}"`;

/** ELAN annotation format: one tier per speaker. It names no media file, because the reader's path is unknown. */
export function eaf(): TurnWriter {
  return tierWriter(function* (tiers) {
    // The schema wants a date; a fixed one keeps equal outputs equal.
    yield '<?xml version="1.0" encoding="UTF-8"?>\n' +
      '<ANNOTATION_DOCUMENT AUTHOR="" DATE="1970-01-01T00:00:00+00:00" FORMAT="3.0" VERSION="3.0" ' +
      'xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" ' +
      'xsi:noNamespaceSchemaLocation="http://www.mpi.nl/tools/elan/EAFv3.0.xsd">\n' +
      '  <HEADER MEDIA_FILE="" TIME_UNITS="milliseconds"/>\n  <TIME_ORDER>\n';
    let slot = 0;
    for (const { startMs, endMs } of [...tiers.values()].flat()) {
      yield `    <TIME_SLOT TIME_SLOT_ID="ts${++slot}" TIME_VALUE="${startMs}"/>\n` +
        `    <TIME_SLOT TIME_SLOT_ID="ts${++slot}" TIME_VALUE="${endMs}"/>\n`;
    }
    yield '  </TIME_ORDER>\n';
    let annotation = 0;
    for (const [label, intervals] of tiers) {
      const name = xml(label);
      yield `  <TIER LINGUISTIC_TYPE_REF="default-lt" PARTICIPANT="${name}" TIER_ID="${name}">\n`;
      for (const { text } of intervals) {
        annotation++;
        yield `    <ANNOTATION><ALIGNABLE_ANNOTATION ANNOTATION_ID="a${annotation}" ` +
          `TIME_SLOT_REF1="ts${2 * annotation - 1}" TIME_SLOT_REF2="ts${2 * annotation}">` +
          `<ANNOTATION_VALUE>${xml(text)}</ANNOTATION_VALUE></ALIGNABLE_ANNOTATION></ANNOTATION>\n`;
      }
      yield '  </TIER>\n';
    }
    yield '  <LINGUISTIC_TYPE GRAPHIC_REFERENCES="false" LINGUISTIC_TYPE_ID="default-lt" TIME_ALIGNABLE="true"/>\n' +
      '</ANNOTATION_DOCUMENT>\n';
  });
}

/** Escapes a text. `oneLine` has removed control characters; these are the other two that XML forbids. */
function xml(text: string): string {
  return text
    .replace(/[\uFFFE\uFFFF]/g, '\uFFFD')
    .replace(/&/g, '&amp;')
    .replace(/</g, '&lt;')
    .replace(/>/g, '&gt;')
    .replace(/"/g, '&quot;');
}
