import type { JobState, SpeakerCount } from '../../client/sdk/types.ts';
import { byLabel } from './turns.ts';

/** A turn or word of an output. */
interface SpokenItem {
  readonly speaker: string;
  readonly start: number;
  readonly end: number;
  readonly text?: string;
  readonly confidence?: Readonly<Record<string, number>>;
}

/** A change of a result by the user. Labels identify the speakers. */
export type Edit =
  | { readonly kind: 'rename'; readonly speaker: string; readonly name: string }
  | { readonly kind: 'recolour'; readonly speaker: string; readonly colour: number }
  | { readonly kind: 'merge'; readonly from: string; readonly into: string }
  /** Relabels `from` as `to` in [start, end). */
  | { readonly kind: 'move'; readonly from: string; readonly to: string; readonly start: number; readonly end: number };

export interface EditedSpeaker {
  readonly label: string;
  /** Name that the page shows; the label by default. */
  readonly name: string;
  readonly colour: number;
}

export interface EditedResult {
  /** Speakers with a turn, in order of their labels. */
  readonly speakers: readonly EditedSpeaker[];
  /** Contains labels, not names. */
  readonly output: Output;
}

/** A diarize or identify output. */
export type Output = Readonly<Record<string, unknown>> & {
  readonly diarization: readonly SpokenItem[];
  readonly speakerCount?: SpeakerCount;
};

/** Lists in which a move cuts turns at its bounds. A move does not cut items of `TEXT_LISTS`. */
const TURN_LISTS = ['diarization', 'exclusiveDiarization'];
const TEXT_LISTS = ['wordLevelTranscription', 'turnLevelTranscription'];
/** Members of an identify output that repeat the diarization with the names of matches. */
const MATCH_MEMBERS = ['identification', 'voiceprints'];

const byTime = (a: SpokenItem, b: SpokenItem): number => a.start - b.start || byLabel.compare(a.speaker, b.speaker);

export function outputOf(job: JobState): Output | undefined {
  return job.output && 'diarization' in job.output ? (job.output as Output) : undefined;
}

/** Applies changes in order. */
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
  // The order of the service's labels determines the colours, so that a merge changes no other colour.
  const known = [...labelsOf(original), ...labelsOf(output)].filter((label, i, all) => all.indexOf(label) === i);
  const speakers = labelsOf(output).map((label) => {
    return { label, name: names.get(label) ?? label, colour: colours.get(label) ?? known.indexOf(label) };
  });
  return { speakers, output };
}

/** Returns the output with names instead of labels, for saving. */
export function namedOutput({ output, speakers }: EditedResult): Output {
  const names = new Map(speakers.map(({ label, name }) => [label, name]));
  const rename = (label: string): string => names.get(label) ?? label;
  const members = Object.entries(output).filter(([member]) => !MATCH_MEMBERS.includes(member));
  const changed = members.map(([member, value]) => {
    if (member === 'speakerProbability') return [member, renameScores(value as Scores, rename)];
    if (![...TURN_LISTS, ...TEXT_LISTS].includes(member)) return [member, value];
    return [member, (value as readonly SpokenItem[]).map((item) => renamed(item, rename))];
  });
  return Object.fromEntries(changed);
}

/**
 * Returns the first free label, for a speaker that the service did not find. The label of a merged speaker is not free,
 * because the changes contain its name and colour.
 */
export function newLabel(original: Output, edits: readonly Edit[]): string {
  const added = edits.flatMap((edit) => (edit.kind === 'move' ? [edit.to] : []));
  const taken = new Set([...original.diarization.map(({ speaker }) => speaker), ...added]);
  for (let number = 0; ; number++) {
    const label = `SPEAKER_${String(number).padStart(2, '0')}`;
    if (!taken.has(label)) return label;
  }
}

/** Changes with undo and redo. */
export class EditHistory {
  /** @param applied number of changes that apply; the later ones were undone */
  private constructor(
    private readonly all: readonly Edit[],
    private readonly applied: number,
  ) {}

  static readonly empty = new EditHistory([], 0);

  static of(edits: readonly Edit[]): EditHistory {
    return new EditHistory(edits, edits.length);
  }

  get edits(): readonly Edit[] {
    return this.all.slice(0, this.applied);
  }

  get canUndo(): boolean {
    return this.applied > 0;
  }

  get canRedo(): boolean {
    return this.applied < this.all.length;
  }

  with(...edits: readonly Edit[]): EditHistory {
    return EditHistory.of([...this.edits, ...edits]);
  }

  undo(): EditHistory {
    return new EditHistory(this.all, Math.max(0, this.applied - 1));
  }

  redo(): EditHistory {
    return new EditHistory(this.all, Math.min(this.all.length, this.applied + 1));
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
      const turns = (value as readonly SpokenItem[]).flatMap((turn) => {
        if (turn.speaker !== from) return [isMove ? turn : renamed(turn, rename)];
        return cut(turn, start, end).map((span) => (span.isInside ? renamed(span.turn, rename) : span.turn));
      });
      return [member, joinTurns(turns.sort(byTime))];
    }
    if (TEXT_LISTS.includes(member)) {
      const isInside = (item: SpokenItem) => start <= (item.start + item.end) / 2 && (item.start + item.end) / 2 < end;
      const items = value as readonly SpokenItem[];
      return [member, items.map((item) => (isInside(item) ? renamed(item, rename) : item))];
    }
    if (member === 'speakerProbability' && !isMove) return [member, renameScores(value as Scores, rename)];
    return [member, value];
  });
  return Object.fromEntries(changed);
}

function cut(
  turn: SpokenItem,
  start: number,
  end: number,
): { readonly turn: SpokenItem; readonly isInside: boolean }[] {
  const [from, to] = [Math.max(turn.start, start), Math.min(turn.end, end)];
  if (from >= to) return [{ turn, isInside: false }];
  const spans = [
    { turn: { ...turn, end: from }, isInside: false },
    { turn: { ...turn, start: from, end: to }, isInside: true },
    { turn: { ...turn, start: to }, isInside: false },
  ];
  return spans.filter((span) => span.turn.start < span.turn.end);
}

/** Joins turns of the same speaker that overlap or touch. @param turns by start */
function joinTurns(turns: readonly SpokenItem[]): SpokenItem[] {
  const joined: SpokenItem[] = [];
  const lastOf = new Map<string, number>();
  for (const turn of turns) {
    const last = lastOf.get(turn.speaker);
    const earlier = last === undefined ? undefined : joined[last];
    if (last === undefined || earlier === undefined || turn.start > earlier.end) {
      lastOf.set(turn.speaker, joined.push(turn) - 1);
      continue;
    }
    const longer = turn.end - turn.start > earlier.end - earlier.start ? turn : earlier;
    joined[last] = { ...longer, start: earlier.start, end: Math.max(earlier.end, turn.end) };
  }
  return joined;
}

function renamed(item: SpokenItem, rename: (label: string) => string): SpokenItem {
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

/** @param combine merges the values of two keys that get the same name */
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
