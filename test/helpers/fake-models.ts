import { concatenated } from '../../src/audio/memory.ts';
import type { PoolingPort, SegmentationInfo, TrunkOutput } from '../../src/diarization/model-ports.ts';
import { buildPowerset } from '../../src/diarization/segmenter.ts';
import type { AnalysisPorts } from '../../src/diarization/shard.ts';

/**
 * Models that take the speakers from the values of the samples: `k / 100` is speaker k (1…9) alone,
 * `(10 i + j) / 100` speakers i and j at once, 0 silence. They have the shapes and windows of the real models. Their
 * results are exact, so that tests of the pipeline do not depend on models.
 */
export const SEGMENTATION_INFO: SegmentationInfo = {
  id: 'fake-segmentation',
  windowSamples: 160000,
  classes: 7,
  maxLocalSpeakers: 3,
  maxSimultaneous: 2,
  frameShiftSamples: 320,
  frameSizeSamples: 320,
  framesPerWindow: 500,
  tuned: {},
};

const BANDS = 80;
const CHANNELS = 12;
const powerset = buildPowerset(3, 2);

function speakersAt(sample: number): number[] {
  const code = Math.round(Math.abs(sample) * 100);
  if (code === 0) return [];
  return code < 10 ? [code] : [Math.floor(code / 10), code % 10];
}

/** The first values of every second feature frame. */
function fakeTrunk(feats: Float32Array, frames: number): TrunkOutput {
  const frameCount = Math.ceil(frames / 2);
  const out = new Float32Array(frameCount * CHANNELS);
  for (let frame = 0; frame < frameCount; frame++) {
    out.set(feats.subarray(2 * frame * BANDS, 2 * frame * BANDS + CHANNELS), frame * CHANNELS);
  }
  return { frames: out, frameCount, channels: CHANNELS };
}

export function fakePorts(onRun: (stage: 'segmentation' | 'trunk') => void = () => undefined): AnalysisPorts {
  return {
    segmentation: {
      form: 'whole',
      info: SEGMENTATION_INFO,
      async run(window) {
        onRun('segmentation');
        const local = new Map<number, number>();
        const frames = Math.floor(window.length / 320);
        const scores = new Float32Array(frames * 7).fill(Math.log(0.005));
        for (let frame = 0; frame < frames; frame++) {
          const members = new Uint8Array(3);
          for (const speaker of speakersAt(window[frame * 320 + 160])) {
            if (!local.has(speaker)) local.set(speaker, local.size);
            const slot = local.get(speaker)!;
            if (slot < 3) members[slot] = 1;
          }
          let index = 0;
          for (let candidate = 0; candidate < 7; candidate++) {
            if (members.every((member, slot) => powerset.mapping[candidate * 3 + slot] === member)) index = candidate;
          }
          scores[frame * 7 + index] = Math.log(0.97);
        }
        return scores;
      },
    },
    filterbank: {
      compute(samples) {
        const frames = samples.length < 400 ? 0 : 1 + Math.floor((samples.length - 400) / 160);
        const feats = new Float32Array(frames * BANDS);
        for (let frame = 0; frame < frames; frame++) {
          for (const speaker of speakersAt(samples[frame * 160 + 200])) feats[frame * BANDS + speaker] = 1;
        }
        return feats;
      },
    },
    melPower: {
      compute() {
        throw new Error('the segmentation has its front end inside');
      },
    },
    embedding: {
      form: 'split',
      info: { id: 'fake-embedder', dimension: CHANNELS, frameStride: 2, stretchSamples: 160000, tuned: {} },
      async trunk(feats, frames) {
        onRun('trunk');
        return fakeTrunk(feats, frames);
      },
      async continueTrunk(feats, frames, state) {
        onRun('trunk');
        const pending = new Float32Array(state?.slice().buffer ?? new ArrayBuffer(0));
        const all = concatenated(Float32Array, [pending, feats.subarray(0, frames * BANDS)]);
        const whole = 2 * Math.floor(Math.max(0, all.length / BANDS - 8) / 2);
        return { ...fakeTrunk(all, whole), state: new Uint8Array(all.slice(whole * BANDS).buffer) };
      },
      async head(pooled, batch) {
        const out = new Float32Array(batch * CHANNELS);
        for (let row = 0; row < batch; row++) {
          // Negative values come from the mean subtraction: an embedding depends slightly on the other speakers.
          const means = pooled.subarray(row * 2 * CHANNELS, row * 2 * CHANNELS + CHANNELS);
          out.set(
            means.map((mean) => (mean < 0 ? 0.1 * mean : mean)),
            row * CHANNELS,
          );
        }
        return out;
      },
    },
    pooling: plainPooling,
  };
}

/** Mean and standard deviation by their definitions, in double precision. */
export const plainPooling: PoolingPort = {
  pool(pieces) {
    const channels = pieces[0]?.trunk.channels ?? 0;
    const out = new Float32Array(2 * channels);
    let kept = 0;
    for (let channel = 0; channel < channels; channel++) {
      const values: number[] = [];
      for (const { trunk, mask } of pieces) {
        mask.forEach((keep, frame) => {
          if (keep !== 0) values.push(trunk.frames[frame * channels + channel]);
        });
      }
      kept = values.length;
      const mean = values.reduce((sum, value) => sum + value, 0) / kept;
      const square = values.reduce((sum, value) => sum + value * value, 0) / kept;
      out[channel] = mean;
      out[channels + channel] = Math.sqrt(Math.max(1e-5, square - mean * mean));
    }
    return kept === 0 ? undefined : out;
  },
};

/** Samples of a script of turns: [speakers, seconds], in order. */
export function recording(script: readonly (readonly [speakers: readonly number[], seconds: number])[]): Float32Array {
  const parts = script.map(([speakers, seconds]) => {
    const code = speakers.length === 2 ? 10 * speakers[0] + speakers[1] : (speakers[0] ?? 0);
    // Signs alternate: a constant signal would be an offset without level.
    return Float32Array.from({ length: Math.round(seconds * 16000) }, (_, at) => (at % 2 === 0 ? code : -code) / 100);
  });
  const samples = new Float32Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    samples.set(part, at);
    at += part.length;
  }
  return samples;
}

/** [startSample, endSample) in blocks of uneven sizes. */
export async function* blocksOf(samples: Float32Array, startSample = 0, endSample = samples.length) {
  let size = 4321;
  for (let at = startSample; at < endSample; at += size) {
    size = 1000 + ((size * 7919) % 30011);
    yield samples.slice(at, Math.min(endSample, at + size));
  }
}
