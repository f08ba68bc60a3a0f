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

/** Files of the playground are bundled as text. */
declare module '*.html' {
  const text: string;
  export default text;
}
declare module '*/playground.css' {
  const text: string;
  export default text;
}
declare module '*/playground/playground.js' {
  const text: string;
  export default text;
}
declare module '*/playground/microphone-frames.js' {
  const text: string;
  export default text;
}
