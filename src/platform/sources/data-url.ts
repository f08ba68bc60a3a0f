import { dataOf, MAX_DATA_URL_BYTES, readBase64 } from '../../contract/data-url.ts';
import { EMPTY, refuse, type SourceResult, tooLarge } from './errors.ts';

/** The bytes of a `data:` URL, base64 or percent-encoded, at most 8 MiB. */
export function decodeDataUrl(url: string): SourceResult<Uint8Array> {
  const data = dataOf(url);
  if (!data) return refuse('invalid_url', 'The data: URL has no data.');
  const decoded = data.isBase64
    ? fromBase64(url, data.from)
    : { ok: true as const, value: fromPercent(url, data.from) };
  if (!decoded.ok) return decoded;
  if (decoded.value.length === 0) return { ok: false, error: EMPTY };
  if (decoded.value.length > MAX_DATA_URL_BYTES) return { ok: false, error: tooLarge(MAX_DATA_URL_BYTES) };
  return decoded;
}

function fromBase64(url: string, from: number): SourceResult<Uint8Array> {
  const bytes = new Uint8Array(Math.ceil(((url.length - from) * 3) / 4));
  const read = readBase64(url, from, bytes);
  return read.ok ? { ok: true, value: bytes.subarray(0, read.bytes) } : refuse('invalid_url', read.message);
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
