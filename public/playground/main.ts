import { putWithProgress } from '../../client/library/upload.ts';
import { isTerminal, RollcallClient } from '../../client/sdk/client.ts';
import { wavFile } from './decode.ts';
import { outputOf } from './edits.ts';
import { followJob, type JobEnd, type RunOptions, runJob } from './job.ts';
import { Memory, type RememberedJob } from './memory.ts';
import { listen } from './microphone.ts';
import { element, find } from './page.ts';
import { Panels } from './panels.ts';
import { Peaks } from './peaks.ts';
import { type Problem, problemOf } from './problem.ts';
import { type Asked, type Fault, nameOf, readForm } from './request.ts';
import { keyInFragment, Session } from './session.ts';
import { SNIPPET_LANGUAGES, type SnippetLanguage, snippet } from './snippets.ts';
import { liveLength, type Turn } from './turns.ts';
import { compareVoices, voiceClip } from './voices.ts';
import { Workbench } from './workbench.ts';

const form = find('ask', HTMLFormElement);
const keyField = find('key', HTMLInputElement);
const [fileField, addressField] = [find('file', HTMLInputElement), find('address', HTMLInputElement)];
const speakersField = find('speakers', HTMLInputElement);
const [modelField, transcribeField] = [find('model', HTMLSelectElement), find('transcribe', HTMLInputElement)];
const [startButton, stopButton] = [find('start', HTMLButtonElement), find('stop', HTMLButtonElement)];
const [statusText, spoken] = [find('status', HTMLElement), find('spoken', HTMLElement)];
const problemBox = find('problem', HTMLElement);
const progressBar = find('progress', HTMLProgressElement);
const warning = find('warning', HTMLElement);
const suggestions = find('suggestions', HTMLElement);
const compareButton = find('compare', HTMLButtonElement);
const session = new Session(() => sessionStorage);
const memory = new Memory(() => localStorage);

/** Largest recording that is fetched whole for its waveform; a larger one plays from its address only. */
const MAX_FETCHED_BYTES = 512 * 1024 * 1024;
/** Length of a live stream that is kept to be played. */
const MAX_KEPT_SECONDS = 3600;
let running: AbortController | undefined;
/** The job that is shown. */
let shown: RememberedJob | undefined;

const workbench = new Workbench({
  onEdits(edits) {
    if (!shown) return;
    shown = { ...shown, edits };
    memory.rememberJob(shown);
  },
  onRemember(label, name) {
    void panels.remember(
      async () => {
        const { file } = workbench;
        if (!file) {
          showProblem({ message: 'This browser does not have the recording, only the result.', details: [] });
          return undefined;
        }
        const clip = await voiceClip(file, workbench.ranges, label);
        if (!clip.ok) showProblem(clip.problem);
        return clip.ok ? clip.value : undefined;
      },
      /^SPEAKER_\d+$/.test(name) ? '' : name,
    );
  },
  say,
});

const panels = new Panels(memory, {
  client() {
    const key = keyField.value.trim();
    if (key !== '') return clientOf(key);
    showFaults([{ field: 'key', message: 'Enter an API key of this service.' }]);
    return undefined;
  },
  onOpenJob: (job) => void resume(keyField.value, job),
  onVoices: showCompare,
  showProblem,
  say,
});

const chosenSource = () => String(new FormData(form).get('source'));

function showChoice(): void {
  const source = chosenSource();
  for (const kind of ['file', 'address', 'microphone']) find(`of-${kind}`, HTMLElement).hidden = kind !== source;
  find('options', HTMLElement).hidden = source === 'microphone';
  startButton.textContent = source === 'microphone' ? 'Listen' : 'Find the speakers';
  showCode();
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

/** Reports what has happened: to screen readers, in the status line and in a toast. */
function say(message: string): void {
  spoken.textContent = message;
  statusText.textContent = message;
  const toast = find('toast', HTMLElement);
  toast.textContent = message;
  toast.hidden = message === '';
  setTimeout(() => {
    if (toast.textContent === message) toast.hidden = true;
  }, 6000);
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
  const head = element('p', '', message);
  const list = element('ul');
  for (const detail of details) list.append(element('li', '', detail));
  problemBox.replaceChildren(head, ...(details.length > 0 ? [list] : []));
  problemBox.hidden = false;
  problemBox.scrollIntoView({ block: 'nearest' });
  if (!isOfKey) return;
  session.key = '';
  showForm(true);
  showKey(false);
  keyField.setAttribute('aria-invalid', 'true');
  keyField.focus();
}

function showFaults(faults: readonly Fault[]): void {
  showForm(true);
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

/** Shows the form; a result is shown in its place. */
function showForm(isShown: boolean): void {
  form.hidden = !isShown;
  find('again', HTMLElement).hidden = isShown;
}

function clear(): void {
  workbench.close();
  shown = undefined;
  session.job = undefined;
  warning.hidden = true;
  suggestions.replaceChildren();
  showForm(true);
}

const clientOf = (key: string): RollcallClient => {
  const onRateLimit = (seconds: number, why: string) => showState(`${why} Trying again in ${seconds} s …`);
  return new RollcallClient({ url: location.origin, key, onRateLimit });
};

async function stream(client: RollcallClient, signal: AbortSignal): Promise<void> {
  showState('Waiting for the microphone …');
  const peaks = new Peaks();
  const kept: Float32Array[] = [];
  let [rateHz, seconds] = [16_000, 0];
  const onSamples = (samples: Float32Array, sampleRateHz: number) => {
    rateHz = sampleRateHz;
    if (seconds < MAX_KEPT_SECONDS) kept.push(samples);
    peaks.add(samples, sampleRateHz, seconds);
    seconds += samples.length / sampleRateHz;
  };
  let turns: readonly Turn[] = [];
  const onTurns = (now: readonly Turn[], sentSeconds: number) => {
    turns = now;
    showState('Listening …');
    workbench.showLive(now, sentSeconds, liveLength(sentSeconds), peaks);
  };
  const problem = await listen(client, onTurns, signal, onSamples);
  if (problem) showProblem(problem);
  if (turns.length === 0) return workbench.close();
  workbench.load(wavFile(kept, rateHz));
  workbench.open({ name: 'microphone', output: { diarization: turns }, edits: [] });
  showForm(false);
}

function showSent(totalBytes: number): (sentBytes: number) => void {
  return (sentBytes) => {
    const share = totalBytes > 0 ? sentBytes / totalBytes : 0;
    showState(`Sending the file … ${Math.round(100 * share)} %`, share);
  };
}

async function work(client: RollcallClient, { source, ...asked }: Asked, signal: AbortSignal): Promise<void> {
  if (source.kind === 'microphone') return stream(client, signal);
  let job: RememberedJob = { id: '', name: nameOf(source) };
  const options: RunOptions = {
    showState,
    onCreated(id, url) {
      job = { ...job, id, ...(!/^data:/i.test(url) && { url }) };
      session.job = job;
      memory.rememberJob(job);
    },
    ...(source.kind === 'file' && { put: putWithProgress(showSent(source.file.size)) }),
    signal,
  };
  const end = await runJob(client, { ...asked, source }, options);
  showEnd(client, end, job, source.kind === 'file' ? source.file : undefined);
}

function showEnd(client: RollcallClient, end: JobEnd, job: RememberedJob, file: File | undefined): void {
  const output = end.ok ? outputOf(end.job) : undefined;
  if (end.ok && output) {
    shown = memory.job(job.id) ?? job;
    const note = output.warning;
    warning.textContent = typeof note === 'string' ? note : '';
    warning.hidden = typeof note !== 'string';
    workbench.load(file);
    workbench.open({ name: job.name, output, edits: shown.edits ?? [] });
    showForm(false);
    showCompare();
    if (!file) void loadRecording(client, job);
  } else if (end.ok) {
    showProblem({ message: 'This job has no turns to show.', details: [`Job ${job.id}`] });
  } else if (!end.isLost) session.job = undefined;
  if (!end.ok && end.problem) showProblem(end.problem);
}

/** Loads the recording of a job whose file this page does not have: the service keeps uploads for 48 hours. */
async function loadRecording(client: RollcallClient, { id, url }: RememberedJob): Promise<void> {
  if (url === undefined) return workbench.note('The recording of this job is not known to this browser.', true);
  if (!url.startsWith('media://')) return workbench.load(url);
  const ticket = await client.downloadUrl(url.slice('media://'.length));
  if (shown?.id !== id) return;
  if (!ticket.ok)
    return workbench.note('The service no longer has the recording: it keeps uploads for 48 hours.', true);
  workbench.load(ticket.value);
  try {
    const { size } = new URL(ticket.value).origin === location.origin ? await sizeOf(ticket.value) : { size: Infinity };
    if (size > MAX_FETCHED_BYTES) return;
    const blob = await (await fetch(ticket.value)).blob();
    if (shown?.id === id) workbench.attach(blob);
  } catch {
    // It plays from its address, without a waveform.
  }
}

async function sizeOf(address: string): Promise<{ readonly size: number }> {
  const { ok, headers } = await fetch(address, { method: 'HEAD' });
  const length = Number(headers.get('Content-Length') ?? Number.NaN);
  return { size: ok && Number.isFinite(length) ? length : Infinity };
}

/** Runs a task that can be stopped; the form is blocked until its end. */
async function run(key: string, task: (client: RollcallClient, signal: AbortSignal) => Promise<void>): Promise<void> {
  const control = new AbortController();
  running = control;
  showButtons();
  try {
    await task(clientOf(key), control.signal);
  } catch (error) {
    showProblem({ message: 'Something went wrong in this page.', details: [String(error)] });
  }
  running = undefined;
  showButtons();
  const isStopped = control.signal.aborted && !workbench.isShown && problemBox.hidden;
  const isDone = workbench.isShown && problemBox.hidden;
  showState(isStopped ? 'Stopped.' : isDone ? 'Done.' : '');
}

/** One button takes the other's place, and the focus that it had. */
function showButtons(): void {
  const [visible, other] = running ? [stopButton, startButton] : [startButton, stopButton];
  const hadFocus = document.activeElement === other;
  visible.hidden = false;
  other.hidden = true;
  stopButton.removeAttribute('aria-disabled');
  if (hadFocus) visible.focus();
}

const formValues = () => ({
  key: keyField.value,
  source: chosenSource(),
  file: fileField.files?.[0],
  address: addressField.value,
  model: modelField.value,
  speakers: speakersField.value,
  transcribe: transcribeField.checked,
});

async function start(): Promise<void> {
  if (running) return;
  const read = readForm(formValues());
  // A slip in the form takes nothing away from the result that is there.
  clearFaults();
  if (!read.ok) return showFaults(read.faults);
  clear();
  showState('');
  const asked = read.value;
  session.key = asked.key;
  const begun = performance.now();
  await run(asked.key, (client, signal) => work(client, asked, signal));
  const isJobDone = asked.source.kind !== 'microphone' && workbench.isShown && problemBox.hidden;
  if (isJobDone) showState(`Done in ${((performance.now() - begun) / 1000).toFixed(1)} s.`);
}

/** Follows a job that was started earlier, and shows its result. A job that failed in the meantime is not reported. */
async function resume(key: string, job: RememberedJob): Promise<void> {
  if (running) return;
  clearFaults();
  clear();
  await run(key, async (client, signal) => {
    showState('Looking for the job …');
    const known = await client.retrieve(job.id, signal);
    if (!known.ok && !signal.aborted) {
      const isGone = known.error.kind === 'refused' && known.error.status === 404;
      if (!isGone) showProblem(problemOf(known.error));
      return;
    }
    const isNews = !known.ok || known.value.output !== undefined || !isTerminal(known.value.status);
    if (!isNews) return showProblem({ message: 'The result is gone: it was kept for 24 hours.', details: [] });
    session.job = job;
    showEnd(client, await followJob(client, job.id, { showState, signal }), job, undefined);
  });
}

function showCompare(): void {
  const { length } = memory.voices;
  compareButton.hidden = length === 0 || shown?.url === undefined;
  compareButton.textContent = `Compare with ${length === 1 ? 'your voice' : `your ${length} voices`}`;
}

/** Finds speakers who sound like the voices of this browser, and asks the user to confirm each match. */
async function compare(): Promise<void> {
  const job = shown;
  if (!job?.url || running) return;
  compareButton.disabled = true;
  say('Comparing voices …');
  const found = await compareVoices(clientOf(keyField.value), job.url, memory.voices, ({ progress }) => {
    if (progress !== undefined) say(`Comparing voices … ${Math.round(100 * progress)} %`);
  });
  compareButton.disabled = false;
  if (shown?.id !== job.id) return;
  if (!found.ok) return showProblem(found.problem);
  const rows = found.value.flatMap(({ turns, name, confidence }) => {
    const label = workbench.speakerAt(turns);
    if (label === undefined || workbench.nameOf(label) === name) return [];
    const row = element('li');
    const current = workbench.nameOf(label);
    const yes = element('button', '', 'Yes');
    const no = element('button', '', 'No');
    yes.setAttribute('aria-label', `Yes, ${current} is ${name}`);
    no.setAttribute('aria-label', `No, ${current} is not ${name}`);
    yes.addEventListener('click', () => {
      row.remove();
      workbench.rename(label, name);
    });
    no.addEventListener('click', () => row.remove());
    row.append(element('span', '', `${current} looks like ${name} (${Math.round(confidence)} %)`), yes, no);
    return [row];
  });
  suggestions.replaceChildren(...rows);
  say(rows.length === 0 ? 'None of the other speakers sounds like your voices.' : 'Are these matches right?');
  suggestions.querySelector('button')?.focus();
}

let language: SnippetLanguage = 'curl';
function showCode(): void {
  const { file, address, model, speakers, transcribe, source } = formValues();
  const isFile = source === 'file';
  find('code', HTMLElement).textContent = snippet(language, {
    origin: location.origin,
    url: address.trim() === '' ? 'https://example.com/meeting.mp3' : address.trim(),
    ...(isFile && { file: file?.name ?? 'meeting.mp3' }),
    options: {
      model,
      ...(/^\d+$/.test(speakers.trim()) && { numSpeakers: Number(speakers) }),
      turnLevelConfidence: true,
      ...(transcribe && { transcription: true }),
    },
  });
}

function listenToCode(): void {
  const tabs = find('languages', HTMLElement);
  for (const [name, title] of Object.entries(SNIPPET_LANGUAGES)) {
    const tab = element('button', '', title);
    tab.type = 'button';
    tab.setAttribute('aria-pressed', String(name === language));
    tab.addEventListener('click', () => {
      language = name as SnippetLanguage;
      for (const other of tabs.children) other.setAttribute('aria-pressed', String(other === tab));
      showCode();
    });
    tabs.append(tab);
  }
  find('copy', HTMLButtonElement).addEventListener('click', () => {
    // Undefined on a page that came over plain http from another machine.
    const copied = navigator.clipboard?.writeText(find('code', HTMLElement).textContent ?? '');
    void copied?.then(() => say('Copied.')).catch(() => undefined);
  });
}

/** Puts a file into the form, as if it had been chosen there. */
function takeFile(file: File): void {
  const transfer = new DataTransfer();
  transfer.items.add(file);
  fileField.files = transfer.files;
  find('source-file', HTMLInputElement).checked = true;
  showForm(true);
  showChoice();
}

async function trySample(): Promise<void> {
  const response = await fetch('/playground/sample.mp3');
  takeFile(new File([await response.blob()], 'conversation.mp3', { type: 'audio/mpeg' }));
  await start();
}

function listenToDrops(): void {
  const zone = find('drop', HTMLElement);
  const hasFiles = ({ dataTransfer }: DragEvent) => dataTransfer?.types.includes('Files') === true;
  window.addEventListener('dragover', (event) => {
    if (!hasFiles(event)) return;
    event.preventDefault();
    zone.hidden = running !== undefined;
  });
  window.addEventListener('dragleave', (event) => {
    if (event.relatedTarget === null) zone.hidden = true;
  });
  window.addEventListener('drop', (event) => {
    zone.hidden = true;
    if (!hasFiles(event)) return;
    event.preventDefault();
    const file = event.dataTransfer?.files[0];
    if (!file || running) return;
    takeFile(file);
    startButton.focus();
  });
}

form.addEventListener('change', showChoice);
form.addEventListener('input', showCode);
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
find('change-key', HTMLButtonElement).addEventListener('click', () => {
  showKey(false);
  keyField.select();
});
find('sample', HTMLButtonElement).addEventListener('click', () => void trySample());
find('new', HTMLButtonElement).addEventListener('click', () => {
  showForm(true);
  fileField.focus();
  scrollTo({ top: 0 });
});
compareButton.addEventListener('click', () => void compare());
window.addEventListener('offline', () => {
  if (running) showState('Connection lost, retrying …');
});
listenToCode();
listenToDrops();
// Another address with a key, put into the same tab.
window.addEventListener('hashchange', takeKey);
// Browsers put back what was chosen before a reload, some of them late.
window.addEventListener('pageshow', showChoice);
showChoice();
takeKey();
if (session.job && keyField.value !== '') void resume(keyField.value, memory.job(session.job.id) ?? session.job);
