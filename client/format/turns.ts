import type { DiarizeOutput, Turn } from '../sdk/types.ts';

export const FORMATS = ['text', 'json', 'rttm', 'srt', 'vtt', 'csv'] as const;
export type Format = (typeof FORMATS)[number];

/** A turn with what was said in it, if that is known. */
export interface Line extends Turn {
  readonly text?: string;
}

/**
 * Writes a job's output in one of the formats; every format but `json` shows the turns alone, without overlap when the
 * output has `exclusiveDiarization`.
 *
 * @param fileId what RTTM calls the recording
 * @returns text that ends with a line break, or nothing when there are no turns to write
 */
export function formatOutput(output: DiarizeOutput, format: Format, fileId: string): string {
  if (format === 'json') return formatJson(output);
  const turns = output.exclusiveDiarization ?? output.diarization;
  if (format === 'rttm') return formatRttm(turns, fileId);
  const lines: readonly Line[] = output.turnLevelTranscription ?? turns;
  switch (format) {
    case 'text':
      return formatText(lines);
    case 'srt':
      return formatSrt(lines);
    case 'vtt':
      return formatVtt(lines);
    case 'csv':
      return formatCsv(lines);
  }
}

/** `start  end  speaker`, seconds with three decimals; what was said comes last. */
export function formatText(lines: readonly Line[]): string {
  return joinLines(
    lines.map(({ start, end, speaker, text }) => {
      const columns = [start.toFixed(3), end.toFixed(3), speaker, ...(text === undefined ? [] : [oneLine(text)])];
      return columns.join('  ');
    }),
  );
}

/** NIST Rich Transcription Time Marked: type, file, channel, start, duration, then the speaker among `<NA>` columns. */
export function formatRttm(turns: readonly Turn[], fileId: string): string {
  return joinLines(
    turns.map(({ start, end, speaker }) => {
      // From whole milliseconds: the difference of two doubles may round the other way.
      const durationMs = Math.round(end * 1000) - Math.round(start * 1000);
      return `SPEAKER ${fileId} 1 ${start.toFixed(3)} ${(durationMs / 1000).toFixed(3)} <NA> <NA> ${speaker} <NA> <NA>`;
    }),
  );
}

/** SubRip: numbered cues; `[SPEAKER_00]`, followed by what was said. */
export function formatSrt(lines: readonly Line[]): string {
  return lines
    .map(({ start, end, speaker, text }, index) => {
      const cue = `[${speaker}]${text === undefined ? '' : ` ${oneLine(text)}`}`;
      return `${index + 1}\n${clock(start, ',')} --> ${clock(end, ',')}\n${cue}\n`;
    })
    .join('\n');
}

/** WebVTT with voice spans. */
export function formatVtt(lines: readonly Line[]): string {
  const cues = lines.map(({ start, end, speaker, text }) => {
    const said = escapeMarkup(oneLine(text ?? speaker));
    return `\n${clock(start, '.')} --> ${clock(end, '.')}\n<v ${escapeMarkup(speaker)}>${said}</v>\n`;
  });
  return `WEBVTT\n${cues.join('')}`;
}

/** Comma-separated with a header, quoted as RFC 4180 says. */
export function formatCsv(lines: readonly Line[]): string {
  const withText = lines.some(({ text }) => text !== undefined);
  const rows = lines.map(({ start, end, speaker, text }) => {
    const row = [start.toFixed(3), end.toFixed(3), csvField(speaker)];
    return [...row, ...(withText ? [csvField(text ?? '')] : [])].join(',');
  });
  return [`start,end,speaker${withText ? ',text' : ''}`, ...rows].map((row) => `${row}\n`).join('');
}

/** The output as JSON, a turn a line: readable and yet not a line per number for the frame-wise lists. */
export function formatJson(output: DiarizeOutput): string {
  const members = Object.entries(output).map(([key, value]) => {
    const isList = Array.isArray(value) && value.length > 0;
    const text = isList
      ? `[\n${value.map((item) => `    ${JSON.stringify(item)}`).join(',\n')}\n  ]`
      : JSON.stringify(value);
    return `  ${JSON.stringify(key)}: ${text}`;
  });
  return `{\n${members.join(',\n')}\n}\n`;
}

/** RTTM id of a recording: its name without the ending; RTTM separates columns by spaces, so there can be none. */
export function fileIdOf(fileOrUrl: string): string {
  const name = fileOrUrl.startsWith('data:') ? '' : lastSegment(fileOrUrl);
  const stem = name.replace(/(?!^)\.[^.]*$/, '');
  return stem.replace(/\s+/g, '_') || 'audio';
}

function lastSegment(fileOrUrl: string): string {
  const isUrl = /^[a-z]+:\/\//i.test(fileOrUrl);
  const path = isUrl ? fileOrUrl.replace(/[?#].*$/, '').replace(/^[a-z]+:\/\//i, '') : fileOrUrl;
  const segment = path.split(/[/\\]/).filter(Boolean).at(-1) ?? '';
  try {
    return isUrl ? decodeURIComponent(segment) : segment;
  } catch {
    return segment;
  }
}

/** HH:MM:SS and milliseconds after the given mark. */
function clock(seconds: number, mark: ',' | '.'): string {
  const totalMs = Math.round(seconds * 1000);
  const two = (value: number): string => String(Math.floor(value)).padStart(2, '0');
  const whole = `${two(totalMs / 3_600_000)}:${two((totalMs / 60_000) % 60)}:${two((totalMs / 1000) % 60)}`;
  return `${whole}${mark}${String(totalMs % 1000).padStart(3, '0')}`;
}

function joinLines(lines: readonly string[]): string {
  return lines.map((line) => `${line}\n`).join('');
}

/** A blank line would end a cue. */
function oneLine(text: string): string {
  return text.replace(/\s+/g, ' ').trim();
}

function escapeMarkup(text: string): string {
  return text.replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;');
}

function csvField(text: string): string {
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
