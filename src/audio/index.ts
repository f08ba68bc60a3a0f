import { OutOfBounds } from './block-reader.ts';

export { release } from './memory.ts';
export { DAMAGED_SIZE } from './open.ts';
export { expandMuLaw } from './pcm.ts';
export { type AudioPorts, type Checkpoint, Recording, type RecordingEnd, type RecordingFacts } from './recording.ts';
export { textKind } from './sniff.ts';
export * from './types.ts';

/** Whether an error says that sizes or places in a file cannot be. */
export const isOutOfBounds = (error: unknown): boolean => error instanceof OutOfBounds;
