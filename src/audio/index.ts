export { BlockReader } from './block-reader.ts';
export { release } from './memory.ts';
export { probeAudio } from './probe.ts';
export { type AudioPorts, outputSampleCount, readSamples } from './read-samples.ts';
export type { AudioIndex } from './registry.ts';
export { textKind } from './sniff.ts';
export * from './types.ts';
