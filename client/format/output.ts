import { type Line, TURN_FORMATS } from '../../src/formats/turn-text.ts';
import { listToShow, type Match, VOICEPRINTS, writeTurns } from '../../src/formats/writer.ts';
import type { Turn } from '../sdk/types.ts';

export { fileIdOf } from '../../src/formats/turn-text.ts';

/** The command's `text` is the service's `txt`. */
export const FORMATS = ['text', 'json', ...TURN_FORMATS.filter((name) => name !== 'txt')] as const;
export type Format = (typeof FORMATS)[number];

/** Fields that outputs of diarize and identify jobs share. */
export type ShownOutput = {
  readonly diarization: readonly Turn[];
  readonly exclusiveDiarization?: readonly Turn[];
};

/**
 * Writes a job's output in one of the formats. All except `json` contain only the turns, and the exclusive turns if the
 * output has them.
 *
 * @param fileId name of the recording in RTTM
 * @returns text that ends with a line break; empty without turns
 */
export function formatOutput(output: ShownOutput, format: Format, fileId: string): string {
  if (format === 'json') return formatJson(output);
  const name = format === 'text' ? 'txt' : format;
  const members: Readonly<Record<string, unknown>> = output;
  const list = listToShow(name, (member) => members[member] !== undefined) ?? 'diarization';
  const matches = members[VOICEPRINTS] as readonly Match[] | undefined;
  return writeTurns(members[list] as readonly Line[], name, list, fileId, matches);
}

/** Writes JSON with a line for each turn, but not for each number of the lists of frames. */
function formatJson(output: ShownOutput): string {
  const members = Object.entries(output).map(([key, value]) => {
    const isList = Array.isArray(value) && value.length > 0;
    const text = isList
      ? `[\n${value.map((item) => `    ${JSON.stringify(item)}`).join(',\n')}\n  ]`
      : JSON.stringify(value);
    return `  ${JSON.stringify(key)}: ${text}`;
  });
  return `{\n${members.join(',\n')}\n}\n`;
}
