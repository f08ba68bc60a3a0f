import { join } from 'node:path';
import { Command } from 'commander';
import { nodeAudio } from '../client/audio/ports.ts';
import { openDestination } from '../client/cli/deliver.ts';
import { CliError, EXIT, runCommand } from '../client/cli/run.ts';
import { projectDir } from '../client/local/paths.ts';
import { measureAccuracy, measureMeetings } from './accuracy.ts';
import { measureApi } from './api.ts';
import { measureCost } from './cost.ts';
import { measureFanout } from './fanout.ts';
import { measureFormats } from './formats/formats.ts';
import { measureIdentification } from './identification.ts';
import { measureIngest } from './ingest/ingest.ts';
import { measureLengths } from './lengths.ts';
import { measureLive } from './live/live.ts';
import { coresInUse, describeCommit, describeMachine } from './machine.ts';
import { measureMemory } from './memory.ts';
import { measureModels } from './models.ts';
import { type LabelledRecording, loadRecordings } from './recordings.ts';
import { type Provenance, SECTIONS, type Section, writeReport } from './report.ts';
import { measureShards } from './shards.ts';
import { logProgress } from './shared.ts';
import { measureSpeed } from './speed.ts';
import { measureStart } from './start.ts';
import { measureThroughput } from './throughput.ts';
import { measureTranscription } from './transcription.ts';

const measure: Readonly<Record<Section, (recordings: LabelledRecording[] | undefined) => Promise<string> | string>> = {
  accuracy: measureAccuracy,
  meetings: measureMeetings,
  models: measureModels,
  identification: measureIdentification,
  live: measureLive,
  transcription: measureTranscription,
  formats: measureFormats,
  speed: measureSpeed,
  memory: measureMemory,
  lengths: measureLengths,
  cost: measureCost,
  shards: measureShards,
  ingest: measureIngest,
  throughput: measureThroughput,
  fanout: measureFanout,
  api: measureApi,
  start: measureStart,
};

async function bench(named: readonly string[], output: string): Promise<void> {
  const sections = named.length === 0 ? SECTIONS : SECTIONS.filter((section) => named.includes(section));
  const recordings = await loadRecordings(nodeAudio());
  if (!recordings) logProgress('../shared/audio is missing: sections that need it are left out.');
  const measured = new Map<Section, { body: string; provenance: Provenance }>();
  for (const section of sections) {
    const provenance: Provenance = {
      date: new Date().toISOString().slice(0, 10),
      commit: describeCommit(),
      machine: describeMachine(),
      command: `npm run bench -- ${section}`,
      coresInUse: await coresInUse(),
    };
    logProgress(`${section} …`);
    const body = await measure[section](recordings);
    process.stdout.write(`\n${body}\n`);
    measured.set(section, { body, provenance });
    // After each section, so that a failure of a later one loses nothing.
    writeReport(output, measured);
  }
}

const command = new Command('bench')
  .description('Measures accuracy, speed, memory and start-up of this checkout and writes the report.')
  .argument('[sections...]', `sections to measure: ${SECTIONS.join(', ')}; all by default`)
  .option('--output <file>', 'the report', join(projectDir, 'bench', 'RESULTS.md'))
  .action((sections: string[], { output }: { output: string }) => {
    const unknown = sections.filter((section) => !SECTIONS.some((known) => known === section));
    if (unknown.length > 0)
      throw new CliError(EXIT.usage, `there is no section ${unknown.join(', ')}: ${SECTIONS.join(', ')}`);
    const destination = openDestination(output, process.cwd(), []);
    if (destination.kind !== 'file')
      throw new CliError(EXIT.usage, '--output must be a file: it keeps other sections.');
    return bench(sections, destination.path);
  });
await runCommand(command);
