import { oneLabel, oneLine } from './text.ts';
import type { TurnWriter } from './types.ts';

/** SubRip: numbered cues; `[SPEAKER_00]`, followed by what was said. */
export const SRT: TurnWriter = {
  head: '',
  line({ start, end, speaker, text }, index) {
    const cue = `[${srtText(oneLabel(speaker))}]${text === undefined ? '' : ` ${srtText(text)}`}`;
    return `${index > 0 ? '\n' : ''}${index + 1}\n${clock(start, ',')} --> ${clock(end, ',')}\n${cue}\n`;
  },
};

/** WebVTT with voice spans; the speaker's name is shown where nothing else is to be. */
export const VTT: TurnWriter = {
  head: 'WEBVTT\n',
  line({ start, end, speaker, text }) {
    const label = escapeMarkup(oneLabel(speaker));
    const said = text === undefined ? label : escapeMarkup(text);
    // With the end of the tag, dashes would be an arrow, and the cue a line of times; white space there is none of the
    // name's.
    const name = label.endsWith('--') ? `${label} ` : label;
    return `\n${clock(start, '.')} --> ${clock(end, '.')}\n<v ${name}>${said}</v>\n`;
  },
};

/** SubRip of what was said alone, as speech-to-text services write it. */
export const PLAIN_SRT: TurnWriter = {
  head: '',
  line: ({ start, end, text = '' }, index) =>
    `${index > 0 ? '\n' : ''}${index + 1}\n${clock(start, ',')} --> ${clock(end, ',')}\n${srtText(text)}\n`,
};

/** WebVTT of what was said alone. */
export const PLAIN_VTT: TurnWriter = {
  head: 'WEBVTT\n',
  line: ({ start, end, text = '' }) => `\n${clock(start, '.')} --> ${clock(end, '.')}\n${escapeMarkup(text)}\n`,
};

/** HH:MM:SS and milliseconds after the given mark. */
function clock(seconds: number, mark: ',' | '.'): string {
  const totalMs = Math.round(seconds * 1000);
  const two = (value: number): string => String(Math.floor(value)).padStart(2, '0');
  const whole = `${two(totalMs / 3_600_000)}:${two((totalMs / 60_000) % 60)}:${two((totalMs / 1000) % 60)}`;
  return `${whole}${mark}${String(totalMs % 1000).padStart(3, '0')}`;
}

/**
 * SubRip knows no escapes: an arrow in a text would be taken for a line of times. Only from their first are dashes
 * looked at: else a long run would be tried from each of them.
 */
function srtText(text: string): string {
  return oneLine(text).replace(/(?<!-)-{2,}>/g, '->');
}

function escapeMarkup(text: string): string {
  return oneLine(text).replace(/&/g, '&amp;').replace(/</g, '&lt;').replace(/>/g, '&gt;');
}
