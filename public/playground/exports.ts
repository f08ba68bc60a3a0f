import { type Format, fileIdOf, formatOutput } from '../../client/format/output.ts';
import { endingOf, OUTPUT_FORMATS, type OutputFormat } from '../../src/contract/output-formats.ts';
import { type EditedResult, namedOutput } from './edits.ts';
import { saveFile } from './page.ts';

const NAMES: Partial<Record<string, string>> = {
  json: 'JSON',
  rttm: 'RTTM',
  srt: 'SubRip (SRT)',
  vtt: 'WebVTT',
  csv: 'CSV',
  txt: 'Text',
  audacity: 'Audacity labels',
  textgrid: 'Praat TextGrid',
  eaf: 'ELAN (EAF)',
  pyannote: 'pyannote Annotation',
  diarized_json: 'OpenAI diarized_json',
};

/** Returns the name of a format in the list. */
export const formatName = (format: OutputFormat): string => NAMES[format] ?? format;

/** Formats the edited result with names, with the writers of the service. */
export function exportText(result: EditedResult, format: OutputFormat, recordingName: string): string {
  const name = (format === 'txt' ? 'text' : format) as Format;
  return formatOutput(namedOutput(result), name, fileIdOf(recordingName));
}

/** Saves the edited result as a file with the name of the recording. */
export function saveAs(result: EditedResult, format: OutputFormat, recordingName: string): void {
  const text = exportText(result, format, recordingName);
  saveFile(`${fileIdOf(recordingName)}.${endingOf(format)}`, OUTPUT_FORMATS[format], text);
}
