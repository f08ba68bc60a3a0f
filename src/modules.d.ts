/** Workers bundle `.wasm` imports as compiled modules. */
declare module '*.wasm' {
  const module: WebAssembly.Module;
  export default module;
}

/** Large files of the pages are bundled as bytes (rules of `wrangler.toml`). */
declare module '*/playground/reference.js' {
  const bytes: ArrayBuffer;
  export default bytes;
}
declare module '*/playground/reference.css' {
  const bytes: ArrayBuffer;
  export default bytes;
}
declare module '*.mp3' {
  const bytes: ArrayBuffer;
  export default bytes;
}

/** The other files of the pages are bundled as text. */
declare module '*.html' {
  const text: string;
  export default text;
}
declare module '*/playground.css' {
  const text: string;
  export default text;
}
declare module '*/docs.css' {
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
declare module '*/playground/docs.js' {
  const text: string;
  export default text;
}
