import { concatenated } from '../../audio/memory.ts';

/** Field numbers of the messages of an ONNX file (onnx.proto3). */
const MODEL = { graph: 7, metadataProps: 14 } as const;
const GRAPH = { initializer: 5 } as const;
const TENSOR = { rawData: 9, externalData: 13, dataLocation: 14 } as const;
const ENTRY = { key: 1, value: 2 } as const;
/** Value of `dataLocation`. */
const EXTERNAL = 1;

const decoder = new TextDecoder();
const encoder = new TextEncoder();

/**
 * Walks the top-level fields of a protobuf message, the encoding of ONNX files.
 *
 * @param visit gets the number of a field, its payload if it is length-delimited, and all its bytes, as views
 * @throws if the bytes are no well-formed message
 */
function forEachField(
  message: Uint8Array,
  visit: (field: number, payload: Uint8Array | undefined, whole: Uint8Array) => void,
): void {
  let offset = 0;

  function varint(): number {
    let value = 0;
    for (let shift = 0; shift < 70; shift += 7) {
      if (offset >= message.length) throw malformed();
      const byte = message[offset++];
      // Multiply instead of shifting: lengths may exceed 2^31.
      value += (byte & 0x7f) * 2 ** shift;
      if (byte < 0x80) return value;
    }
    throw malformed();
  }

  while (offset < message.length) {
    const start = offset;
    let payload: Uint8Array | undefined;
    const tag = varint();
    const field = Math.floor(tag / 8);
    switch (tag % 8) {
      case 0:
        varint();
        break;
      case 1:
        offset += 8;
        break;
      case 2: {
        const length = varint();
        if (offset + length > message.length) throw malformed();
        payload = message.subarray(offset, offset + length);
        offset += length;
        break;
      }
      case 5:
        offset += 4;
        break;
      default:
        throw malformed();
    }
    if (offset > message.length) throw malformed();
    visit(field, payload, message.subarray(start, offset));
  }
}

/** A length-delimited field of a message: its number and length, then the parts. */
function delimited(field: number, parts: readonly Uint8Array[]): Uint8Array[] {
  const length = parts.reduce((sum, part) => sum + part.length, 0);
  return [varintOf(8 * field + 2), varintOf(length), ...parts];
}

/** A field with an integer. */
function numbered(field: number, value: number): Uint8Array[] {
  return [varintOf(8 * field), varintOf(value)];
}

function varintOf(value: number): Uint8Array {
  const bytes: number[] = [];
  let rest = value;
  for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) bytes.push((rest % 0x80) | 0x80);
  return Uint8Array.from([...bytes, rest]);
}

function malformed(): Error {
  return new Error('not an ONNX model: the file is damaged or of another format');
}

/**
 * Reads `metadata_props` of an ONNX file, which onnxruntime-web does not expose. Skips all other fields.
 *
 * @returns values by key; empty for a file without metadata
 * @throws if the bytes are no well-formed protobuf message
 */
export function readOnnxMetadata(model: Uint8Array): ReadonlyMap<string, string> {
  const properties = new Map<string, string>();
  forEachField(model, (field, payload) => {
    if (field !== MODEL.metadataProps || payload === undefined) return;
    let key = '';
    let value = '';
    forEachField(payload, (inner, text) => {
      if (inner === ENTRY.key && text !== undefined) key = decoder.decode(text);
      if (inner === ENTRY.value && text !== undefined) value = decoder.decode(text);
    });
    if (key !== '') properties.set(key, value);
  });
  return properties;
}

/** A model with external weights. */
interface ExternalModel {
  /** The model, in which each large tensor is a reference to its bytes in `weights`. */
  readonly graph: Uint8Array;
  /** The original file, to which the references refer. */
  readonly weights: Uint8Array;
}

/** The name by which `graph` refers to the weights. */
export const WEIGHTS_PATH = 'weights';

/** Smaller tensors stay inside: shapes and axes are read while the graph is optimised. */
const MIN_EXTERNAL_BYTES = 4096;

/**
 * Replaces the weights of an ONNX file by references ("external data" of ONNX). The runtime makes three copies of
 * internal weights in its WebAssembly memory, which never shrinks, but only one of external weights. The weights are
 * not copied here: the references are offsets in the file itself.
 *
 * @throws if the bytes are no well-formed protobuf message
 */
export function withExternalWeights(model: Uint8Array): ExternalModel {
  const parts: Uint8Array[] = [];
  forEachField(model, (field, payload, whole) => {
    if (field === MODEL.graph && payload !== undefined) parts.push(...delimited(field, graphOf(payload, model)));
    else parts.push(whole);
  });
  return { graph: concatenated(Uint8Array, parts), weights: model };
}

function graphOf(graph: Uint8Array, file: Uint8Array): Uint8Array[] {
  const parts: Uint8Array[] = [];
  forEachField(graph, (field, payload, whole) => {
    const tensor = field === GRAPH.initializer && payload !== undefined ? tensorOf(payload, file) : undefined;
    parts.push(...(tensor === undefined ? [whole] : delimited(field, tensor)));
  });
  return parts;
}

/** @returns undefined for a tensor that stays unchanged: it is small or has no raw data */
function tensorOf(tensor: Uint8Array, file: Uint8Array): Uint8Array[] | undefined {
  const parts: Uint8Array[] = [];
  let data: Uint8Array | undefined;
  forEachField(tensor, (field, payload, whole) => {
    if (field === TENSOR.rawData) data = payload;
    else parts.push(whole);
  });
  if (data === undefined || data.length < MIN_EXTERNAL_BYTES) return undefined;
  const reference = {
    location: WEIGHTS_PATH,
    offset: String(data.byteOffset - file.byteOffset),
    length: String(data.length),
  };
  for (const [key, value] of Object.entries(reference)) {
    const entry = [...delimited(ENTRY.key, [encoder.encode(key)]), ...delimited(ENTRY.value, [encoder.encode(value)])];
    parts.push(...delimited(TENSOR.externalData, entry));
  }
  parts.push(...numbered(TENSOR.dataLocation, EXTERNAL));
  return parts;
}
