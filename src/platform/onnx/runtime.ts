import * as ort from 'onnxruntime-web/wasm';
import { WEIGHTS_PATH, withExternalWeights } from './model-file.ts';

/** A model's input or output tensors by name. */
type Tensors = Readonly<Record<string, ort.Tensor>>;

interface OnnxSession {
  /** Runs the model once; outputs are copies outside the WebAssembly heap. */
  run(inputs: Tensors): Promise<Tensors>;
  readonly inputNames: readonly string[];
  readonly outputNames: readonly string[];
}

export interface OnnxRuntime {
  createSession(model: Uint8Array): Promise<OnnxSession>;
  /** Size of the runtime's WebAssembly memory now, in bytes (it never shrinks); 0 before the first session. */
  memoryBytes(): number;
}

/**
 * Larger models are loaded with external weights and without prepacking: a reordered copy would double the memory for
 * five percent of speed (a quarter of the time of an LSTM). The models of the default pack are smaller, those of the
 * studio pack are larger.
 */
const MAX_WHOLE_BYTES = 5_000_000;

let heap: WebAssembly.Memory | undefined;
let ready: Promise<void> | undefined;

/**
 * The runtime passes this "binary" to `WebAssembly.instantiate`. Its length of one byte identifies that call.
 */
const PLACEHOLDER = new Uint8Array(1);

type Instantiate = typeof WebAssembly.instantiate;

/** The runtime's glue code creates shared memory; the module has an ordinary one. */
const OrdinaryMemory = class extends WebAssembly.Memory {
  constructor({ shared: _, ...descriptor }: WebAssembly.MemoryDescriptor) {
    super(descriptor);
  }
};

/**
 * Runs `create`, which opens the first session, with a replaced `WebAssembly.instantiate` and `WebAssembly.Memory`: the
 * runtime's glue code gets the given module and an ordinary memory. Needed because workerd refuses to compile bytes,
 * and the glue code can only compile. Other calls are unaffected.
 */
async function withModule<T>(module: WebAssembly.Module, create: () => Promise<T>): Promise<T> {
  const original: Instantiate = WebAssembly.instantiate;
  const SharedMemory = WebAssembly.Memory;
  const waitAsync: unknown = Reflect.get(Atomics, 'waitAsync');
  const replaced = async (source: unknown, imports?: WebAssembly.Imports): Promise<unknown> => {
    if (!(source instanceof Uint8Array) || source.byteLength !== PLACEHOLDER.byteLength) {
      return original.call(WebAssembly, source as WebAssembly.Module, imports);
    }
    const instance = (await original.call(WebAssembly, module, imports)) as unknown as WebAssembly.Instance;
    heap = findMemory(instance.exports) ?? findMemory(imports);
    return { module, instance };
  };
  WebAssembly.instantiate = replaced as Instantiate;
  WebAssembly.Memory = OrdinaryMemory;
  // The glue code waits for other threads with it, which fails on ordinary memory.
  Reflect.set(Atomics, 'waitAsync', undefined);
  try {
    return await create();
  } finally {
    WebAssembly.instantiate = original;
    WebAssembly.Memory = SharedMemory;
    Reflect.set(Atomics, 'waitAsync', waitAsync);
  }
}

function findMemory(names: object | undefined): WebAssembly.Memory | undefined {
  for (const value of Object.values(names ?? {})) {
    if (value instanceof WebAssembly.Memory) return value;
    if (value !== null && typeof value === 'object') {
      const inner = Object.values(value).find((entry) => entry instanceof WebAssembly.Memory);
      if (inner instanceof WebAssembly.Memory) return inner;
    }
  }
  return undefined;
}

/**
 * onnxruntime-web on one thread, with a compiled module that the caller provides: a static import in workerd, `new
 * WebAssembly.Module(bytes)` in Node. An isolate has one WebAssembly instance: later calls share that of the first.
 *
 * @param module the package's `ort-wasm-simd-threaded.wasm`, its memory not shared (`wasm/onnxruntime/unshare.mjs`)
 * @param maxWholeBytes larger models are loaded with external weights, which takes the least memory
 */
export function createOnnxRuntime(module: WebAssembly.Module, maxWholeBytes = MAX_WHOLE_BYTES): OnnxRuntime {
  ort.env.wasm.numThreads = 1;
  ort.env.wasm.proxy = false;
  ort.env.wasm.wasmBinary = PLACEHOLDER;
  ort.env.logLevel = 'error';

  async function create(graph: Uint8Array, weights: Uint8Array | undefined): Promise<ort.InferenceSession> {
    return ort.InferenceSession.create(graph, {
      ...(weights && { externalData: [{ path: WEIGHTS_PATH, data: weights }] }),
      executionProviders: ['wasm'],
      graphOptimizationLevel: 'all',
      // Arena blocks grow in powers of two and are never freed; without the arena the heap is as small as possible.
      enableCpuMemArena: false,
      enableMemPattern: false,
      extra: { session: { disable_prepacking: weights ? '1' : '0' } },
    });
  }

  async function open(graph: Uint8Array, weights: Uint8Array | undefined): Promise<ort.InferenceSession> {
    if (ready !== undefined) {
      await ready;
      return create(graph, weights);
    }
    const first = withModule(module, () => create(graph, weights));
    ready = first.then(
      () => undefined,
      () => {
        ready = undefined;
      },
    );
    return first;
  }

  function load(model: Uint8Array): Promise<ort.InferenceSession> {
    if (model.byteLength <= maxWholeBytes) return open(model, undefined);
    const { graph, weights } = withExternalWeights(model);
    return open(graph, weights);
  }

  return {
    // Create the closures of a session in another function: here they would keep the model's bytes in memory.
    createSession: async (model) => sessionOf(await load(model)),
    memoryBytes: () => heap?.buffer.byteLength ?? 0,
  };
}

/** Whether a session of this isolate is running. */
let isRunning = false;

/**
 * Runs a session while no other one runs. The runtime keeps arrays of pointers on the WebAssembly stack while it
 * awaits, so that interleaved runs would overwrite them. On one thread a run awaits only its own microtasks and ends in
 * the same iteration of the event loop, like the calls that wait for it. The platform can therefore not end an
 * invocation in the middle of a run, and no call waits in vain.
 *
 * @param inputs may be views that the caller reuses as soon as this returns; a call that waits copies them
 */
async function runAlone(session: ort.InferenceSession, inputs: Tensors): Promise<Tensors> {
  const stableInputs = isRunning ? copied(inputs) : inputs;
  while (isRunning) await null;
  isRunning = true;
  try {
    return await session.run(stableInputs);
  } finally {
    isRunning = false;
  }
}

function copied(inputs: Tensors): Tensors {
  return Object.fromEntries(
    Object.entries(inputs).map(([name, { type, data, dims }]) => [name, new ort.Tensor(type, data.slice(), dims)]),
  );
}

function sessionOf(session: ort.InferenceSession): OnnxSession {
  return {
    run: (inputs) => runAlone(session, inputs),
    inputNames: session.inputNames,
    outputNames: session.outputNames,
  };
}

/** Float tensor over the caller's array. */
export function floatTensor(data: Float32Array, dims: readonly number[]): ort.Tensor {
  return new ort.Tensor('float32', data, dims);
}

/**
 * Float values of a named output.
 *
 * @throws if the model has no float output of this name
 */
export function floatOutput(outputs: Tensors, name: string): { data: Float32Array; dims: readonly number[] } {
  const tensor = outputs[name];
  if (tensor === undefined || !(tensor.data instanceof Float32Array)) {
    throw new Error(`the model has no float output "${name}"`);
  }
  return { data: tensor.data, dims: tensor.dims };
}
