import { type MultipartError, make, type Parser } from 'multipasta';
import { LimitedReader, type ReadLimits, Slots, TooSlow } from '../jobs/upload-bodies.ts';
import type { AppContext } from './context.ts';
import type { Refusal } from './refusals.ts';

const FORM = 'multipart/form-data';
/** All fields except the file; speaker references in base64 need the most. */
const MAX_FIELD_BYTES = 8 * 1024 * 1024;
const MAX_PARTS = 100;
/** Requests with more bytes of fields need a slot. */
const LARGE_FIELD_BYTES = 64 * 1024;
const largeFields = new Slots({ slots: 2, perAccount: 1 });
const RETRY_SECONDS = 5;
const READ_LIMITS = { pauseMs: 30_000, minBytesPerMinute: 60 * 8 * 1024 } satisfies ReadLimits;
const TOO_SLOW = 'came too slowly: at least 8 KiB/s and no pause of more than 30 s';

const CUT_OFF = 'ended before the form did';
const DASH = 0x2d;

/** The text fields by name, in the order of the form: `name[]` and `name[0]` are values of `name`. */
export type FormFields = ReadonlyMap<string, readonly string[]>;

export type Form =
  | { readonly ok: true; readonly fields: FormFields; readonly hasFile: boolean }
  | { readonly ok: false; readonly error: Refusal };

export interface FormOptions {
  /** Maximum size of the whole body. */
  readonly maxBytes: number;
  /** Name of the part with the file. */
  readonly fileField: string;
  /** Reads the file's bytes to their end. Returns a refusal to refuse the request. */
  readonly takeFile: (bytes: ReadableStream<Uint8Array>) => Promise<Refusal | undefined>;
}

/**
 * Reads a form and streams its file, which may come before or after the fields. The order of the checks is the
 * contract's: size (413), Content-Type (415), form (400). Large fields occupy a slot of the isolate until `bodySlot` is
 * released.
 */
export async function readForm(c: AppContext, options: FormOptions): Promise<Form> {
  const tooLarge: Refusal = { kind: 'body_too_large', maxBytes: options.maxBytes };
  if (Number(c.req.header('Content-Length') ?? 0) > options.maxBytes) return { ok: false, error: tooLarge };
  const type = c.req.header('Content-Type') ?? '';
  const isForm = type.split(';', 1)[0].trim().toLowerCase() === FORM;
  if (type !== '' && !isForm) return { ok: false, error: { kind: 'media_type', wanted: FORM } };
  const { body } = c.req.raw;
  if (!isForm || !body) return { ok: false, error: invalid(`must be a form (Content-Type: ${FORM})`) };
  const reader = new LimitedReader(body, READ_LIMITS);
  try {
    return await readParts(new PartReader(c, reader, type, options.maxBytes), options);
  } catch (error) {
    if (error instanceof Refused) return { ok: false, error: error.refusal };
    if (error instanceof TooSlow) return { ok: false, error: invalid(TOO_SLOW) };
    throw error;
  } finally {
    reader.close();
  }
}

async function readParts(parts: PartReader, { fileField, takeFile }: FormOptions): Promise<Form> {
  const fields = new Map<string, string[]>();
  let hasFile = false;
  for (let part = await parts.next(fileField); part; part = await parts.next(fileField)) {
    if (part.kind === 'field') {
      const name = part.name.replace(/\[\d*\]$/, '');
      fields.set(name, [...(fields.get(name) ?? []), part.value]);
    } else if (part.kind === 'file') {
      if (hasFile) throw new Refused(invalid('must be sent exactly once', fileField));
      hasFile = true;
      const refusal = await takeFile(parts.fileStream()).catch((error: unknown) => {
        // A fault of the request is the cause of the receiver's error.
        throw parts.fault ?? error;
      });
      if (refusal) return { ok: false, error: refusal };
    }
  }
  return { ok: true, fields, hasFile };
}

class Refused extends Error {
  constructor(readonly refusal: Refusal) {
    super(refusal.kind);
  }
}

type Part =
  | { readonly kind: 'field'; readonly name: string; readonly value: string }
  | { readonly kind: 'file' | 'file end' }
  | { readonly kind: 'bytes'; readonly bytes: Uint8Array };

/** Splits a body into fields and chunks of its file. Memory holds one chunk and the fields. */
class PartReader {
  /** Error of the last read. */
  fault: unknown;
  readonly #parser: Parser;
  readonly #parts: Part[] = [];
  #fileField = '';
  #totalBytes = 0;
  #fileBytes = 0;
  #isWhole = false;
  #isEnded = false;
  /** Dashes at the end of the last chunk, not parsed yet. */
  #dashes = new Uint8Array(0);

  constructor(
    private readonly c: AppContext,
    private readonly reader: LimitedReader,
    contentType: string,
    private readonly maxBytes: number,
  ) {
    const decoder = new TextDecoder();
    this.#parser = make({
      headers: { 'content-type': contentType },
      maxParts: MAX_PARTS,
      maxFieldSize: MAX_FIELD_BYTES,
      isFile: ({ name }) => name === this.#fileField,
      onField: ({ name }, value) => this.#parts.push({ kind: 'field', name, value: decoder.decode(value) }),
      onFile: () => {
        this.#parts.push({ kind: 'file' });
        return (bytes) => {
          this.#fileBytes += bytes?.length ?? 0;
          this.#parts.push(bytes === null ? { kind: 'file end' } : { kind: 'bytes', bytes });
        };
      },
      onError: (error) => {
        throw new Refused(refusalOf(error));
      },
      onDone: () => {
        this.#isWhole = true;
      },
    });
  }

  /** @throws Refused, TooSlow, or an error of the body */
  async next(fileField = this.#fileField): Promise<Part | undefined> {
    this.#fileField = fileField;
    try {
      while (this.#parts.length === 0 && !this.#isEnded) await this.#readChunk();
      return this.#parts.shift();
    } catch (error) {
      this.fault = error;
      throw error;
    }
  }

  /** The bytes of the current file. */
  fileStream(): ReadableStream<Uint8Array> {
    return new ReadableStream<Uint8Array>({
      pull: async (controller) => {
        for (let part = await this.next(); part?.kind === 'bytes'; part = await this.next())
          if (part.bytes.length > 0) return controller.enqueue(part.bytes);
        controller.close();
      },
    });
  }

  async #readChunk(): Promise<void> {
    const chunk = await this.reader.read().catch((error) => {
      throw error instanceof TooSlow ? error : new Refused(invalid(CUT_OFF));
    });
    if (!chunk) return this.#end();
    this.#totalBytes += chunk.length;
    if (this.#totalBytes > this.maxBytes) throw new Refused({ kind: 'body_too_large', maxBytes: this.maxBytes });
    // Bytes after the form are read and dropped.
    if (this.#isWhole) return;
    this.#parse(() => this.#parser.write(this.#withoutDashes(chunk)));
    await this.#boundFields();
  }

  #end(): void {
    this.#isEnded = true;
    if (this.#isWhole) return;
    this.#parse(() => {
      this.#parser.write(this.#dashes);
      this.#parser.end();
    });
    if (!this.#isWhole) throw new Refused(invalid(CUT_OFF));
  }

  /** Holds trailing dashes back: the parser misses the end of a form if its last two dashes are in different chunks. */
  #withoutDashes(chunk: Uint8Array): Uint8Array {
    const text = new Uint8Array(this.#dashes.length + chunk.length);
    text.set(this.#dashes);
    text.set(chunk, this.#dashes.length);
    let end = text.length;
    while (end > Math.max(0, text.length - 2) && text[end - 1] === DASH) end--;
    this.#dashes = text.slice(end);
    return text.subarray(0, end);
  }

  #parse(step: () => void): void {
    try {
      step();
    } catch (error) {
      throw error instanceof Refused ? error : new Refused(invalid('is not a form'));
    }
  }

  async #boundFields(): Promise<void> {
    const fieldBytes = this.#totalBytes - this.#fileBytes;
    if (fieldBytes > MAX_FIELD_BYTES) throw new Refused({ kind: 'body_too_large', maxBytes: MAX_FIELD_BYTES });
    if (fieldBytes <= LARGE_FIELD_BYTES || this.c.get('bodySlot')) return;
    const slot = await largeFields.take(this.c.get('principal').account.id);
    if (!slot) throw new Refused({ kind: 'too_many_requests', retryAfterSeconds: RETRY_SECONDS });
    this.c.set('bodySlot', slot);
  }
}

function refusalOf(error: MultipartError): Refusal {
  if (error._tag === 'InvalidBoundary') return invalid('has no boundary in its Content-Type');
  if (error._tag === 'EndNotReached') return invalid(CUT_OFF);
  if (error._tag !== 'ReachedLimit') return invalid('is not a form');
  if (error.limit === 'MaxParts') return invalid(`must have at most ${MAX_PARTS} parts`);
  return { kind: 'body_too_large', maxBytes: MAX_FIELD_BYTES };
}

function invalid(message: string, field = 'body'): Refusal {
  return { kind: 'invalid', errors: [{ field, message }] };
}
