/**
 * The runtime's WebAssembly module, compiled at build time as workerd requires, with an ordinary memory
 * (`wasm/onnxruntime/unshare.mjs`). Separate from `runtime.ts` because Node cannot import `.wasm`: there, pass `new
 * WebAssembly.Module(unshared(bytes))` to `createOnnxRuntime`.
 */
import ortModule from '../../../.wrangler/onnxruntime/ort.wasm';

export default ortModule;
