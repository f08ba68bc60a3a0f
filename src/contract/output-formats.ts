/** Formats of a job's output, with their media types. */
export const OUTPUT_FORMATS = {
  json: 'application/json',
  rttm: 'text/plain; charset=utf-8',
  srt: 'application/x-subrip; charset=utf-8',
  vtt: 'text/vtt; charset=utf-8',
  csv: 'text/csv; charset=utf-8',
  txt: 'text/plain; charset=utf-8',
  audacity: 'text/plain; charset=utf-8',
  textgrid: 'text/plain; charset=utf-8',
  eaf: 'application/xml; charset=utf-8',
  pyannote: 'application/json',
  diarized_json: 'application/json',
} as const;
export type OutputFormat = keyof typeof OUTPUT_FORMATS;

const ENDINGS: Partial<Record<OutputFormat, string>> = {
  audacity: 'txt',
  textgrid: 'TextGrid',
  pyannote: 'json',
  diarized_json: 'json',
};

/** File name extension of a format. */
export const endingOf = (format: OutputFormat): string => ENDINGS[format] ?? format;

export const OUTPUT_FORMAT_NAMES = Object.keys(OUTPUT_FORMATS) as OutputFormat[];

/** @returns undefined for an unknown name */
export function outputFormat(name: string): OutputFormat | undefined {
  return OUTPUT_FORMAT_NAMES.find((known) => known === name);
}
