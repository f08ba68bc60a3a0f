/** Facts in the headers of an answer. */

export interface ContentRange {
  readonly start: number;
  readonly end: number;
  /** undefined where the server does not say. */
  readonly total: number | undefined;
}

/** `bytes 0-99/1234`; undefined for anything that does not fit together. */
export function parseContentRange(value: string | null): ContentRange | undefined {
  const match = /^bytes\s+(\d{1,15})-(\d{1,15})\/(\d{1,15}|\*)$/i.exec(value?.trim() ?? '');
  if (!match) return undefined;
  const [start, end] = [Number(match[1]), Number(match[2])];
  const total = match[3] === '*' ? undefined : Number(match[3]);
  return start <= end && (total === undefined || end < total) ? { start, end, total } : undefined;
}

/** What pins a file: its strong entity tag, or else the time of its last change. */
export function validatorOf(headers: Headers): string | undefined {
  const tag = headers.get('ETag');
  if (tag !== null && /^"[^"]*"$/.test(tag)) return tag;
  return headers.get('Last-Modified') ?? undefined;
}

/** Whether an answer says that the file is no longer the pinned one; silence counts as the same. */
export function contradicts(headers: Headers, validator: string): boolean {
  const now = validator.startsWith('"') ? headers.get('ETag') : headers.get('Last-Modified');
  return now !== null && now !== validator;
}

export const isEncoded = (headers: Headers): boolean => !/^(identity)?$/i.test(headers.get('Content-Encoding') ?? '');

/** Declared length of the body, bytes; undefined where it is not that of the file. */
export function contentLength(headers: Headers): number | undefined {
  const value = headers.get('Content-Length');
  return value !== null && /^\d{1,15}$/.test(value) && !isEncoded(headers) ? Number(value) : undefined;
}

const RADIO_HEADERS = ['icy-name', 'icy-br', 'icy-pub', 'icy-genre', 'icy-url', 'icy-metaint'];

/** Whether an answer is a stream of an internet radio (Icecast, SHOUTcast): it names its station, and no length. */
export const isRadio = (headers: Headers): boolean =>
  !headers.has('Content-Length') && RADIO_HEADERS.some((name) => headers.has(name));
