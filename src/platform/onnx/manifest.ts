import type { SegmentationInfo, Tuning, TuningBySetting } from '../../diarization/model-ports.ts';
import type { SettingName } from '../../diarization/parameters.ts';
import type { IdentificationParameters } from '../../voiceprint/identification.ts';

/** One model file. `path` is relative to `models/`; the service loads it from storage under its hash. */
export interface ModelFile {
  readonly path: string;
  readonly bytes: number;
  readonly sha256: string;
  /** Download of a file that is not in the repository. */
  readonly origin?: FileOrigin;
}

/** A public URL; with `member`, the file is inside that archive. Size and hash are those of the download. */
export interface FileOrigin {
  readonly url: string;
  readonly bytes: number;
  readonly sha256: string;
  readonly member?: string;
}

interface ModelEntry {
  readonly id: string;
  readonly licence: string;
  readonly source: string;
  readonly tuned: TuningBySetting;
}

/** Facts that the metadata of a segmentation model may also contain. */
type SegmentationFacts = Omit<SegmentationInfo, 'id' | 'tuned'> & { readonly sampleRateHz: number };

export type SegmentationEntry = ModelEntry & { readonly facts: SegmentationFacts } & (
    | {
        /**
         * segmentation-v8, run by its kernel on mel powers, which overlapping windows share. `whole` and `wholeInt8` are
         * the network with its front end as ONNX, for other engines.
         */
        readonly form: 'split';
        readonly files: { readonly weights: ModelFile; readonly whole?: ModelFile; readonly wholeInt8?: ModelFile };
      }
    | {
        readonly form: 'whole';
        readonly files: { readonly model: ModelFile };
      }
    | {
        /** segmentation-3.0, run by its kernel on packed weights; `model` is the network as ONNX, for other engines. */
        readonly form: 'kernel';
        readonly files: { readonly weights: ModelFile; readonly model: ModelFile };
      }
  );

interface EmbeddingFacts {
  readonly sampleRateHz: number;
  readonly dimension: number;
  readonly melBands: number;
  /** Filterbank frames per trunk frame. */
  readonly frameStride: number;
  readonly stretchSamples: number;
  /**
   * Features are raised to a floor this far below the loudest speech of a stretch; absent for a model without a floor.
   */
  readonly featureFloorNats?: number;
}

export type EmbeddingEntry = ModelEntry & {
  readonly facts: EmbeddingFacts;
  /** Maps scores to probabilities; absent for an embedder without fitted parameters. */
  readonly identification?: IdentificationParameters;
} & (
    | {
        /** CAM++, its trunk run by its kernel on packed weights; `trunk` is the trunk as ONNX, for other engines. */
        readonly form: 'kernel';
        readonly files: {
          readonly weights: ModelFile;
          readonly head: ModelFile;
          readonly trunk: ModelFile;
          readonly plda?: ModelFile;
        };
      }
    | { readonly form: 'whole'; readonly files: { readonly model: ModelFile; readonly plda?: ModelFile } }
  );

export interface ModelPack {
  readonly name: string;
  /** For precision-2, which uses its mean with `fastSegmentation`. */
  readonly segmentation: SegmentationEntry;
  /** For community-1 and live streams, which need a fast model; absent if one model serves all. */
  readonly fastSegmentation?: SegmentationEntry;
  readonly embedding: EmbeddingEntry;
}

export interface ModelManifest {
  readonly version: 1;
  /** Name of the pack in use. */
  readonly use: string;
  readonly packs: ReadonlyMap<string, ModelPack>;
}

/**
 * Reads `models/manifest.json`.
 *
 * @param json the parsed file
 * @throws with the path of the invalid entry
 */
export function parseManifest(json: unknown): ModelManifest {
  const root = object(json, 'manifest');
  if (root.version !== 1) throw fault('version', 'must be 1');
  const use = text(root.use, 'use');
  const packs = new Map<string, ModelPack>();
  for (const [name, value] of Object.entries(object(root.packs, 'packs'))) {
    const at = `packs.${name}`;
    const pack = object(value, at);
    packs.set(name, {
      name,
      segmentation: segmentationEntry(pack.segmentation, `${at}.segmentation`),
      ...(pack.fastSegmentation === undefined
        ? {}
        : { fastSegmentation: segmentationEntry(pack.fastSegmentation, `${at}.fastSegmentation`) }),
      embedding: embeddingEntry(pack.embedding, `${at}.embedding`),
    });
  }
  if (!packs.has(use)) throw fault('use', `names no pack: "${use}"`);
  return { version: 1, use, packs };
}

/** The pack that `use` names. */
export function packInUse(manifest: ModelManifest): ModelPack {
  return manifest.packs.get(manifest.use)!;
}

/**
 * Whether a pack is fast enough for live streams: a whole embedder processes the same seconds again for every live
 * window, 10 to 18 times a second.
 */
export const canFollowStreams = ({ embedding }: ModelPack): boolean => embedding.form === 'kernel';

/** The segmentations whose mean a setting of the pack uses; live streams use that of community-1. */
export function segmentationsFor(pack: ModelPack, setting: SettingName): readonly SegmentationEntry[] {
  const { segmentation, fastSegmentation } = pack;
  return setting === 'community-1' ? [fastSegmentation ?? segmentation] : segmentationsOf(pack);
}

/** All segmentation models of a pack. */
export function segmentationsOf({ segmentation, fastSegmentation }: ModelPack): readonly SegmentationEntry[] {
  return fastSegmentation === undefined ? [segmentation] : [segmentation, fastSegmentation];
}

/** The file of a segmentation model that a service loads. */
export function segmentationFile({ form, files }: SegmentationEntry): ModelFile {
  switch (form) {
    case 'split':
    case 'kernel':
      return files.weights;
    case 'whole':
      return files.model;
  }
}

/** The weights of an embedder that a service loads. */
export function embeddingFiles({ form, files }: EmbeddingEntry): readonly ModelFile[] {
  return form === 'kernel' ? [files.weights, files.head] : [files.model];
}

/** The files that a service loads to run the pack, without the extra forms for other engines. */
export function filesToLoad(pack: ModelPack): readonly ModelFile[] {
  const { plda } = pack.embedding.files;
  return [
    ...segmentationsOf(pack).map(segmentationFile),
    ...embeddingFiles(pack.embedding),
    ...(plda === undefined ? [] : [plda]),
  ];
}

/** All files of the pack. */
export function allFiles(pack: ModelPack): readonly ModelFile[] {
  const entries = [...segmentationsOf(pack), pack.embedding];
  return entries.flatMap(({ files }) => Object.values(files).filter((file) => file !== undefined));
}

function segmentationEntry(value: unknown, at: string): SegmentationEntry {
  const entry = object(value, at);
  const files = object(entry.files, `${at}.files`);
  const facts = object(entry.facts, `${at}.facts`);
  const fact = (name: string) => count(facts[name], `${at}.facts.${name}`);
  const shared = {
    ...modelEntry(entry, at),
    facts: {
      sampleRateHz: fact('sampleRateHz'),
      windowSamples: fact('windowSamples'),
      classes: fact('classes'),
      maxLocalSpeakers: fact('maxLocalSpeakers'),
      maxSimultaneous: fact('maxSimultaneous'),
      frameShiftSamples: fact('frameShiftSamples'),
      frameSizeSamples: fact('frameSizeSamples'),
      framesPerWindow: fact('framesPerWindow'),
    },
  };
  const required = <Name extends string>(...names: Name[]) => filesNamed(files, names, `${at}.files`);
  if (entry.form === 'whole') return { ...shared, form: 'whole', files: required('model') };
  if (entry.form === 'kernel') return { ...shared, form: 'kernel', files: required('weights', 'model') };
  if (entry.form !== 'split') throw fault(`${at}.form`, 'must be "split", "whole" or "kernel"');
  const whole = files.whole === undefined ? {} : { whole: file(files.whole, `${at}.files.whole`) };
  const wholeInt8 = files.wholeInt8 === undefined ? {} : { wholeInt8: file(files.wholeInt8, `${at}.files.wholeInt8`) };
  return { ...shared, form: 'split', files: { ...required('weights'), ...whole, ...wholeInt8 } };
}

function embeddingEntry(value: unknown, at: string): EmbeddingEntry {
  const entry = object(value, at);
  const files = object(entry.files, `${at}.files`);
  const raw = object(entry.facts, `${at}.facts`);
  const fact = (name: string) => count(raw[name], `${at}.facts.${name}`);
  const shared = {
    ...modelEntry(entry, at),
    facts: {
      sampleRateHz: fact('sampleRateHz'),
      dimension: fact('dimension'),
      melBands: fact('melBands'),
      frameStride: fact('frameStride'),
      stretchSamples: fact('stretchSamples'),
      ...(raw.featureFloorNats === undefined ? {} : { featureFloorNats: fact('featureFloorNats') }),
    },
  };
  const fittedParameters =
    entry.identification === undefined
      ? {}
      : { identification: identification(entry.identification, `${at}.identification`) };
  const plda = files.plda === undefined ? {} : { plda: file(files.plda, `${at}.files.plda`) };
  const required = <Name extends string>(...names: Name[]) => ({
    ...filesNamed(files, names, `${at}.files`),
    ...plda,
  });
  if (entry.form === 'whole') return { ...shared, ...fittedParameters, form: 'whole', files: required('model') };
  if (entry.form !== 'kernel') throw fault(`${at}.form`, 'must be "whole" or "kernel"');
  return { ...shared, ...fittedParameters, form: 'kernel', files: required('weights', 'head', 'trunk') };
}

function filesNamed<Name extends string>(files: Fields, names: readonly Name[], at: string): Record<Name, ModelFile> {
  const entries = names.map((name) => [name, file(files[name], `${at}.${name}`)]);
  return Object.fromEntries(entries) as Record<Name, ModelFile>;
}

function identification(value: unknown, at: string): IdentificationParameters {
  const entry = object(value, at);
  const number = (name: string): number => {
    const value = entry[name];
    if (typeof value !== 'number' || !Number.isFinite(value)) throw fault(`${at}.${name}`, 'must be a number');
    return value;
  };
  const noiseSeconds = number('noiseSeconds');
  if (noiseSeconds < 0) throw fault(`${at}.noiseSeconds`, 'must not be negative');
  return { slope: number('slope'), offset: number('offset'), noiseSeconds };
}

/** Names under which parameters are tuned: a setting, or all settings. */
const TUNED_NAMES: readonly string[] = ['all', 'precision-2', 'community-1'];

function modelEntry(entry: Fields, at: string): ModelEntry {
  const tuned = object(entry.tuned ?? {}, `${at}.tuned`);
  const unknown = Object.keys(tuned).find((name) => !TUNED_NAMES.includes(name));
  if (unknown !== undefined) throw fault(`${at}.tuned.${unknown}`, `must be one of: ${TUNED_NAMES.join(', ')}`);
  return {
    id: text(entry.id, `${at}.id`),
    licence: text(entry.licence, `${at}.licence`),
    source: text(entry.source, `${at}.source`),
    tuned: Object.fromEntries(
      Object.entries(tuned).map(([name, inner]) => [name, tuning(inner, `${at}.tuned.${name}`)]),
    ),
  };
}

function tuning(value: unknown, at: string): Tuning {
  const entries = Object.entries(object(value, at)).map(([name, inner]): [string, number | boolean | Tuning] => {
    if (typeof inner === 'number' || typeof inner === 'boolean') return [name, inner];
    return [name, tuning(inner, `${at}.${name}`)];
  });
  return Object.fromEntries(entries);
}

function file(value: unknown, at: string): ModelFile {
  const entry = object(value, at);
  const path = text(entry.path, `${at}.path`);
  if (path.startsWith('/') || path.split('/').includes('..')) throw fault(`${at}.path`, 'must stay inside models/');
  const origin = entry.origin;
  return {
    path,
    bytes: count(entry.bytes, `${at}.bytes`),
    sha256: hash(entry.sha256, `${at}.sha256`),
    ...(origin === undefined ? {} : { origin: fileOrigin(origin, `${at}.origin`) }),
  };
}

function fileOrigin(value: unknown, at: string): FileOrigin {
  const entry = object(value, at);
  const member = entry.member;
  return {
    url: text(entry.url, `${at}.url`),
    bytes: count(entry.bytes, `${at}.bytes`),
    sha256: hash(entry.sha256, `${at}.sha256`),
    ...(member === undefined ? {} : { member: text(member, `${at}.member`) }),
  };
}

type Fields = Readonly<Record<string, unknown>>;

function object(value: unknown, at: string): Fields {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw fault(at, 'must be an object');
  return value as Fields;
}

function text(value: unknown, at: string): string {
  if (typeof value !== 'string' || value === '') throw fault(at, 'must be a text');
  return value;
}

function count(value: unknown, at: string): number {
  if (typeof value !== 'number' || !Number.isInteger(value) || value < 1) throw fault(at, 'must be a whole number ≥ 1');
  return value;
}

function hash(value: unknown, at: string): string {
  if (typeof value !== 'string' || !/^[0-9a-f]{64}$/.test(value))
    throw fault(at, 'must be a SHA-256 in lower-case hex');
  return value;
}

function fault(at: string, problem: string): Error {
  return new Error(`models/manifest.json: ${at} ${problem}`);
}
