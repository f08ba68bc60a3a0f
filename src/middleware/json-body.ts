import type { FieldError } from '../contract/errors.ts';
import { LimitedReader, type ReadLimits, Slots, TooSlow } from '../jobs/upload-bodies.ts';
import type { AppContext } from './context.ts';
import type { Refusal } from './refusals.ts';

/** Room for a `data:` URL of 8 MiB of audio (10.7 MiB in base64) and the other fields. */
const JSON_BODY_MAX_BYTES = 12 * 1024 * 1024;
/** The contract's deepest body has three levels; unknown fields may be deeper. */
export const JSON_MAX_DEPTH = 32;
/** Bounds the memory of a parsed body, which can be a multiple of its text. */
export const JSON_MAX_VALUES = 20_000;

export type JsonBody = { readonly ok: true; readonly value: unknown } | { readonly ok: false; readonly error: Refusal };

/**
 * Reads a request's JSON body. The order of the checks is the contract's: size (413), Content-Type (415), syntax (400).
 * The size is checked while reading, so that a body without a Content-Length is bounded, too. A body that grows beyond
 * a threshold waits for a slot in the isolate before reading continues, and keeps the slot until the answer.
 *
 * @param whenEmpty value of an empty body with any Content-Type; without it, an empty body is a fault
 */
export async function readJsonBody(c: AppContext, whenEmpty?: object): Promise<JsonBody> {
  const declaredBytes = Number(c.req.header('Content-Length') ?? 0);
  const tooLarge: JsonBody = { ok: false, error: { kind: 'body_too_large', maxBytes: JSON_BODY_MAX_BYTES } };
  if (declaredBytes > JSON_BODY_MAX_BYTES) return tooLarge;
  const bytes = await readBounded(c);
  if (bytes === 'too_large') return tooLarge;
  if (bytes === 'broken') return invalid('ended before all of it was sent');
  if (bytes === 'too_slow') return invalid(TOO_SLOW);
  if (bytes === 'no_place')
    return { ok: false, error: { kind: 'too_many_requests', retryAfterSeconds: RETRY_SECONDS } };
  // Some HTTP libraries send a type without a body: aiohttp sends application/octet-stream.
  if (bytes.length === 0 && whenEmpty) return { ok: true, value: whenEmpty };
  if (!isJsonLike(c.req.header('Content-Type'))) return { ok: false, error: { kind: 'media_type' } };
  if (bytes.length === 0) return invalid('is empty: send a JSON object');
  const parsed = parseJson(bytes);
  const coding = c.req.header('Content-Encoding')?.trim().toLowerCase() || 'identity';
  return parsed.ok || coding === 'identity' ? parsed : invalid('is encoded (Content-Encoding): send it as it is');
}

/** Whether a Content-Type is JSON, absent, or a default type that clients send with JSON by mistake. */
export function isJsonLike(contentType: string | undefined): boolean {
  const type = (contentType ?? '').split(';', 1)[0].trim().toLowerCase();
  return (
    type === '' ||
    type === 'application/json' ||
    type === 'text/plain' ||
    type === 'application/x-www-form-urlencoded' ||
    /^[a-z0-9!#$&^_.+-]+\/[a-z0-9!#$&^_.-]*\+json$/.test(type)
  );
}

function parseJson(bytes: Uint8Array): JsonBody {
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: false }).decode(bytes);
  } catch {
    return invalid('is not UTF-8 text');
  }
  const fault = structureFault(text);
  if (fault) return invalid(fault);
  try {
    return { ok: true, value: JSON.parse(text) };
  } catch {
    return invalid('is not valid JSON');
  }
}

function invalid(message: string): JsonBody {
  const errors: FieldError[] = [{ field: 'body', message }];
  return { ok: false, error: { kind: 'invalid', errors } };
}

const QUOTE = 0x22;
const COMMA = 0x2c;
const BACKSLASH = 0x5c;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;

/**
 * Finds a document that would need far more memory than its text, before it is parsed: a few megabytes of `[[[[` or
 * `{},{},` become hundreds. Strings are skipped.
 */
export function structureFault(text: string): string | undefined {
  let depth = 0;
  let values = 0;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code === QUOTE) {
      i = endOfString(text, i + 1);
    } else if (code === OPEN_BRACE || code === OPEN_BRACKET) {
      values++;
      if (++depth > JSON_MAX_DEPTH) return `is nested deeper than ${JSON_MAX_DEPTH} levels`;
    } else if (code === CLOSE_BRACE || code === CLOSE_BRACKET) {
      depth--;
    } else if (code === COMMA) {
      values++;
    }
    if (values > JSON_MAX_VALUES) return `has more than ${JSON_MAX_VALUES} values`;
  }
  return undefined;
}

/** Index of the quote that ends the string at `from`; the text's length if there is none. */
function endOfString(text: string, from: number): number {
  const quote = text.indexOf('"', from);
  if (quote === -1) return text.length;
  if (!text.slice(from, quote).includes('\\')) return quote;
  for (let i = from; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (code === BACKSLASH) i++;
    else if (code === QUOTE) return i;
  }
  return text.length;
}

const FIRST_BYTES = 16 * 1024;
/** Larger bodies need a slot; a thousand stalled senders of smaller ones hold 64 MB for a few seconds. */
const COUNTED_BYTES = 64 * 1024;
/** Larger bodies need one of the few `largeBodies` slots: only bodies with a recording are this large. */
const LARGE_BODY_BYTES = 1024 * 1024;
/** At most 16 MiB in total. */
const mediumBodies = new Slots({ slots: 16, perAccount: 4 });
/** One is parsed (about 35 MB) while the next one is received (12 MB), next to the memory of a job in the isolate. */
const largeBodies = new Slots({ slots: 2, perAccount: 1 });
const RETRY_SECONDS = 5;
/** For a whole body; a slot restarts the time. Enough for 8 MiB of audio at 1.5 Mbit/s. */
const READ_LIMITS = { pauseMs: 15_000, totalMs: 60_000 } satisfies ReadLimits;
const TOO_SLOW =
  `came too slowly: it has ${READ_LIMITS.totalMs / 1000} s, and no more than ${READ_LIMITS.pauseMs / 1000} s ` +
  'without a byte. Upload a recording (POST /v1/media/input) instead';

type Unread = 'too_large' | 'broken' | 'too_slow' | 'no_place';

/**
 * Reads the body into one buffer: each tiny chunk pins a 4 KB buffer, with which a slow sender could fill the isolate.
 */
async function readBounded(c: AppContext): Promise<Uint8Array | Unread> {
  const { body } = c.req.raw;
  if (!body) return new Uint8Array(0);
  const reader = new LimitedReader(body, READ_LIMITS);
  try {
    let bytes = new Uint8Array(FIRST_BYTES);
    let sizeBytes = 0;
    for (let chunk = await reader.read(); chunk; chunk = await reader.read()) {
      const end = sizeBytes + chunk.length;
      if (end > JSON_BODY_MAX_BYTES) return 'too_large'; // `drain` reads the rest
      // While this waits, backpressure stops the sender.
      if (!(await hasSlot(c, sizeBytes, end, reader))) return 'no_place';
      if (end > bytes.length) {
        const larger = new Uint8Array(Math.min(JSON_BODY_MAX_BYTES, Math.max(end, 2 * bytes.length)));
        larger.set(bytes.subarray(0, sizeBytes));
        bytes = larger;
      }
      bytes.set(chunk, sizeBytes);
      sizeBytes = end;
    }
    return bytes.subarray(0, sizeBytes);
  } catch (error) {
    return error instanceof TooSlow ? 'too_slow' : 'broken'; // the caller hung up
  } finally {
    reader.close();
  }
}

/** Takes the slot that a body needs when it grows, and releases its previous slot. */
async function hasSlot(c: AppContext, from: number, to: number, reader: LimitedReader): Promise<boolean> {
  const grewBeyond = (size: number) => from <= size && to > size;
  const slots = grewBeyond(LARGE_BODY_BYTES) ? largeBodies : grewBeyond(COUNTED_BYTES) ? mediumBodies : undefined;
  if (!slots) return true;
  const slot = await slots.take(c.get('principal').account.id);
  if (!slot) return false;
  c.get('bodySlot')?.release();
  c.set('bodySlot', slot);
  reader.restart();
  return true;
}
