/** The same module with an ordinary memory in the place of its shared one; a copy. Throws where the module imports no shared memory. */
export function unshared(module: Uint8Array): Uint8Array<ArrayBuffer>;
/** Path of the package's module. */
export function packaged(): string;
