/** A state folder, or another local file, that cannot be used as it is; `message` is meant for the person at the terminal. */
export class LocalStateError extends Error {}
