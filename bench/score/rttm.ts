/** One stretch of one speaker, in whole microseconds, so that sums over a file are exact. */
export interface LabelledSegment {
  readonly speaker: string;
  readonly startMicros: number;
  readonly endMicros: number;
}

const MICROS_PER_SECOND = 1_000_000;

/** Seconds to whole microseconds, rounded to the nearest. */
export function toMicros(seconds: number): number {
  return Math.round(seconds * MICROS_PER_SECOND);
}

/** Turns of a result (seconds) as segments. Empty ones are left out. */
export function segmentsFromTurns(
  turns: Iterable<{ readonly speaker: string | number; readonly start: number; readonly end: number }>,
): LabelledSegment[] {
  const segments: LabelledSegment[] = [];
  for (const turn of turns) {
    const startMicros = toMicros(turn.start);
    const endMicros = toMicros(turn.end);
    if (endMicros > startMicros) segments.push({ speaker: String(turn.speaker), startMicros, endMicros });
  }
  return segments;
}

/**
 * Reads NIST RTTM text. Only SPEAKER lines count; `;;` starts a comment; segments without a length are left out.
 *
 * @returns segments by file id, in the order of the lines
 * @throws Error naming the line that is not RTTM
 */
export function parseRttm(text: string): Map<string, LabelledSegment[]> {
  const files = new Map<string, LabelledSegment[]>();
  for (const [index, rawLine] of text.split(/\r?\n/).entries()) {
    const line = rawLine.trim();
    if (line === '' || line.startsWith(';;')) continue;
    const fields = line.split(/\s+/);
    if (fields[0] !== 'SPEAKER') continue;
    const fileId = fields[1];
    const startSeconds = Number(fields[3]);
    const durationSeconds = Number(fields[4]);
    const speaker = fields[7];
    if (fileId === undefined || speaker === undefined) throw new Error(`RTTM line ${index + 1} is too short: ${line}`);
    if (!Number.isFinite(startSeconds) || !Number.isFinite(durationSeconds) || durationSeconds < 0) {
      throw new Error(`RTTM line ${index + 1} has no usable times: ${line}`);
    }
    const segments = files.get(fileId) ?? [];
    files.set(fileId, segments);
    const startMicros = toMicros(startSeconds);
    const endMicros = toMicros(startSeconds + durationSeconds);
    if (endMicros > startMicros) segments.push({ speaker, startMicros, endMicros });
  }
  return files;
}

/**
 * The segments of an RTTM text that describes one recording.
 *
 * @throws Error when the text describes more than one file
 */
export function parseSingleFileRttm(text: string): LabelledSegment[] {
  const files = parseRttm(text);
  if (files.size > 1) throw new Error(`expected one file in the RTTM, found ${[...files.keys()].join(', ')}`);
  return [...files.values()][0] ?? [];
}
