import { delimited, forEachField, joinedParts, numbered } from './protobuf.ts';

/** A model whose large weights lie outside of it. */
export interface ExternalModel {
  /** The model, where each large tensor is only told by its place in `weights`. */
  readonly graph: Uint8Array;
  /** What the places refer to: the file that the model was. */
  readonly weights: Uint8Array;
}

/** The name by which `graph` refers to the weights. */
export const WEIGHTS_PATH = 'weights';

/** Smaller tensors stay where they are: shapes and axes are read while the graph is optimised. */
const MIN_EXTERNAL_BYTES = 4096;

/** Fields of the messages, by onnx.proto3. */
const MODEL = { graph: 7 } as const;
const GRAPH = { initializer: 5 } as const;
const TENSOR = { rawData: 9, externalData: 13, dataLocation: 14 } as const;
const ENTRY = { key: 1, value: 2 } as const;
const EXTERNAL = 1;

/**
 * Takes the weights out of an ONNX file, by ONNX's own means for models that are larger than a protobuf message may be ("external data"). The runtime reads a
 * model that holds its weights into its memory, parses them into a second copy and keeps a third; WebAssembly memory never shrinks, so all three stay. Weights
 * outside are copied once. Nothing of the file is copied here: the places are those in the file itself.
 *
 * @throws when the bytes are not a well-formed protobuf message
 */
export function withExternalWeights(model: Uint8Array): ExternalModel {
  const parts: Uint8Array[] = [];
  forEachField(model, (field, payload, whole) => {
    if (field === MODEL.graph && payload !== undefined) parts.push(...delimited(field, graphOf(payload, model)));
    else parts.push(whole);
  });
  return { graph: joinedParts(parts), weights: model };
}

function graphOf(graph: Uint8Array, file: Uint8Array): Uint8Array[] {
  const parts: Uint8Array[] = [];
  forEachField(graph, (field, payload, whole) => {
    const tensor = field === GRAPH.initializer && payload !== undefined ? tensorOf(payload, file) : undefined;
    parts.push(...(tensor === undefined ? [whole] : delimited(field, tensor)));
  });
  return parts;
}

/** @returns undefined for a tensor that stays as it is: small, or with its values in a field of their type */
function tensorOf(tensor: Uint8Array, file: Uint8Array): Uint8Array[] | undefined {
  const parts: Uint8Array[] = [];
  let data: Uint8Array | undefined;
  forEachField(tensor, (field, payload, whole) => {
    if (field === TENSOR.rawData) data = payload;
    else parts.push(whole);
  });
  if (data === undefined || data.length < MIN_EXTERNAL_BYTES) return undefined;
  const place = {
    location: WEIGHTS_PATH,
    offset: String(data.byteOffset - file.byteOffset),
    length: String(data.length),
  };
  for (const [key, value] of Object.entries(place)) {
    const entry = [...delimited(ENTRY.key, [utf8.encode(key)]), ...delimited(ENTRY.value, [utf8.encode(value)])];
    parts.push(...delimited(TENSOR.externalData, entry));
  }
  parts.push(...numbered(TENSOR.dataLocation, EXTERNAL));
  return parts;
}

const utf8 = new TextEncoder();
