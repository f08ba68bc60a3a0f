import { existsSync, readFileSync, writeFileSync } from 'node:fs';

/** Sections of the report, in their order. */
export const SECTIONS = [
  'accuracy',
  'meetings',
  'models',
  'identification',
  'live',
  'transcription',
  'formats',
  'speed',
  'memory',
  'lengths',
  'cost',
  'shards',
  'ingest',
  'throughput',
  'fanout',
  'api',
  'start',
] as const;
export type Section = (typeof SECTIONS)[number];

const TITLES: Readonly<Record<Section, string>> = {
  accuracy: 'Accuracy',
  meetings: 'Generated meetings',
  models: 'Models',
  identification: 'Identification',
  live: 'Live streams',
  transcription: 'Transcription',
  formats: 'Formats',
  speed: 'Speed',
  memory: 'Memory',
  lengths: 'Lengths',
  cost: 'Cost',
  shards: 'Shards',
  ingest: 'Reading of recordings',
  throughput: 'Many jobs at once',
  fanout: 'Many isolates',
  api: 'API',
  start: 'From installed to the first result',
};

const INTRODUCTION = `# Results

Written by \`npm run bench\`; \`bench/README.md\` describes what is measured and how. Every section has its day, commit
and machine: a section that was not run again keeps its older figures.
`;

/** Circumstances of a section's measurement. */
export interface Provenance {
  readonly date: string;
  readonly commit: string;
  readonly machine: string;
  readonly command: string;
  /** Load of the machine by other programs before the run, in cores. */
  readonly coresInUse: number;
}

const startOf = (section: Section): string => `<!-- ${section} -->`;
const endOf = (section: Section): string => `<!-- end of ${section} -->`;

/** Replaces the given sections of the report and keeps the others. */
export function writeReport(
  path: string,
  measured: ReadonlyMap<Section, { readonly body: string; readonly provenance: Provenance }>,
): void {
  const before = existsSync(path) ? readFileSync(path, 'utf8') : '';
  const texts = SECTIONS.flatMap((section) => {
    const result = measured.get(section);
    if (result) return [renderSection(section, result.body, result.provenance)];
    const older = olderSection(before, section);
    return older === undefined ? [] : [older];
  });
  writeFileSync(path, `${INTRODUCTION}\n${texts.join('\n')}`);
}

function renderSection(
  section: Section,
  body: string,
  { date, commit, machine, command, coresInUse }: Provenance,
): string {
  const busy =
    coresInUse > 0.2 ? ` **The machine was busy otherwise (${coresInUse.toFixed(1)} cores): times are too long.**` : '';
  const head = `Measured ${date} at commit ${commit} with \`${command}\` on ${machine}.${busy}`;
  return `${startOf(section)}\n## ${TITLES[section]}\n\n${head}\n\n${body.trim()}\n${endOf(section)}\n`;
}

function olderSection(report: string, section: Section): string | undefined {
  const start = report.indexOf(startOf(section));
  const end = report.indexOf(endOf(section));
  return start < 0 || end < start ? undefined : `${report.slice(start, end)}${endOf(section)}\n`;
}

/** A Markdown table; columns from `numericFrom` are aligned to the right. */
export function table(head: readonly string[], rows: readonly (readonly string[])[], numericFrom = 1): string {
  const line = (cells: readonly string[]): string => `| ${cells.join(' | ')} |`;
  const rule = head.map((_, column) => (column < numericFrom ? '---' : '--:'));
  return [line(head), `|${rule.join('|')}|`, ...rows.map(line)].join('\n');
}
