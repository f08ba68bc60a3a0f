import { oneLabel, oneLine } from './text.ts';
import type { Line, TurnWriter } from './types.ts';

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
