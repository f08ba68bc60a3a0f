import { instantiate } from './instance.ts';

/** Exports that the modules of `wasm/networks` share. Pointers are byte offsets. */
interface NetworkExports {
  readonly memory: WebAssembly.Memory;
  weights(): number;
  weights_size(): number;
  input(): number;
  input_capacity(): number;
  result(): number;
  start(count: number): number;
  step(): number;
  /** Only of networks that continue streams. */
  state?(): number;
  state_size?(): number;
  resume?(count: number): number;
}

/** What a network reads and returns. */
interface NetworkShape {
  /** The network's name in messages. */
  readonly name: string;
  /** The network's number in the header of the weights. */
  readonly number: number;
  /** Number of floats in one item of the input: of one sample, or of one frame. */
  readonly itemSize: number;
  /** Number of floats in one frame of the result. */
  readonly channels: number;
}

export interface NetworkResult {
  /** [frames, channels]; the caller owns it */
  readonly values: Float32Array;
  readonly frames: number;
  /** State of the stream after the run; empty for a run that belongs to no stream. */
  readonly state: Uint8Array;
}

/** A stream that a run continues. */
export interface Continuation {
  /** State after the last run; undefined at the start of the stream. */
  readonly state: Uint8Array | undefined;
}

/** One run of a network. */
interface Run {
  readonly input: Float32Array;
  readonly continuation: Continuation | undefined;
  isStarted: boolean;
  frames: number;
  /** Set at the end of the run. */
  outcome: Omit<NetworkResult, 'frames'> | { readonly error: unknown } | undefined;
}

/** 'RCNW', version, network, bytes of weights; 32 bits each. */
const HEADER_BYTES = 16;
const MAGIC = 0x574e4352;
const VERSION = 1;

/** @throws if the file is not that of the network, or is incomplete */
function weightsIn(file: Uint8Array, { name, number }: NetworkShape, size: number): Uint8Array {
  const header = new DataView(file.buffer, file.byteOffset, file.byteLength);
  const expected = [MAGIC, VERSION, number, size];
  const isOurs =
    file.byteLength === HEADER_BYTES + size &&
    expected.every((value, index) => header.getUint32(4 * index, true) === value);
  if (!isOurs) {
    throw new Error(
      `not the weights of ${name}: needs ${HEADER_BYTES + size} bytes, version ${VERSION}, network ${number}`,
    );
  }
  return file.subarray(HEADER_BYTES);
}

/** Instantiates the module of a network and copies the weights into it, of which nothing else is kept. */
export function openNetwork(
  module: WebAssembly.Module,
  weights: Uint8Array,
  shape: NetworkShape,
  pause: () => Promise<void>,
): NetworkKernel {
  const network = instantiate<NetworkExports>(module);
  const payload = weightsIn(weights, shape, network.weights_size());
  new Uint8Array(network.memory.buffer).set(payload, network.weights());
  return new NetworkKernel(network, shape, pause);
}

/**
 * A network in WebAssembly, which computes a run in short steps. The module has memory for one run, so that runs wait in
 * a queue. No caller waits for another one: each advances the first run of the queue, also if it is not its own, until
 * its own run has ended. The platform may end an invocation between two steps; others then complete its run and
 * continue with theirs.
 */
export class NetworkKernel {
  private readonly queue: Run[] = [];

  constructor(
    private readonly network: NetworkExports,
    private readonly shape: NetworkShape,
    private readonly pause: () => Promise<void>,
  ) {}

  /**
   * @param input [items, itemSize]; the caller may reuse it as soon as this returns its promise
   * @throws RangeError if the input is too short or too long for the network
   */
  async run(input: Float32Array, continuation?: Continuation): Promise<NetworkResult> {
    const run: Run = {
      // Without a queue the first step copies the input into the module.
      input: this.queue.length > 0 ? input.slice() : input,
      continuation,
      isStarted: false,
      frames: 0,
      outcome: undefined,
    };
    this.queue.push(run);
    try {
      this.advance();
      while (run.outcome === undefined) {
        await this.pause();
        if (run.outcome === undefined) this.advance();
      }
    } finally {
      const place = this.queue.indexOf(run);
      if (place >= 0) this.queue.splice(place, 1);
    }
    if ('error' in run.outcome) throw run.outcome.error;
    return { ...run.outcome, frames: run.frames };
  }

  /** Linear memory in bytes; it never grows. */
  memoryBytes(): number {
    return this.network.memory.buffer.byteLength;
  }

  /** Computes one step of the first run of the queue, and removes the run after its last one. */
  private advance(): void {
    const [run] = this.queue;
    try {
      if (!run.isStarted) this.start(run);
      if (this.network.step() !== 0) return;
      const { memory, result } = this.network;
      const values = new Float32Array(memory.buffer, result(), run.frames * this.shape.channels).slice();
      run.outcome = { values, state: run.continuation ? this.state().slice() : new Uint8Array(0) };
    } catch (error) {
      run.outcome = { error };
    }
    this.queue.shift();
  }

  private start(run: Run): void {
    const { name, itemSize } = this.shape;
    const items = run.input.length / itemSize;
    const capacity = this.network.input_capacity();
    run.frames = -1;
    if (items <= capacity && Number.isInteger(items)) {
      new Float32Array(this.network.memory.buffer, this.network.input(), run.input.length).set(run.input);
      run.frames = this.begin(items, run.continuation);
    }
    if (run.frames < 0) throw new RangeError(`${name} cannot process ${items} items; at most ${capacity}`);
    run.isStarted = true;
  }

  private begin(items: number, continuation: Continuation | undefined): number {
    if (!continuation) return this.network.start(items);
    if (!this.network.resume) throw new Error(`${this.shape.name} keeps no state`);
    const state = this.state();
    if (continuation.state) state.set(continuation.state);
    else state.fill(0);
    return this.network.resume(items);
  }

  /** A view of the state of a stream in the module. */
  private state(): Uint8Array {
    const { memory, state, state_size: size } = this.network;
    return new Uint8Array(memory.buffer, state?.() ?? 0, size?.() ?? 0);
  }
}
