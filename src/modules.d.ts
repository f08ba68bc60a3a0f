/** Workers bundle `.wasm` imports as compiled modules. */
declare module '*.wasm' {
  const module: WebAssembly.Module;
  export default module;
}

/** Files of the reference page are bundled as bytes (rules of `wrangler.toml`). */
declare module 'swagger-ui-dist/*' {
  const bytes: ArrayBuffer;
  export default bytes;
}
