/** Maximum number of decoded bytes of a `data:` URL. */
export const MAX_DATA_URL_BYTES = 8 * 1024 * 1024;

/** Whether an address contains the recording itself (RFC 2397). Schemes are case-insensitive (RFC 3986 §3.1). */
export function isDataUrl(url: string): boolean {
  return /^data:/i.test(url);
}

/** Start and encoding of the data of a `data:` URL; undefined for a URL without a comma. */
export function dataOf(url: string): { readonly from: number; readonly isBase64: boolean } | undefined {
  const comma = url.indexOf(',');
  return comma < 0 ? undefined : { from: comma + 1, isBase64: BASE64_MARK.test(url.slice(0, comma)) };
}

/**
 * The fault of a `data:` URL as a sentence; undefined if it decodes to between one byte and 8 MiB. Reads each character
 * once and stores nothing, so that the bound of the request's body also bounds the work.
 */
export function dataUrlFault(url: string): string | undefined {
  const data = dataOf(url);
  if (!data || data.from === url.length) return NO_DATA;
  const read = data.isBase64 ? readBase64(url, data.from) : { ok: true as const, bytes: percentBytes(url, data.from) };
  if (!read.ok) return read.message;
  if (read.bytes === 0) return NO_DATA;
  return read.bytes > MAX_DATA_URL_BYTES ? 'The data: URL has more than 8 MiB.' : undefined;
}

export type Base64Read =
  | { readonly ok: true; readonly bytes: number }
  | { readonly ok: false; readonly message: string };

/**
 * Reads base64 from an index to the end of a text: the standard and the URL-safe alphabet, padded or not, with percent
 * escapes and white space as some clients write them. Hand-written, because `atob` would make two more copies as text.
 *
 * @param into receives the bytes; without it they are only counted
 */
export function readBase64(text: string, from: number, into?: Uint8Array): Base64Read {
  const plain = into ? null : PLAIN_BASE64.exec(text.slice(from));
  return plain ? ending((plain[1] ?? '').length) : new Base64Reader(text, from, into).read(text.length);
}

/** Base64 without escapes and white space: a pattern checks it in a tenth of the time. */
const PLAIN_BASE64 = /^([A-Za-z0-9+/_-]*)=*$/;

/** @param count characters that are neither padding nor white space */
function ending(count: number): Base64Read {
  if (count % 4 === 1) return notBase64('its data end in the middle of a byte');
  return { ok: true, bytes: Math.floor((count * 3) / 4) };
}

/** `readBase64` in steps: a large text takes some hundred milliseconds, which would block other requests. */
export class Base64Reader {
  #next: number;
  #bits = 0;
  #count = 0;
  #isPadded = false;

  constructor(
    private readonly text: string,
    private readonly from: number,
    private readonly into?: Uint8Array,
  ) {
    this.#next = from;
  }

  /**
   * Continues up to that index, or slightly further.
   *
   * @returns the number of bytes so far; a fault is final
   */
  read(to: number): Base64Read {
    const { text, from, into } = this;
    let [bits, count, isPadded, i] = [this.#bits, this.#count, this.#isPadded, this.#next];
    for (; i < to; i++) {
      const at = i;
      let code = text.charCodeAt(i);
      if (code === PERCENT) {
        code = 16 * hexDigit(text.charCodeAt(i + 1)) + hexDigit(text.charCodeAt(i + 2));
        i += 2;
      }
      if (code === 0x20 || (code >= 9 && code <= 13)) continue;
      if (code === PAD) {
        isPadded = true;
        continue;
      }
      const value = BASE64_VALUES[code] ?? -1;
      if (value < 0 || isPadded) return notBase64(`character ${at - from + 1} of its data does not belong there`);
      bits = ((bits << 6) | value) & 0xffffff;
      if (++count % 4 !== 0) continue;
      if (into) {
        const end = (count / 4) * 3;
        into[end - 3] = bits >> 16;
        into[end - 2] = bits >> 8;
        into[end - 1] = bits;
      }
    }
    [this.#bits, this.#count, this.#isPadded, this.#next] = [bits, count, isPadded, i];
    if (i < text.length) return { ok: true, bytes: Math.floor(count / 4) * 3 };
    const length = Math.floor(count / 4) * 3;
    if (into && count % 4 === 2) into[length] = bits >> 4;
    if (into && count % 4 === 3) {
      into[length] = bits >> 10;
      into[length + 1] = bits >> 2;
    }
    return ending(count);
  }
}

const NO_DATA = 'The data: URL has no data after the comma.';
const BASE64_MARK = /;\s*base64\s*$/i;
const PERCENT = 0x25;
const PAD = 0x3d;

const BASE64_VALUES = (() => {
  const values = new Int8Array(128).fill(-1);
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
  for (let i = 0; i < 64; i++) values[alphabet.charCodeAt(i)] = i;
  values['-'.charCodeAt(0)] = 62;
  values['_'.charCodeAt(0)] = 63;
  return values;
})();

const notBase64 = (why: string): Base64Read => ({
  ok: false,
  message: `The data: URL is not correct base64: ${why}.`,
});

/** Value of a hex digit; NaN for any other character. */
export function hexDigit(code: number): number {
  if (code >= 0x30 && code <= 0x39) return code - 0x30;
  const letter = code | 0x20;
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x57 : Number.NaN;
}

/** Number of bytes of percent-encoded data; characters outside of escapes count as UTF-8. */
function percentBytes(text: string, from: number): number {
  let bytes = 0;
  for (let i = from; i < text.length; i++) {
    const code = text.charCodeAt(i);
    // A surrogate is half of a character of four bytes.
    bytes += code < 0x80 ? 1 : code < 0x800 || (code >= 0xd800 && code < 0xe000) ? 2 : 3;
    const isEscape = hexDigit(text.charCodeAt(i + 1)) >= 0 && hexDigit(text.charCodeAt(i + 2)) >= 0;
    if (code === PERCENT && isEscape) i += 2;
  }
  return bytes;
}
