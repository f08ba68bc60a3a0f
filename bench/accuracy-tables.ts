import type { PackResult, SettingResult } from './accuracy.ts';
import { type LabelledRecording, setsOf } from './recordings.ts';
import { table } from './report.ts';
import { type Agreement, agreement, type Judged } from './score/agreement.ts';
import { type DiarizationError, pool, rate } from './score/der.ts';
import { sherpaVersion } from './sherpa.ts';
import { bestRow } from './sherpa-sweep.ts';

const number = (value: number): string => value.toFixed(1);

/** The accuracy part of the report, or that of the generated meetings. */
export function renderAccuracy(
  recordings: readonly LabelledRecording[],
  packs: readonly PackResult[],
  hasReferenceSegmentation: boolean,
  origin: string,
): string {
  const minutes = recordings.reduce((total, { samples }) => total + samples.length, 0) / 16000 / 60;
  const proven = packs
    .filter(({ provenThroughService }) => provenThroughService.length > 0)
    .map(({ label, provenThroughService }) => `${label}: ${provenThroughService.join(', ')}`)
    .join('; ');
  const missing = hasReferenceSegmentation
    ? ''
    : '\n\n**segmentation-3.0 int8 was not measured:** `../shared/models` is not here.';
  const sets = setsOf(recordings);
  const columns = sets.length > 1 ? [...sets, 'all'] : ['DER'];
  return `${recordings.length} labelled recordings, ${minutes.toFixed(0)} minutes (${origin}). DER in per cent, no collar, overlap scored, pooled over a folder;
miss, false alarm and confusion over all. "Oracle" puts the reference's speakers in the place of the clustering and keeps everything else: what the segmentation costs.
sherpa-onnx ${sherpaVersion()} has the same weights, in floating point where the service runs 8 bits, and its defaults; its clustering threshold was chosen on these very recordings${sets.length > 1 ? ', once for all and once for each folder' : ''},
which is the most favourable way to look at it. The figures were made in Node with the Worker's code and WebAssembly; through the
real service the whole answers were equal for ${proven} (both settings).${missing}

${table(
  ['segmentation', 'what', ...columns, 'miss', 'false alarm', 'confusion', 'speaker counts right'],
  packs.flatMap((pack) => derRows(recordings, pack)),
  2,
)}

### Recordings

DER and speakers found / speakers there, precision-2.

${recordingTable(recordings, packs)}

### Confidence

The \`confidence\` of a frame against being right (exactly the reference's speakers under the best mapping), and a turn's confidence for its own
speaker against that speaker really talking for at least half of the turn. AUC: chance that something right has a higher confidence than something wrong. Calibration error: mean
distance between confidence and share right, over ten bins.

${table(
  ['segmentation', 'setting', 'of', 'number', 'right', 'mean confidence', 'correlation', 'AUC', 'calibration error'],
  packs.flatMap(({ label, settings }) => settings.flatMap((one) => confidenceRows(label, one))),
  3,
)}

Frames by confidence, ${packs[0].label}, precision-2:

${reliabilityTable(agreement(packs[0].settings[0].frames))}`;
}

function derRows(recordings: readonly LabelledRecording[], pack: PackResult): string[][] {
  const row = (what: string, errors: readonly DiarizationError[]): string[] => [
    pack.label,
    what,
    ...ratesOf(recordings, errors),
    countsRight(errors),
  ];
  const rows = pack.settings.flatMap(({ setting, errors, oracleErrors, givenErrors }) => [
    row(`**${setting}**`, errors),
    row(`${setting}, number of speakers given`, givenErrors),
    // The oracle is told the speakers: how many it finds says nothing.
    [pack.label, `${setting}, oracle clustering`, ...ratesOf(recordings, oracleErrors), '–'],
  ]);
  if (!pack.sherpa) return rows;
  const forAll = bestRow(pack.sherpa, () => true);
  rows.push(row(`sherpa-onnx, best threshold for all (${forAll.threshold})`, forAll.errors));
  const { sherpa } = pack;
  const sets = setsOf(recordings);
  if (sets.length === 1) return rows;
  const best = sets.map((set) => bestRow(sherpa, (index) => recordings[index].set === set));
  const perFolder = recordings.map(({ set }, index) => best[sets.indexOf(set)].errors[index]);
  const thresholds = best.map(({ threshold }) => threshold).join(', ');
  rows.push(row(`sherpa-onnx, best threshold for each folder (${thresholds})`, perFolder));
  return rows;
}

function ratesOf(recordings: readonly LabelledRecording[], errors: readonly DiarizationError[]): string[] {
  const all = rate(pool(errors));
  const sets = setsOf(recordings);
  const perSet = sets.map((set) => number(rate(pool(errors.filter((_, index) => recordings[index].set === set))).der));
  return [
    ...(sets.length > 1 ? perSet : []),
    `**${number(all.der)}**`,
    ...[all.miss, all.falseAlarm, all.confusion].map(number),
  ];
}

function countsRight(errors: readonly DiarizationError[]): string {
  const right = errors.filter((error) => error.referenceSpeakers === error.hypothesisSpeakers).length;
  return `${right} of ${errors.length}`;
}

function recordingTable(recordings: readonly LabelledRecording[], packs: readonly PackResult[]): string {
  const rows = recordings.map(({ set, name }, index) => {
    const cells = packs.flatMap(({ settings }) => {
      const error = settings[0].errors[index];
      return [number(rate(error).der), `${error.hypothesisSpeakers} / ${error.referenceSpeakers}`];
    });
    return [`${set}/${name}`, ...cells];
  });
  return table(['recording', ...packs.flatMap(({ label }) => [label, 'speakers'])], rows);
}

function confidenceRows(label: string, { setting, frames, turns }: SettingResult): string[][] {
  const row = (what: string, judged: readonly Judged[]): string[] => {
    const { count, shareRight, meanConfidence, correlation, auc, calibrationError } = agreement(judged);
    const values = [shareRight, meanConfidence, correlation, auc, calibrationError];
    return [label, setting, what, String(count), ...values.map((value) => value?.toFixed(3) ?? 'undefined')];
  };
  return [row('frames', frames), row('turns', turns)];
}

function reliabilityTable({ bins }: Agreement): string {
  const rows = bins
    .filter(({ count }) => count > 0)
    .map(({ fromConfidence, count, meanConfidence, shareRight }) => [
      `${(100 * fromConfidence).toFixed(0)}–${(100 * fromConfidence + 10).toFixed(0)}`,
      String(count),
      (100 * meanConfidence).toFixed(1),
      (100 * shareRight).toFixed(1),
    ]);
  return table(['confidence', 'frames', 'mean', 'right, %'], rows);
}
