import { RollcallClient } from '../../client/sdk/client.ts';
import type { JobState } from '../../client/sdk/types.ts';
import { runJob } from './job.ts';
import { listen } from './microphone.ts';
import { Player } from './player.ts';
import type { Problem } from './problem.ts';
import { type Asked, type Fault, readForm } from './request.ts';
import { type Turn, turnsOf } from './turns.ts';
import { showTurns } from './view.ts';

/** An element of the page, of the type that it is used as. */
function find<T extends HTMLElement>(id: string, type: new () => T): T {
  const found = document.getElementById(id);
  if (!(found instanceof type)) throw new Error(`the page has no ${type.name} #${id}`);
  return found;
}

const form = find('ask', HTMLFormElement);
const [keyField, fileField, addressField] = ['key', 'file', 'address'].map((id) => find(id, HTMLInputElement));
const speakersField = find('speakers', HTMLInputElement);
const modelField = find('model', HTMLSelectElement);
const [startButton, stopButton] = [find('start', HTMLButtonElement), find('stop', HTMLButtonElement)];
const downloadButton = find('download', HTMLButtonElement);
const [statusText, problemBox] = [find('status', HTMLElement), find('problem', HTMLElement)];
const progressBar = find('progress', HTMLProgressElement);
const [result, warning, title] = ['result', 'warning', 'result-title'].map((id) => find(id, HTMLElement));
const elements = {
  timeline: find('timeline', HTMLElement),
  summary: find('summary', HTMLElement),
  rows: find('turns', HTMLElement),
  more: find('more', HTMLButtonElement),
};

let moveMark: (moment: number | undefined) => void = () => undefined;
const player = new Player(find('player', HTMLAudioElement), (moment) => moveMark(moment));
let running: AbortController | undefined;
let savedJob: string | undefined;

const chosenSource = () => String(new FormData(form).get('source'));

function showChoice(): void {
  const source = chosenSource();
  for (const kind of ['file', 'address', 'microphone']) find(`of-${kind}`, HTMLElement).hidden = kind !== source;
  find('options', HTMLElement).hidden = source === 'microphone';
  startButton.textContent = source === 'microphone' ? 'Listen' : 'Find the speakers';
}

function showState(message: string, fraction?: number): void {
  if (statusText.textContent !== message) statusText.textContent = message;
  progressBar.hidden = running === undefined;
  if (fraction === undefined) progressBar.removeAttribute('value');
  else progressBar.value = fraction;
}

function showProblem({ message, details }: Problem): void {
  const head = document.createElement('p');
  head.textContent = message;
  const list = document.createElement('ul');
  for (const detail of details) list.appendChild(document.createElement('li')).textContent = detail;
  problemBox.replaceChildren(head, ...(details.length > 0 ? [list] : []));
  problemBox.hidden = false;
}

function showFaults(faults: readonly Fault[]): void {
  for (const { field } of faults) find(field, HTMLElement).setAttribute('aria-invalid', 'true');
  showProblem({ message: 'Something has to be put right first.', details: faults.map(({ message }) => message) });
  find(faults[0]!.field, HTMLElement).focus();
}

function clear(): void {
  problemBox.hidden = true;
  result.hidden = true;
  warning.hidden = true;
  for (const field of form.querySelectorAll('[aria-invalid]')) field.removeAttribute('aria-invalid');
}

function show(turns: readonly Turn[], seconds: number, isPlayable: boolean): void {
  const play = isPlayable
    ? async (turn: Turn) => {
        if (!(await player.play(turn))) showState('This browser cannot play the file.');
      }
    : undefined;
  moveMark = showTurns(elements, turns, seconds, play);
  result.hidden = false;
}

function showJob(job: JobState, isPlayable: boolean): void {
  const note = job.output && 'warning' in job.output ? job.output.warning : undefined;
  warning.textContent = note ?? '';
  warning.hidden = note === undefined;
  savedJob = JSON.stringify(job, null, 2);
  downloadButton.hidden = false;
  show(turnsOf(job), player.seconds, isPlayable);
  title.focus();
}

async function diarize(client: RollcallClient, asked: Asked, signal: AbortSignal): Promise<void> {
  const { source } = asked;
  if (source.kind === 'microphone') return;
  const file = source.kind === 'file' ? source.file : undefined;
  player.load(file);
  const end = await runJob(client, { ...asked, source }, showState, signal);
  if (end.ok) showJob(end.job, file !== undefined);
  else if (end.problem) showProblem(end.problem);
}

async function hear(client: RollcallClient, signal: AbortSignal): Promise<void> {
  player.load(undefined);
  downloadButton.hidden = true;
  showState('Opening the microphone …');
  const shown = (turns: readonly Turn[], seconds: number) => {
    show(turns, seconds, false);
    showState(signal.aborted ? 'Finishing …' : 'Listening …');
  };
  const problem = await listen(client, shown, signal);
  if (problem) showProblem(problem);
}

async function start(): Promise<void> {
  if (running) return;
  clear();
  const read = readForm({
    key: keyField!.value,
    source: chosenSource(),
    file: fileField!.files?.[0],
    address: addressField!.value,
    model: modelField.value,
    speakers: speakersField.value,
  });
  if (!read.ok) return showFaults(read.faults);
  const run = new AbortController();
  running = run;
  startButton.disabled = true;
  stopButton.hidden = false;
  const onRateLimit = (seconds: number) => showState(`Too many requests; going on in ${seconds} s …`);
  const client = new RollcallClient({ url: location.origin, key: read.value.key, onRateLimit });
  try {
    if (read.value.source.kind === 'microphone') await hear(client, run.signal);
    else await diarize(client, read.value, run.signal);
  } catch (error) {
    showProblem({ message: 'Something went wrong in this page.', details: [String(error)] });
  }
  running = undefined;
  startButton.disabled = false;
  stopButton.hidden = true;
  showState(problemBox.hidden ? (run.signal.aborted && result.hidden ? 'Stopped.' : 'Done.') : '');
}

function download(): void {
  if (savedJob === undefined) return;
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([savedJob], { type: 'application/json' }));
  link.download = 'speakers.json';
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}

form.addEventListener('change', showChoice);
form.addEventListener('submit', (event) => {
  event.preventDefault();
  void start();
});
stopButton.addEventListener('click', () => {
  showState('Stopping …');
  running?.abort();
});
downloadButton.addEventListener('click', download);
showChoice();
