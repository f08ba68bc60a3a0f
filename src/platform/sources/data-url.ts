import { MAX_DATA_URL_BYTES } from '../../jobs/url-policy.ts';
import { EMPTY, refuse, type SourceResult, tooLarge } from './errors.ts';

/** The bytes of a `data:` URL, base64 or percent-encoded, at most 8 MiB. */
export function decodeDataUrl(url: string): SourceResult<Uint8Array> {
  const comma = url.indexOf(',');
  if (comma < 0) return refuse('invalid_url', 'The data: URL has no data.');
  const isBase64 = /;\s*base64\s*$/i.test(url.slice(0, comma));
  const bytes = isBase64 ? fromBase64(url, comma + 1) : fromPercent(url, comma + 1);
  if (!bytes) return refuse('invalid_url', 'The data: URL is not correct base64.');
  if (bytes.length === 0) return { ok: false, error: EMPTY };
  if (bytes.length > MAX_DATA_URL_BYTES) return { ok: false, error: tooLarge(MAX_DATA_URL_BYTES) };
  return { ok: true, value: bytes };
}

const BASE64_VALUES = (() => {
  const values = new Int8Array(128).fill(-1);
  const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
  for (let i = 0; i < 64; i++) values[alphabet.charCodeAt(i)] = i;
  values['-'.charCodeAt(0)] = 62;
  values['_'.charCodeAt(0)] = 63;
  return values;
})();

/**
 * Standard and URL-safe alphabet, padded or not, with percent escapes and white space as some clients write them. Decoded
 * by hand: `atob` would make two more copies of the whole as text.
 */
function fromBase64(url: string, from: number): Uint8Array | undefined {
  const bytes = new Uint8Array(Math.ceil(((url.length - from) * 3) / 4));
  let length = 0;
  let bits = 0;
  let count = 0;
  let isPadded = false;
  for (let i = from; i < url.length; i++) {
    let code = url.charCodeAt(i);
    if (code === 0x25) {
      code = Number.parseInt(url.slice(i + 1, i + 3), 16);
      i += 2;
    }
    if (code === 0x20 || (code >= 9 && code <= 13)) continue;
    if (code === 0x3d) {
      isPadded = true;
      continue;
    }
    const value = code < 128 ? BASE64_VALUES[code] : -1;
    if (!(value >= 0) || isPadded) return undefined;
    bits = ((bits << 6) | value) & 0xffffff;
    count++;
    if (count % 4 === 0) {
      bytes[length++] = bits >> 16;
      bytes[length++] = (bits >> 8) & 0xff;
      bytes[length++] = bits & 0xff;
    }
  }
  const rest = count % 4;
  if (rest === 1) return undefined;
  if (rest === 2) bytes[length++] = (bits >> 4) & 0xff;
  if (rest === 3) {
    bytes[length++] = (bits >> 10) & 0xff;
    bytes[length++] = (bits >> 2) & 0xff;
  }
  return bytes.subarray(0, length);
}

function fromPercent(url: string, from: number): Uint8Array {
  const encoded = new TextEncoder().encode(url.slice(from));
  const bytes = new Uint8Array(encoded.length);
  let length = 0;
  for (let i = 0; i < encoded.length; i++) {
    const hex = String.fromCharCode(encoded[i + 1] ?? 0, encoded[i + 2] ?? 0);
    if (encoded[i] === 0x25 && /^[0-9a-f]{2}$/i.test(hex)) {
      bytes[length++] = Number.parseInt(hex, 16);
      i += 2;
    } else {
      bytes[length++] = encoded[i];
    }
  }
  return bytes.subarray(0, length);
}
