import { oneWord } from './text.ts';

/** What RTTM calls a recording: the name in its path or address, without the ending and without white space. */
export function fileIdOf(fileOrUrl: string): string {
  const name = /^data:/i.test(fileOrUrl) ? '' : lastSegment(fileOrUrl);
  // No ending is longer, none has a space, and a date's last number is none.
  const stem = name.replace(/(?!^)\.(?=[a-z0-9]*[a-z])[a-z0-9]{1,5}$/i, '');
  return oneWord(stem) || 'audio';
}

function lastSegment(fileOrUrl: string): string {
  const isUrl = /^[a-z]+:\/\//i.test(fileOrUrl);
  const path = isUrl ? fileOrUrl.replace(/[?#].*$/s, '').replace(/^[a-z]+:\/\//i, '') : fileOrUrl;
  const segment = path.split(/[/\\]/).filter(Boolean).at(-1) ?? '';
  try {
    return isUrl ? decodeURIComponent(segment) : segment;
  } catch {
    return segment;
  }
}
