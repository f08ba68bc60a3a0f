/**
 * A copy of the module with ordinary memory in place of shared memory. @throws if the module imports no shared memory
 */
export function unshared(module: Uint8Array): Uint8Array<ArrayBuffer>;
/** Path of the npm package's module. */
export function packaged(): string;
