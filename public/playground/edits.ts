import type { JobState } from '../../client/sdk/types.ts';

/** A list item of an output that one speaker said. */
interface Spoken {
  readonly speaker: string;
  readonly start: number;
  readonly end: number;
  readonly text?: string;
  readonly confidence?: Readonly<Record<string, number>>;
}

/** A change that a person made to a result. Speakers are named by their labels. */
export type Edit =
  | { readonly kind: 'rename'; readonly speaker: string; readonly name: string }
  | { readonly kind: 'recolour'; readonly speaker: string; readonly colour: number }
  | { readonly kind: 'merge'; readonly from: string; readonly into: string }
  /** Relabels `from` as `to` in [start, end). */
  | { readonly kind: 'move'; readonly from: string; readonly to: string; readonly start: number; readonly end: number };

export interface EditedSpeaker {
  readonly label: string;
  /** What the person calls them; the label by default. */
  readonly name: string;
  readonly colour: number;
}

export interface EditedResult {
  /** In order of their labels, those without a turn left out. */
  readonly speakers: readonly EditedSpeaker[];
  /** With the labels of the service. */
  readonly output: Output;
}

/** A diarize or identify output as far as it is edited. */
export type Output = Readonly<Record<string, unknown>> & { readonly diarization: readonly Spoken[] };

/** Lists of turns that are cut at the bounds of a move. Items of the other lists are moved whole. */
const TURN_LISTS = ['diarization', 'exclusiveDiarization'];
const TEXT_LISTS = ['wordLevelTranscription', 'turnLevelTranscription'];
/** Members of an identify output that repeat the diarization with the names of matches. */
const MATCH_MEMBERS = ['identification', 'voiceprints'];

const byLabel = new Intl.Collator('en', { numeric: true });
const byTime = (a: Spoken, b: Spoken): number => a.start - b.start || byLabel.compare(a.speaker, b.speaker);

export function outputOf(job: JobState): Output | undefined {
  return job.output && 'diarization' in job.output ? (job.output as Output) : undefined;
}

/** The result after the changes, in their order. */
export function applyEdits(original: Output, edits: readonly Edit[]): EditedResult {
  let output = original;
  const names = new Map<string, string>();
  const colours = new Map<string, number>();
  for (const edit of edits) {
    if (edit.kind === 'rename') names.set(edit.speaker, edit.name);
    else if (edit.kind === 'recolour') colours.set(edit.speaker, edit.colour);
    else if (edit.kind === 'merge') output = relabel(output, edit.from, edit.into, 0, Number.POSITIVE_INFINITY);
    else output = relabel(output, edit.from, edit.to, edit.start, edit.end);
  }
  // Colours follow the labels of the service, so that a merge recolours nobody else.
  const known = [...labelsOf(original), ...labelsOf(output)].filter((label, i, all) => all.indexOf(label) === i);
  const speakers = labelsOf(output).map((label) => {
    return { label, name: names.get(label) ?? label, colour: colours.get(label) ?? known.indexOf(label) };
  });
  return { speakers, output };
}

/** The output to be saved: with names in the place of labels. */
export function namedOutput({ output, speakers }: EditedResult): Output {
  const names = new Map(speakers.map(({ label, name }) => [label, name]));
  const rename = (label: string): string => names.get(label) ?? label;
  const kept = Object.entries(output).filter(([member]) => !MATCH_MEMBERS.includes(member));
  const changed = kept.map(([member, value]) => {
    if (member === 'speakerProbability') return [member, renameScores(value as Scores, rename)];
    if (![...TURN_LISTS, ...TEXT_LISTS].includes(member)) return [member, value];
    return [member, (value as readonly Spoken[]).map((item) => renamed(item, rename))];
  });
  return Object.fromEntries(changed);
}

/** A label for a speaker whom the service did not find. */
export function newLabel(output: Output): string {
  const taken = new Set(output.diarization.map(({ speaker }) => speaker));
  for (let number = 0; ; number++) {
    const label = `SPEAKER_${String(number).padStart(2, '0')}`;
    if (!taken.has(label)) return label;
  }
}

/** Changes with undo and redo. */
export class EditHistory {
  /** @param done how many of the changes hold; the later ones were undone */
  private constructor(
    private readonly all: readonly Edit[],
    private readonly done: number,
  ) {}

  static readonly empty = new EditHistory([], 0);

  static of(edits: readonly Edit[]): EditHistory {
    return new EditHistory(edits, edits.length);
  }

  get edits(): readonly Edit[] {
    return this.all.slice(0, this.done);
  }

  get canUndo(): boolean {
    return this.done > 0;
  }

  get canRedo(): boolean {
    return this.done < this.all.length;
  }

  with(...edits: readonly Edit[]): EditHistory {
    return EditHistory.of([...this.edits, ...edits]);
  }

  undo(): EditHistory {
    return new EditHistory(this.all, Math.max(0, this.done - 1));
  }

  redo(): EditHistory {
    return new EditHistory(this.all, Math.min(this.all.length, this.done + 1));
  }
}

function labelsOf({ diarization }: Output): string[] {
  return [...new Set(diarization.map(({ speaker }) => speaker))].sort(byLabel.compare);
}

function relabel(output: Output, from: string, to: string, start: number, end: number): Output {
  const rename = (label: string): string => (label === from ? to : label);
  const isMove = Number.isFinite(end);
  const changed = Object.entries(output).map(([member, value]) => {
    if (TURN_LISTS.includes(member)) {
      const turns = (value as readonly Spoken[]).flatMap((turn) => {
        if (turn.speaker !== from) return [isMove ? turn : renamed(turn, rename)];
        return cut(turn, start, end).map((part) => (part.isInside ? renamed(part.turn, rename) : part.turn));
      });
      return [member, unite(turns.sort(byTime))];
    }
    if (TEXT_LISTS.includes(member)) {
      const isInside = (item: Spoken) => start <= (item.start + item.end) / 2 && (item.start + item.end) / 2 < end;
      const items = value as readonly Spoken[];
      return [member, items.map((item) => (isInside(item) ? renamed(item, rename) : item))];
    }
    if (member === 'speakerProbability' && !isMove) return [member, renameScores(value as Scores, rename)];
    return [member, value];
  });
  return Object.fromEntries(changed);
}

function cut(turn: Spoken, start: number, end: number): { readonly turn: Spoken; readonly isInside: boolean }[] {
  const [from, to] = [Math.max(turn.start, start), Math.min(turn.end, end)];
  if (from >= to) return [{ turn, isInside: false }];
  const parts = [
    { turn: { ...turn, end: from }, isInside: false },
    { turn: { ...turn, start: from, end: to }, isInside: true },
    { turn: { ...turn, start: to }, isInside: false },
  ];
  return parts.filter((part) => part.turn.start < part.turn.end);
}

/** One turn in the place of turns of one speaker that overlap or touch. @param turns in order of time */
function unite(turns: readonly Spoken[]): Spoken[] {
  const united: Spoken[] = [];
  const lastOf = new Map<string, number>();
  for (const turn of turns) {
    const last = lastOf.get(turn.speaker);
    const earlier = last === undefined ? undefined : united[last];
    if (last === undefined || earlier === undefined || turn.start > earlier.end) {
      lastOf.set(turn.speaker, united.push(turn) - 1);
      continue;
    }
    const longer = turn.end - turn.start > earlier.end - earlier.start ? turn : earlier;
    united[last] = { ...longer, start: earlier.start, end: Math.max(earlier.end, turn.end) };
  }
  return united;
}

function renamed(item: Spoken, rename: (label: string) => string): Spoken {
  const { confidence } = item;
  const speaker = rename(item.speaker);
  if (!confidence) return speaker === item.speaker ? item : { ...item, speaker };
  return { ...item, speaker, confidence: renameKeys(confidence, rename, Math.max) };
}

interface Scores {
  readonly score: Readonly<Record<string, readonly number[]>>;
}

function renameScores(scores: Scores, rename: (label: string) => string): Scores {
  const larger = (a: readonly number[], b: readonly number[]) => a.map((value, i) => Math.max(value, b[i] ?? 0));
  return { ...scores, score: renameKeys(scores.score, rename, larger) };
}

/** @param combine makes one value of two whose keys become one */
function renameKeys<T>(
  record: Readonly<Record<string, T>>,
  rename: (key: string) => string,
  combine: (a: T, b: T) => T,
): Record<string, T> {
  const values = new Map<string, T>();
  for (const [key, value] of Object.entries(record)) {
    const name = rename(key);
    const known = values.get(name);
    values.set(name, known === undefined ? value : combine(known, value));
  }
  return Object.fromEntries(values);
}
