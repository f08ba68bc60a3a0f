import { delimited, forEachField, joinedParts, numbered } from './protobuf.ts';

/** Fields of the messages, by onnx.proto3. */
const MODEL = { graph: 7 } as const;
const GRAPH = { node: 1, initializer: 5, input: 11, output: 12 } as const;
const NODE = { input: 1, output: 2 } as const;
const TENSOR = { name: 8 } as const;
const VALUE = { name: 1, type: 2 } as const;
const TYPE = { tensor: 1 } as const;
const TENSOR_TYPE = { element: 1 } as const;
/** Element types by the runtime's names. */
const ELEMENTS: Readonly<Record<string, number>> = { float32: 1, uint8: 2, int8: 3, int32: 6, int64: 7, bool: 9 };

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

/** Writes one of the models that a model is cut into. @param typeOf element type of an earlier one's output */
export type Subgraph = (typeOf: (name: string) => string) => Uint8Array;

/**
 * Cuts a model into several that run one after the other: the same operators on the same values, so the result is the
 * same to the byte. The inputs of each model include the tensors that it needs from earlier models, its outputs those
 * that later models need; tensors keep their names.
 *
 * @param model without operators that contain graphs (If, Loop): these use tensors that their inputs do not list
 * @param after names of the tensors after whose operator the model is cut, in order
 * @throws when a name is no operator's output, or the bytes are no ONNX file
 */
export function cutModel(model: Uint8Array, after: readonly string[]): Subgraph[] {
  const rest: Uint8Array[] = [];
  let graph: Uint8Array | undefined;
  forEachField(model, (field, payload, whole) => {
    if (field === MODEL.graph && payload !== undefined) graph = payload;
    else rest.push(whole);
  });
  const { nodes, initializers, inputs, outputs, others } = readGraph(graph ?? new Uint8Array(0));
  const ends = after.map((name) => {
    const at = nodes.findIndex((node) => node.outputs.includes(name));
    if (at < 0) throw new Error(`the model has no operator that gives "${name}"`);
    return at + 1;
  });
  const subgraphs = [...ends, nodes.length].map((end, subgraph) => nodes.slice(ends[subgraph - 1] ?? 0, end));
  const needs = subgraphs.map((subgraph) => new Set(subgraph.flatMap((node) => node.inputs)));
  return subgraphs.map((subgraph, index) => {
    const own = new Set(subgraph.flatMap((node) => node.outputs));
    const isNeededLater = (name: string) => needs.slice(index + 1).some((later) => later.has(name));
    const constants = initializers.filter(({ name }) => needs[index].has(name));
    const given = inputs.filter(({ name }) => needs[index].has(name));
    const named = new Set([...own, ...[...constants, ...given].map(({ name }) => name)]);
    const passed = [...needs[index]].filter((name) => name !== '' && !named.has(name));
    const results = outputs.filter(({ name }) => own.has(name));
    const kept = [...own].filter((name) => isNeededLater(name) && results.every((result) => result.name !== name));
    const parts = (typeOf: (name: string) => string) => [
      ...subgraph.map(({ whole }) => whole),
      ...others,
      ...constants.map(({ whole }) => whole),
      ...given.map(({ whole }) => whole),
      ...passed.flatMap((name) => delimited(GRAPH.input, [...nameOf(name), ...typed(typeOf(name))])),
      ...results.map(({ whole }) => whole),
      // Without a type: the runtime infers it.
      ...kept.flatMap((name) => delimited(GRAPH.output, nameOf(name))),
    ];
    return (typeOf) => joinedParts([...rest, ...delimited(MODEL.graph, parts(typeOf))]);
  });
}

function readGraph(graph: Uint8Array) {
  const nodes: Node[] = [];
  const initializers: Field[] = [];
  const inputs: Field[] = [];
  const outputs: Field[] = [];
  const others: Uint8Array[] = [];
  forEachField(graph, (field, payload, whole) => {
    if (payload === undefined) others.push(whole);
    else if (field === GRAPH.node)
      nodes.push({ whole, inputs: textsOf(payload, NODE.input), outputs: textsOf(payload, NODE.output) });
    else if (field === GRAPH.initializer) initializers.push({ whole, name: textsOf(payload, TENSOR.name)[0] });
    else if (field === GRAPH.input) inputs.push({ whole, name: textsOf(payload, VALUE.name)[0] });
    else if (field === GRAPH.output) outputs.push({ whole, name: textsOf(payload, VALUE.name)[0] });
    else others.push(whole);
  });
  return { nodes, initializers, inputs, outputs, others };
}

const nameOf = (name: string) => delimited(VALUE.name, [new TextEncoder().encode(name)]);

/** The type of a tensor of any shape. */
const typed = (element: string) =>
  delimited(VALUE.type, delimited(TYPE.tensor, numbered(TENSOR_TYPE.element, ELEMENTS[element])));

function textsOf(message: Uint8Array, wanted: number): string[] {
  const texts: string[] = [];
  forEachField(message, (field, payload) => {
    if (field === wanted) texts.push(new TextDecoder().decode(payload));
  });
  return texts;
}
