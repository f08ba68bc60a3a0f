/**
 * The runtime's WebAssembly module, compiled at build time as workerd demands. Kept apart from `runtime.ts` because Node cannot
 * import `.wasm`: there, pass `new WebAssembly.Module(bytes)` of the same file to `createOnnxRuntime`.
 */
import ortModule from 'onnxruntime-web/ort-wasm-simd-threaded.wasm';

export default ortModule;
