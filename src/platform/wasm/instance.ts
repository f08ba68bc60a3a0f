import { grown } from '../../audio/memory.ts';

/** A reused array outside the wasm memory, whose growth would detach all views of it. */
export class ResultBuffer {
  private store: Float32Array = new Float32Array(0);
  /**
   * The last views: most results have the same position and length, and creating a view takes longer than copying.
   */
  private source = new Float32Array(0);
  private view: Float32Array = this.store;

  /** Copies `[pointer, pointer + count)` floats of the memory. The view is valid until the next call. */
  copy(memory: WebAssembly.Memory, pointer: number, count: number): Float32Array {
    const view = this.reserve(count);
    if (count === 0) return view;
    const { source } = this;
    // A buffer that grew is detached: its views have no length any more.
    if (source.byteOffset !== pointer || source.length !== count || source.buffer !== memory.buffer) {
      this.source = new Float32Array(memory.buffer, pointer, count);
    }
    view.set(this.source);
    return view;
  }

  /** A view of `count` floats with unspecified contents. */
  reserve(count: number): Float32Array {
    this.store = grown(this.store, 0, count);
    if (this.view.length !== count || this.view.buffer !== this.store.buffer) this.view = this.store.subarray(0, count);
    return this.view;
  }
}

/**
 * Instantiates a compiled reactor module synchronously. The modules need no system; the few WASI functions that libc
 * links in return "not supported".
 *
 * @param imports functions of ours that the module imports
 */
export function instantiate<Exports>(module: WebAssembly.Module, imports: WebAssembly.Imports = {}): Exports {
  const notSupported = () => 52;
  const wasi: Record<string, () => number> = {};
  for (const { module: from, name } of WebAssembly.Module.imports(module)) {
    if (from in imports) continue;
    if (from !== 'wasi_snapshot_preview1') throw new Error(`unexpected wasm import ${from}.${name}`);
    wasi[name] = notSupported;
  }
  wasi.proc_exit = () => {
    throw new WebAssembly.RuntimeError('the module exited');
  };
  const instance = new WebAssembly.Instance(module, { ...imports, wasi_snapshot_preview1: wasi });
  // The type of a module does not include its exports; the caller states them.
  const exports = instance.exports as unknown as Exports & { _initialize(): void };
  exports._initialize();
  return exports;
}
