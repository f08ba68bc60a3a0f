import { oneLabel, oneLine, oneWord } from './text.ts';
import type { TurnWriter } from './types.ts';

/** NIST Rich Transcription Time Marked: type, file, channel, start, duration, then the speaker among `<NA>` columns. */
export function rttm(fileId: string): TurnWriter {
  const file = oneWord(fileId);
  return {
    head: '',
    line({ start, end, speaker, channel = 0 }) {
      // From whole milliseconds: the difference of two doubles may round the other way.
      const durationMs = Math.round(end * 1000) - Math.round(start * 1000);
      const duration = (durationMs / 1000).toFixed(3);
      return `SPEAKER ${file} ${channel + 1} ${start.toFixed(3)} ${duration} <NA> <NA> ${oneWord(speaker)} <NA> <NA>\n`;
    },
  };
}

/** `start  end  speaker`, seconds with three decimals, two spaces between; what was said comes last. */
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

/** Comma-separated with a header, quoted as RFC 4180 says. What a spreadsheet would take for a formula begins with an apostrophe. */
export function csv(withText: boolean): TurnWriter {
  return {
    head: `start,end,speaker${withText ? ',text' : ''}\n`,
    line({ start, end, speaker, text }) {
      const row = [start.toFixed(3), end.toFixed(3), csvField(speaker), ...(withText ? [csvField(text ?? '')] : [])];
      return `${row.join(',')}\n`;
    },
  };
}

/** A spreadsheet may drop white space and line breaks before it looks for a formula. */
function csvField(text: string): string {
  const harmless = /^[\s\p{Cc}]*[=+\-@]|^[\t\r\n]/u.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(harmless) ? `"${harmless.replaceAll('"', '""')}"` : harmless;
}

/** Label track of Audacity: start, end and label, separated by tabs. The label is the speaker, then the text. */
export const AUDACITY: TurnWriter = {
  head: '',
  line({ start, end, speaker, text }) {
    const label = oneLabel(speaker);
    const said = text === undefined ? label : `${label}: ${oneLine(text)}`;
    return `${start.toFixed(3)}\t${end.toFixed(3)}\t${said}\n`;
  },
};
