import { describe, expect, it } from 'vitest';
import type { AppContext } from './context.ts';
import { readForm } from './form-body.ts';

const BOUNDARY = 'bb';
const TYPE = `multipart/form-data; boundary=${BOUNDARY}`;
const part = (name: string, value: string, filename?: string) => {
  const file = filename === undefined ? '' : `; filename="${filename}"`;
  return `--${BOUNDARY}\r\nContent-Disposition: form-data; name="${name}"${file}\r\n\r\n${value}\r\n`;
};
const END = `--${BOUNDARY}--\r\n`;
const bytesOf = (text: string) => new TextEncoder().encode(text);

function contextOf(chunks: readonly Uint8Array[], headers: Record<string, string> = { 'Content-Type': TYPE }) {
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      for (const chunk of chunks) controller.enqueue(chunk);
      controller.close();
    },
  });
  const variables = new Map<string, unknown>([['principal', { account: { id: 'main' } }]]);
  const named = new Headers(headers);
  return {
    req: { raw: { body }, header: (name: string) => named.get(name) ?? undefined },
    get: (name: string) => variables.get(name),
    set: (name: string, value: unknown) => void variables.set(name, value),
  } as unknown as AppContext;
}

async function read(
  chunks: readonly Uint8Array[],
  { headers, maxBytes = 1e6 }: { headers?: Record<string, string>; maxBytes?: number } = {},
) {
  let file: string | undefined;
  const form = await readForm(contextOf(chunks, headers), {
    maxBytes,
    fileField: 'file',
    async takeFile(bytes) {
      file = await new Response(bytes).text();
      return undefined;
    },
  });
  return form.ok ? { file, hasFile: form.hasFile, fields: Object.fromEntries(form.fields) } : form.error;
}
const fault = (message: string, field = 'body') => ({ kind: 'invalid', errors: [{ field, message }] });

const FILE = 'RI\r\n--b\r\n--bFF--\r\n-';
const FORM = bytesOf(
  part('model', 'whisper-1') + part('file', FILE, 'a.wav') + part('names[]', 'ü') + part('names[]', '') + END,
);
const COMPLETE = { file: FILE, hasFile: true, fields: { model: ['whisper-1'], names: ['ü', ''] } };

describe('a form', () => {
  it('is read with fields before and after the file', async () => {
    expect(await read([FORM])).toEqual(COMPLETE);
  });

  it('is read at any split into chunks', async () => {
    for (let first = 1; first < FORM.length; first++)
      expect(await read([FORM.subarray(0, first), FORM.subarray(first)]), `cut at ${first}`).toEqual(COMPLETE);
    for (let size = 1; size < 9; size++) {
      const count = Math.ceil(FORM.length / size);
      const chunks = Array.from({ length: count }, (_, at) => FORM.subarray(at * size, (at + 1) * size));
      expect(await read(chunks), `chunks of ${size}`).toEqual(COMPLETE);
    }
  });

  it('needs no line break at its end, and ignores bytes after it', async () => {
    const { length } = FORM;
    expect(await read([FORM.subarray(0, length - 2)])).toEqual(COMPLETE);
    expect(await read([FORM, bytesOf('epilogue')])).toEqual(COMPLETE);
  });

  it('is refused when cut off before its end', async () => {
    for (let end = 1; end < FORM.length - 4; end++)
      expect(await read([FORM.subarray(0, end)]), `ends at ${end}`).toMatchObject({ kind: 'invalid' });
  });

  it('is refused with two files', async () => {
    const two = bytesOf(part('file', 'a', 'a') + part('file', 'b', 'b') + END);
    expect(await read([two])).toEqual(fault('must be sent exactly once', 'file'));
  });

  it('is limited in size, with and without Content-Length, and in size and number of fields', async () => {
    const tooLarge = { kind: 'body_too_large', maxBytes: 100 };
    expect(await read([FORM], { maxBytes: 100 })).toEqual(tooLarge);
    const headers = { 'Content-Type': TYPE, 'Content-Length': '101' };
    expect(await read([], { headers, maxBytes: 100 })).toEqual(tooLarge);
    const field = bytesOf(part('prompt', 'x'.repeat(9 * 1024 * 1024)) + END);
    const parts = Array.from({ length: 100 }, (_, at) => field.subarray(at * 100_000, (at + 1) * 100_000));
    expect(await read(parts, { maxBytes: 1e9 })).toEqual({ kind: 'body_too_large', maxBytes: 8 * 1024 * 1024 });
    const many = bytesOf(part('a', '').repeat(200) + END);
    expect(await read([many])).toEqual(fault('must have at most 100 parts'));
  });

  it('is refused with another Content-Type, without a boundary, or malformed', async () => {
    expect(await read([FORM], { headers: { 'Content-Type': 'application/json' } })).toMatchObject({
      kind: 'media_type',
    });
    expect(await read([FORM], { headers: {} })).toEqual(fault('must be a form (Content-Type: multipart/form-data)'));
    expect(await read([FORM], { headers: { 'Content-Type': 'multipart/form-data' } })).toEqual(
      fault('has no boundary in its Content-Type'),
    );
    expect(await read([bytesOf('nonsense')])).toMatchObject({ kind: 'invalid' });
    expect(await read([])).toMatchObject({ kind: 'invalid' });
  });
});
