import type { SessionState } from './session.ts';
import type { LiveEngine } from './types.ts';

/**
 * A snapshot is a JSON text in UTF-8, preceded by its length (uint32, little-endian), and the numbers of all typed
 * arrays behind it, in the order and with the types and lengths that the text names in their places: `{"$": "f32", "n":
 * 192}`.
 */
const VERSION = 8;
const TYPES = { f32: Float32Array, i32: Int32Array, u8: Uint8Array, i8: Int8Array } as const;
type TypeName = keyof typeof TYPES;
type Numbers = Float32Array | Int32Array | Uint8Array | Int8Array;

/** In every JavaScript runtime, though not in the language's own library. */
declare class TextEncoder {
  encode(text: string): Uint8Array;
}
declare class TextDecoder {
  decode(bytes: Uint8Array): string;
}

/** Names the models that a state belongs to. */
export function modelsOf({ segmentation, embedding }: Pick<LiveEngine, 'segmentation' | 'embedding'>): string {
  return `${segmentation.info.id} ${embedding.info.id}`;
}

/** @param models names of the models that the state belongs to */
export function packState(state: SessionState, models: string): Uint8Array {
  const arrays: Numbers[] = [];
  const text = JSON.stringify({ version: VERSION, models, state }, (_key, value: unknown) => {
    const type = (Object.keys(TYPES) as TypeName[]).find((name) => value instanceof TYPES[name]);
    if (type === undefined) return value === undefined ? null : value;
    arrays.push(value as Numbers);
    return { $: type, n: (value as Numbers).length };
  });
  const head = new TextEncoder().encode(text);
  const total = arrays.reduce((sum, array) => sum + array.byteLength, 4 + head.length);
  const bytes = new Uint8Array(total);
  new DataView(bytes.buffer).setUint32(0, head.length, true);
  bytes.set(head, 4);
  let at = 4 + head.length;
  for (const array of arrays) {
    bytes.set(new Uint8Array(array.buffer, array.byteOffset, array.byteLength), at);
    at += array.byteLength;
  }
  return bytes;
}

/** @throws when the bytes are no snapshot of this version */
export function unpackState(bytes: Uint8Array): { readonly state: SessionState; readonly models: string } {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const headEnd = 4 + view.getUint32(0, true);
  let at = headEnd;
  // Parsing visits the arrays in the order in which they were written: depth first, members in their order.
  const read = ({ $, n }: { $: TypeName; n: number }): Numbers => {
    const type = TYPES[$];
    const array = new type(bytes.slice(at, at + n * type.BYTES_PER_ELEMENT).buffer);
    at += array.byteLength;
    return array;
  };
  const parsed = JSON.parse(new TextDecoder().decode(bytes.subarray(4, headEnd)), (_key, value: unknown) => {
    if (typeof value === 'object' && value !== null && '$' in value) return read(value as { $: TypeName; n: number });
    return value === null ? undefined : value;
  }) as { version: number; models: string; state: SessionState };
  if (parsed.version !== VERSION) throw new Error(`the snapshot has version ${parsed.version}`);
  return parsed;
}
