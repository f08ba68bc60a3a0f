import { concatenated } from '../../audio/memory.ts';

/** Field numbers of the messages of an ONNX file (onnx.proto3). */
const MODEL = { graph: 7, metadataProps: 14 } as const;
const GRAPH = { node: 1, initializer: 5, input: 11, output: 12 } as const;
const NODE = { input: 1, output: 2 } as const;
const TENSOR = { name: 8, rawData: 9, externalData: 13, dataLocation: 14 } as const;
const ENTRY = { key: 1, value: 2 } as const;
const VALUE = { name: 1, type: 2 } as const;
const TYPE = { tensor: 1 } as const;
const TENSOR_TYPE = { element: 1 } as const;
/** Value of `dataLocation`. */
const EXTERNAL = 1;
/** Element types by their names in the runtime. */
const ELEMENTS: Readonly<Record<string, number>> = { float32: 1, uint8: 2, int8: 3, int32: 6, int64: 7, bool: 9 };

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

interface Field {
  /** All bytes of the field, with its tag. */
  readonly whole: Uint8Array;
  /** Name of the initializer, or of the graph's input or output. */
  readonly name: string;
}

interface Node {
  readonly whole: Uint8Array;
  readonly inputs: readonly string[];
  readonly outputs: readonly string[];
}

/** Writes one of the models that a model is cut into. @param typeOf element type of an output of an earlier one */
type Subgraph = (typeOf: (name: string) => string) => Uint8Array;

/**
 * Cuts a model into several that run one after the other: the same operators on the same values, so the result is the
 * same to the byte. The inputs of each model include the tensors that it needs from earlier models, its outputs those
 * that later models need; tensors keep their names.
 *
 * @param model without operators that contain graphs (If, Loop): these use tensors that their inputs do not list
 * @param after names of the tensors after whose operator the model is cut, in order
 * @throws if a name is no operator's output, or the bytes are no ONNX file; a later model also if it needs an input of
 *   an unknown element type
 */
export function cutModel(model: Uint8Array, after: readonly string[]): Subgraph[] {
  const rest: Uint8Array[] = [];
  let graph: Uint8Array | undefined;
  forEachField(model, (field, payload, whole) => {
    if (field === MODEL.graph && payload !== undefined) graph = payload;
    else rest.push(whole);
  });
  const { nodes, initializers, inputs, outputs, otherFields } = readGraph(graph ?? new Uint8Array(0));
  const ends = after.map((name) => {
    const at = nodes.findIndex((node) => node.outputs.includes(name));
    if (at < 0) throw new Error(`the model has no operator that outputs "${name}"`);
    return at + 1;
  });
  const subgraphs = [...ends, nodes.length].map((end, subgraph) => nodes.slice(ends[subgraph - 1] ?? 0, end));
  const needs = subgraphs.map((subgraph) => new Set(subgraph.flatMap((node) => node.inputs)));
  return subgraphs.map((subgraph, index) => {
    const own = new Set(subgraph.flatMap((node) => node.outputs));
    const isNeededLater = (name: string) => needs.slice(index + 1).some((later) => later.has(name));
    const constants = initializers.filter(({ name }) => needs[index].has(name));
    const graphInputs = inputs.filter(({ name }) => needs[index].has(name));
    const available = new Set([...own, ...[...constants, ...graphInputs].map(({ name }) => name)]);
    const passed = [...needs[index]].filter((name) => name !== '' && !available.has(name));
    const results = outputs.filter(({ name }) => own.has(name));
    const passedOn = [...own].filter((name) => isNeededLater(name) && results.every((result) => result.name !== name));
    const parts = (typeOf: (name: string) => string) => [
      ...subgraph.map(({ whole }) => whole),
      ...otherFields,
      ...constants.map(({ whole }) => whole),
      ...graphInputs.map(({ whole }) => whole),
      ...passed.flatMap((name) => delimited(GRAPH.input, [...nameOf(name), ...typed(typeOf(name))])),
      ...results.map(({ whole }) => whole),
      // The runtime infers the type.
      ...passedOn.flatMap((name) => delimited(GRAPH.output, nameOf(name))),
    ];
    return (typeOf) => concatenated(Uint8Array, [...rest, ...delimited(MODEL.graph, parts(typeOf))]);
  });
}

function readGraph(graph: Uint8Array) {
  const nodes: Node[] = [];
  const initializers: Field[] = [];
  const inputs: Field[] = [];
  const outputs: Field[] = [];
  const otherFields: Uint8Array[] = [];
  forEachField(graph, (field, payload, whole) => {
    if (payload === undefined) otherFields.push(whole);
    else if (field === GRAPH.node)
      nodes.push({ whole, inputs: textsOf(payload, NODE.input), outputs: textsOf(payload, NODE.output) });
    else if (field === GRAPH.initializer) initializers.push({ whole, name: textsOf(payload, TENSOR.name)[0] });
    else if (field === GRAPH.input) inputs.push({ whole, name: textsOf(payload, VALUE.name)[0] });
    else if (field === GRAPH.output) outputs.push({ whole, name: textsOf(payload, VALUE.name)[0] });
    else otherFields.push(whole);
  });
  return { nodes, initializers, inputs, outputs, otherFields };
}

const nameOf = (name: string) => delimited(VALUE.name, [encoder.encode(name)]);

/** The type of a tensor of any shape. @throws for an element type that `ELEMENTS` lacks */
function typed(element: string): Uint8Array[] {
  const code = ELEMENTS[element];
  if (code === undefined) throw new Error(`a model cannot be cut at a tensor of ${element}`);
  return delimited(VALUE.type, delimited(TYPE.tensor, numbered(TENSOR_TYPE.element, code)));
}

function textsOf(message: Uint8Array, number: number): string[] {
  const texts: string[] = [];
  forEachField(message, (field, payload) => {
    if (field === number) texts.push(decoder.decode(payload));
  });
  return texts;
}
