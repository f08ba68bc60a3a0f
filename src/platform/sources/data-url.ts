import { Base64Reader, dataOf, hexDigit, MAX_DATA_URL_BYTES } from '../../contract/data-url.ts';
import { EMPTY, refuse, type SourceResult, tooLarge } from './errors.ts';

/** Some ten milliseconds of work. */
const PIECE_CHARS = 512 * 1024;

/** The bytes of a `data:` URL, base64 or percent-encoded, at most 8 MiB. @param pause lets others run */
export async function decodeDataUrl(url: string, pause: () => Promise<void>): Promise<SourceResult<Uint8Array>> {
  const data = dataOf(url);
  if (!data) return refuse('invalid_url', 'The data: URL has no data.');
  const decoded = data.isBase64
    ? await fromBase64(url, data.from, pause)
    : { ok: true as const, value: await fromPercent(url, data.from, pause) };
  if (!decoded.ok) return decoded;
  if (decoded.value.length === 0) return { ok: false, error: EMPTY };
  if (decoded.value.length > MAX_DATA_URL_BYTES) return { ok: false, error: tooLarge(MAX_DATA_URL_BYTES) };
  return decoded;
}

async function fromBase64(url: string, from: number, pause: () => Promise<void>): Promise<SourceResult<Uint8Array>> {
  const bytes = new Uint8Array(Math.ceil(((url.length - from) * 3) / 4));
  const reader = new Base64Reader(url, from, bytes);
  for (let to = from; ; await pause()) {
    to = Math.min(to + PIECE_CHARS, url.length);
    const read = reader.read(to);
    if (!read.ok) return refuse('invalid_url', read.message);
    if (to === url.length) return { ok: true, value: bytes.subarray(0, read.bytes) };
  }
}

async function fromPercent(url: string, from: number, pause: () => Promise<void>): Promise<Uint8Array> {
  const encoded = new TextEncoder().encode(url.slice(from));
  const bytes = new Uint8Array(encoded.length);
  let length = 0;
  for (let i = 0; i < encoded.length; i++) {
    if (i % PIECE_CHARS === 0) await pause();
    const value =
      encoded[i] === PERCENT ? 16 * hexDigit(encoded[i + 1] ?? 0) + hexDigit(encoded[i + 2] ?? 0) : Number.NaN;
    if (value >= 0) i += 2;
    bytes[length++] = value >= 0 ? value : encoded[i];
  }
  return bytes.subarray(0, length);
}

const PERCENT = 0x25;
