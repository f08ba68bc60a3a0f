import { isTerminal, RollcallClient } from '../../client/sdk/client.ts';
import type { JobState } from '../../client/sdk/types.ts';
import { followJob, type JobEnd, runJob } from './job.ts';
import { listen } from './microphone.ts';
import { Player } from './player.ts';
import { type Problem, problemOf } from './problem.ts';
import { type Asked, type Fault, nameOf, readForm } from './request.ts';
import { type KnownJob, keyInFragment, Session } from './session.ts';
import { clock, count, liveLength, saidTurnsOf, speakersOf, type Turn, turnsOf } from './turns.ts';
import { ResultView } from './view.ts';

/** An element of the page, of the type that it is used as. */
function find<T extends HTMLElement>(id: string, type: new () => T): T {
  const found = document.getElementById(id);
  if (!(found instanceof type)) throw new Error(`the page has no ${type.name} #${id}`);
  return found;
}

const form = find('ask', HTMLFormElement);
const keyField = find('key', HTMLInputElement);
const [fileField, addressField] = [find('file', HTMLInputElement), find('address', HTMLInputElement)];
const speakersField = find('speakers', HTMLInputElement);
const [modelField, transcribeField] = [find('model', HTMLSelectElement), find('transcribe', HTMLInputElement)];
const [startButton, stopButton] = [find('start', HTMLButtonElement), find('stop', HTMLButtonElement)];
const downloadButton = find('download', HTMLButtonElement);
const [statusText, spoken] = [find('status', HTMLElement), find('spoken', HTMLElement)];
const problemBox = find('problem', HTMLElement);
const progressBar = find('progress', HTMLProgressElement);
const [result, warning] = [find('result', HTMLElement), find('warning', HTMLElement)];
const [title, facts] = [find('result-title', HTMLElement), find('facts', HTMLElement)];
const [picture, caption] = [find('picture', HTMLElement), find('caption', HTMLElement)];
const view = new ResultView({
  timeline: find('timeline', HTMLElement),
  rows: find('turns', HTMLElement),
  more: find('more', HTMLButtonElement),
});
const audio = find('player', HTMLAudioElement);
const player = new Player(audio, (moment) => view.move(moment));
const session = new Session(() => sessionStorage);

const UNPLAYABLE = 'This browser cannot play the file.';
let running: AbortController | undefined;
/** What `Save as JSON` saves. */
let saved = { name: '', content: {} as object };

const chosenSource = () => String(new FormData(form).get('source'));

function showChoice(): void {
  const source = chosenSource();
  for (const kind of ['file', 'address', 'microphone']) find(`of-${kind}`, HTMLElement).hidden = kind !== source;
  find('options', HTMLElement).hidden = source === 'microphone';
  startButton.textContent = source === 'microphone' ? 'Listen' : 'Find the speakers';
}

/** @param isKnown whether the key's field makes room, as there is a key in it that need not be seen */
function showKey(isKnown: boolean): void {
  find('key-field', HTMLElement).hidden = isKnown;
  find('key-known', HTMLElement).hidden = !isKnown;
}

function takeKey(): void {
  const given = keyInFragment(location);
  // Not to be seen over a shoulder, nor copied along with the address.
  if (location.hash !== '') history.replaceState(null, '', location.pathname + location.search);
  if (given !== undefined) session.key = given;
  keyField.value = given ?? session.key;
  showKey(keyField.value !== '');
}

function showState(message: string, fraction?: number): void {
  if (statusText.textContent !== message) statusText.textContent = message;
  // How far it is would be read out every two seconds, over everything else: the bar tells it to those who ask.
  const news = fraction === undefined ? message : message.replace(/ \d+ %$/, '');
  if (spoken.textContent !== news) spoken.textContent = news;
  progressBar.hidden = running === undefined;
  if (fraction === undefined) progressBar.removeAttribute('value');
  else progressBar.value = fraction;
}

function showProblem({ message, details, isOfKey }: Problem): void {
  const head = document.createElement('p');
  head.textContent = message;
  const list = document.createElement('ul');
  for (const detail of details) list.appendChild(document.createElement('li')).textContent = detail;
  problemBox.replaceChildren(head, ...(details.length > 0 ? [list] : []));
  problemBox.hidden = false;
  if (!isOfKey) return;
  session.key = '';
  showKey(false);
  keyField.setAttribute('aria-invalid', 'true');
  keyField.focus();
}

function showFaults(faults: readonly Fault[]): void {
  for (const { field } of faults) find(field, HTMLElement).setAttribute('aria-invalid', 'true');
  showProblem({ message: faults.map(({ message }) => message).join(' '), details: [] });
  const { field } = faults[0];
  if (field === 'key') showKey(false);
  find(field, HTMLElement).focus();
}

function clearFaults(): void {
  problemBox.hidden = true;
  for (const field of form.querySelectorAll('[aria-invalid]')) field.removeAttribute('aria-invalid');
}

function clear(): void {
  player.load(undefined);
  view.clear();
  session.job = undefined;
  for (const element of [result, warning]) element.hidden = true;
}

/** @param heard seconds of the recording, NaN where they are not known */
function showTurns(name: string, turns: readonly Turn[], heard: number, content: object): void {
  const speakers = speakersOf(turns).length;
  title.textContent = speakers === 0 ? 'Nobody speaks' : count(speakers, 'speaker');
  const length = Number.isFinite(heard) && heard > 0 ? [clock(heard)] : [];
  facts.textContent = [count(turns.length, 'turn'), ...length, name].join(' · ');
  saved = { name, content };
  result.classList.toggle('empty', turns.length === 0);
  result.hidden = false;
}

function showJob(job: JobState, { name }: KnownJob, file: File | undefined): void {
  const note = job.output && 'warning' in job.output ? job.output.warning : undefined;
  warning.textContent = note ?? '';
  warning.hidden = note === undefined;
  downloadButton.hidden = false;
  const [turns, canPlay] = [turnsOf(job), player.canPlay];
  showTurns(name, turns, player.seconds, job);
  view.show(turns, player.seconds, canPlay ? player : undefined, saidTurnsOf(job));
  if (canPlay && turns.length > 0)
    caption.textContent = 'Click a turn to hear it, or between turns to play on from there.';
  else caption.textContent = file && !canPlay ? UNPLAYABLE : '';
  title.focus({ preventScroll: true });
  picture.scrollIntoView({ block: 'nearest' });
}

async function hear(client: RollcallClient, signal: AbortSignal): Promise<void> {
  downloadButton.hidden = true;
  caption.textContent = '';
  showState('Opening the microphone …');
  const shown = (turns: readonly Turn[], seconds: number) => {
    showTurns('microphone', turns, seconds, { diarization: turns });
    view.show(turns, liveLength(seconds), undefined);
    view.move({ at: seconds, isPlaying: false });
    if (turns.length === 0) title.textContent = 'Nobody has spoken yet';
    showState(signal.aborted ? 'Finishing …' : 'Listening …');
  };
  const problem = await listen(client, shown, signal);
  downloadButton.hidden = false;
  view.move(undefined);
  if (problem) showProblem(problem);
}

/** Sends a recording, or listens. */
async function work(client: RollcallClient, asked: Asked, signal: AbortSignal): Promise<void> {
  const { source } = asked;
  if (source.kind === 'microphone') return hear(client, signal);
  const file = source.kind === 'file' ? source.file : undefined;
  player.load(file);
  let job: KnownJob = { id: '', name: nameOf(source) };
  const onCreated = (id: string) => {
    job = { ...job, id };
    session.job = job;
  };
  const end = await runJob(client, { ...asked, source }, showState, onCreated, signal);
  showEnd(end, job, file);
}

function showEnd(end: JobEnd, job: KnownJob, file: File | undefined): void {
  if (end.ok) showJob(end.job, job, file);
  else if (!end.isLost) session.job = undefined;
  if (!end.ok && end.problem) showProblem(end.problem);
}

/** Does something that can be stopped; the form waits meanwhile. */
async function run(key: string, task: (client: RollcallClient, signal: AbortSignal) => Promise<void>): Promise<void> {
  const control = new AbortController();
  running = control;
  showButtons();
  const onRateLimit = (seconds: number, why: string) => showState(`${why} Trying again in ${seconds} s …`);
  try {
    await task(new RollcallClient({ url: location.origin, key, onRateLimit }), control.signal);
  } catch (error) {
    showProblem({ message: 'Something went wrong in this page.', details: [String(error)] });
  }
  running = undefined;
  showButtons();
  const isStopped = control.signal.aborted && result.hidden && problemBox.hidden;
  const isDone = !result.hidden && problemBox.hidden;
  showState(isStopped ? 'Stopped.' : isDone ? 'Done.' : '');
}

/** One button takes the other's place, and the focus that it had. */
function showButtons(): void {
  const [shown, other] = running ? [stopButton, startButton] : [startButton, stopButton];
  const hadFocus = document.activeElement === other;
  shown.hidden = false;
  other.hidden = true;
  stopButton.removeAttribute('aria-disabled');
  if (hadFocus) shown.focus();
}

async function start(): Promise<void> {
  if (running) return;
  const read = readForm({
    key: keyField.value,
    source: chosenSource(),
    file: fileField.files?.[0],
    address: addressField.value,
    model: modelField.value,
    speakers: speakersField.value,
    transcribe: transcribeField.checked,
  });
  // A slip in the form takes nothing away from the result that is there.
  clearFaults();
  if (!read.ok) return showFaults(read.faults);
  clear();
  showState('');
  const asked = read.value;
  session.key = asked.key;
  const begun = performance.now();
  await run(asked.key, (client, signal) => work(client, asked, signal));
  const isJobDone = asked.source.kind !== 'microphone' && !result.hidden && problemBox.hidden;
  if (isJobDone) showState(`Done in ${((performance.now() - begun) / 1000).toFixed(1)} s.`);
}

/** Takes up the job of before the page was loaded again. One that has come to nothing meanwhile is no news. */
async function resume(key: string, job: KnownJob): Promise<void> {
  await run(key, async (client, signal) => {
    showState('Asking after the job …');
    const known = await client.retrieve(job.id, signal);
    if (!known.ok && !signal.aborted) {
      const isGone = known.error.kind === 'refused' && known.error.status === 404;
      if (!isGone) showProblem(problemOf(known.error));
      return;
    }
    const isNews = !known.ok || known.value.output !== undefined || !isTerminal(known.value.status);
    if (isNews) showEnd(await followJob(client, job.id, showState, signal), job, undefined);
  });
}

function download(): void {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([JSON.stringify(saved.content, null, 2)], { type: 'application/json' }));
  link.download = `${saved.name.replace(/\.\w{1,5}$/, '')}-speakers.json`;
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
  // Disabled it would lose the focus, which the button in its place is to have.
  stopButton.setAttribute('aria-disabled', 'true');
  running?.abort();
});
downloadButton.addEventListener('click', download);
audio.addEventListener('error', () => {
  caption.textContent = UNPLAYABLE;
});
find('change-key', HTMLButtonElement).addEventListener('click', () => {
  showKey(false);
  keyField.select();
});
// Another address with a key, put into the same tab.
window.addEventListener('hashchange', takeKey);
// Browsers put back what was chosen before a reload, some of them late.
window.addEventListener('pageshow', showChoice);
showChoice();
takeKey();
if (session.job && keyField.value !== '') void resume(keyField.value, session.job);
