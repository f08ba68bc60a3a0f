import { speakerCountText } from '../../client/format/speaker-count.ts';
import { putWithProgress } from '../../client/library/upload.ts';
import { isTerminal, RollcallClient } from '../../client/sdk/client.ts';
import { CodeExample } from './code-example.ts';
import { wavFile } from './decode.ts';
import { outputOf } from './edits.ts';
import { listenToDrops } from './file-drop.ts';
import { followJob, type JobEnd, type RunOptions, runJob } from './job.ts';
import { Memory, type RememberedJob } from './memory.ts';
import { listen } from './microphone.ts';
import { button, element, find } from './page.ts';
import { Panels } from './panels.ts';
import { Peaks } from './peaks.ts';
import { type Problem, problemOf } from './problem.ts';
import { type Fault, type FormRequest, nameOf, readForm } from './request.ts';
import { keyInFragment, Session } from './session.ts';
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
const speakerCount = find('speaker-count', HTMLElement);
const suggestions = find('suggestions', HTMLElement);
const compareButton = find('compare', HTMLButtonElement);
const session = new Session(() => sessionStorage);
const memory = new Memory(() => localStorage);

/** Largest recording that the page fetches for its waveform; a larger one only plays from its address. */
const MAX_FETCHED_BYTES = 512 * 1024 * 1024;
/** Length of the audio of a live stream that the page keeps for playback. */
const MAX_KEPT_SECONDS = 3600;
let running: AbortController | undefined;
/** The job whose result the page shows. */
let shownJob: RememberedJob | undefined;

const workbench = new Workbench({
  onEdits(edits) {
    if (!shownJob) return;
    shownJob = { ...shownJob, edits };
    memory.rememberJob(shownJob);
  },
  onRemember(label, name) {
    void panels.remember(
      async () => {
        const { file } = workbench;
        if (!file) {
          showProblem({ message: 'This browser has only the result, not the recording.', details: [] });
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

const formValues = () => ({
  key: keyField.value,
  source: chosenSource(),
  file: fileField.files?.[0],
  address: addressField.value,
  model: modelField.value,
  speakers: speakersField.value,
  transcribe: transcribeField.checked,
});

const codeExample = new CodeExample(formValues, say);

function showChoice(): void {
  const source = chosenSource();
  for (const kind of ['file', 'address', 'microphone']) find(`of-${kind}`, HTMLElement).hidden = kind !== source;
  find('options', HTMLElement).hidden = source === 'microphone';
  startButton.textContent = source === 'microphone' ? 'Listen' : 'Find the speakers';
  codeExample.update();
}

/** Shows the field for the key, or only that a key is set. */
function showKey(isKnown: boolean): void {
  find('key-field', HTMLElement).hidden = isKnown;
  find('key-known', HTMLElement).hidden = !isKnown;
}

function readKey(): void {
  const keyFromAddress = keyInFragment(location);
  // The key must not be visible in the address bar, or copied with the address.
  if (location.hash !== '') history.replaceState(null, '', location.pathname + location.search);
  if (keyFromAddress !== undefined) session.key = keyFromAddress;
  keyField.value = keyFromAddress ?? session.key;
  showKey(keyField.value !== '');
}

/** Shows a message to screen readers, in the status line and in a toast. */
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
  // Without the percentage, because a screen reader would read each one aloud. The progress bar has it on request.
  const spokenMessage = fraction === undefined ? message : message.replace(/ \d+ %$/, '');
  if (spoken.textContent !== spokenMessage) spoken.textContent = spokenMessage;
  progressBar.hidden = running === undefined;
  if (fraction === undefined) progressBar.removeAttribute('value');
  else progressBar.value = fraction;
}

function showProblem({ message, details, isKeyFault }: Problem): void {
  const head = element('p', '', message);
  const list = element('ul');
  for (const detail of details) list.append(element('li', '', detail));
  problemBox.replaceChildren(head, ...(details.length > 0 ? [list] : []));
  problemBox.hidden = false;
  problemBox.scrollIntoView({ block: 'nearest' });
  if (!isKeyFault) return;
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

/** Shows the form, or a button that opens it. */
function showForm(isShown: boolean): void {
  form.hidden = !isShown;
  find('again', HTMLElement).hidden = isShown;
}

function clear(): void {
  workbench.close();
  shownJob = undefined;
  session.job = undefined;
  warning.hidden = true;
  speakerCount.hidden = true;
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
  const recorded: Float32Array[] = [];
  let [rateHz, seconds] = [16_000, 0];
  const onSamples = (samples: Float32Array, sampleRateHz: number) => {
    rateHz = sampleRateHz;
    if (seconds < MAX_KEPT_SECONDS) recorded.push(samples);
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
  workbench.load(wavFile(recorded, rateHz));
  workbench.open({ name: 'microphone', output: { diarization: turns }, edits: [] });
  showForm(false);
}

function showUploadProgress(totalBytes: number): (sentBytes: number) => void {
  return (sentBytes) => {
    const share = totalBytes > 0 ? sentBytes / totalBytes : 0;
    showState(`Sending the file … ${Math.round(100 * share)} %`, share);
  };
}

async function runRequest(
  client: RollcallClient,
  { source, ...options }: FormRequest,
  signal: AbortSignal,
): Promise<void> {
  if (source.kind === 'microphone') return stream(client, signal);
  let job: RememberedJob = { id: '', name: nameOf(source) };
  const runOptions: RunOptions = {
    showState,
    onCreated(id, url) {
      job = { ...job, id, ...(!/^data:/i.test(url) && { url }) };
      session.job = job;
      memory.rememberJob(job);
    },
    ...(source.kind === 'file' && { put: putWithProgress(showUploadProgress(source.file.size)) }),
    signal,
  };
  const end = await runJob(client, { ...options, source }, runOptions);
  showEnd(client, end, job, source.kind === 'file' ? source.file : undefined);
}

function showEnd(client: RollcallClient, end: JobEnd, job: RememberedJob, file: File | undefined): void {
  const output = end.ok ? outputOf(end.job) : undefined;
  if (end.ok && output) {
    shownJob = memory.job(job.id) ?? job;
    const note = output.warning;
    warning.textContent = typeof note === 'string' ? note : '';
    warning.hidden = typeof note !== 'string';
    speakerCount.textContent = output.speakerCount ? speakerCountText(output.speakerCount) : '';
    speakerCount.hidden = output.speakerCount === undefined;
    workbench.load(file);
    workbench.open({ name: job.name, output, edits: shownJob.edits ?? [] });
    showForm(false);
    showCompare();
    if (!file) void loadRecording(client, job);
  } else if (end.ok) {
    showProblem({ message: 'This job has no turns to show.', details: [`Job ${job.id}`] });
  } else if (!end.isLost) session.job = undefined;
  if (!end.ok && end.problem) showProblem(end.problem);
}

/** Loads the recording of a job from its address or from the service, which keeps uploads for 48 hours. */
async function loadRecording(client: RollcallClient, { id, url }: RememberedJob): Promise<void> {
  if (url === undefined) return workbench.note('This browser does not have the recording of this job.', true);
  if (!url.startsWith('media://')) return workbench.load(url);
  const ticket = await client.downloadUrl(url.slice('media://'.length));
  if (shownJob?.id !== id) return;
  if (!ticket.ok) {
    return workbench.note('The service no longer has the recording: it keeps uploads for 48 hours.', true);
  }
  workbench.load(ticket.value);
  try {
    const { size } = new URL(ticket.value).origin === location.origin ? await sizeOf(ticket.value) : { size: Infinity };
    if (size > MAX_FETCHED_BYTES) return;
    const blob = await (await fetch(ticket.value)).blob();
    if (shownJob?.id === id) workbench.attach(blob);
  } catch {
    // The recording plays from its address, without a waveform.
  }
}

async function sizeOf(address: string): Promise<{ readonly size: number }> {
  const { ok, headers } = await fetch(address, { method: 'HEAD' });
  const length = Number(headers.get('Content-Length') ?? Number.NaN);
  return { size: ok && Number.isFinite(length) ? length : Infinity };
}

/** Runs a task that the user can stop. Disables the form until its end. */
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

/** Shows the start button or the stop button, and moves the focus from the other one. */
function showButtons(): void {
  const [visible, other] = running ? [stopButton, startButton] : [startButton, stopButton];
  const hadFocus = document.activeElement === other;
  visible.hidden = false;
  other.hidden = true;
  stopButton.removeAttribute('aria-disabled');
  if (hadFocus) visible.focus();
}

async function start(): Promise<void> {
  if (running) return;
  const read = readForm(formValues());
  // A fault in the form does not remove the current result.
  clearFaults();
  if (!read.ok) return showFaults(read.faults);
  clear();
  showState('');
  const request = read.value;
  session.key = request.key;
  const startedMs = performance.now();
  await run(request.key, (client, signal) => runRequest(client, request, signal));
  const isJobDone = request.source.kind !== 'microphone' && workbench.isShown && problemBox.hidden;
  if (isJobDone) showState(`Done in ${((performance.now() - startedMs) / 1000).toFixed(1)} s.`);
}

/** Follows a job that was started earlier, and shows its result. Does not report a job that no longer exists. */
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
    const isExpired = known.ok && known.value.output === undefined && isTerminal(known.value.status);
    if (isExpired)
      return showProblem({ message: 'The result has expired: the service keeps it for 24 hours.', details: [] });
    session.job = job;
    showEnd(client, await followJob(client, job.id, { showState, signal }), job, undefined);
  });
}

function showCompare(): void {
  const { length } = memory.voices;
  compareButton.hidden = length === 0 || shownJob?.url === undefined;
  compareButton.textContent = `Compare with ${length === 1 ? 'your voice' : `your ${length} voices`} (a billed job)`;
}

/** Finds speakers who match the stored voices, and asks the user to confirm each match. */
async function compare(): Promise<void> {
  const job = shownJob;
  if (!job?.url || running) return;
  compareButton.disabled = true;
  say('Comparing voices …');
  const found = await compareVoices(clientOf(keyField.value), job.url, memory.voices, ({ progress }) => {
    if (progress !== undefined) say(`Comparing voices … ${Math.round(100 * progress)} %`);
  });
  compareButton.disabled = false;
  if (shownJob?.id !== job.id) return;
  if (!found.ok) return showProblem(found.problem);
  const rows = found.value.flatMap(({ turns, name, confidence }) => {
    const label = workbench.speakerAt(turns);
    if (label === undefined || workbench.nameOf(label) === name) return [];
    const row = element('li');
    const current = workbench.nameOf(label);
    const yes = button('Yes', () => {
      row.remove();
      workbench.rename(label, name);
    });
    const no = button('No', () => row.remove());
    yes.setAttribute('aria-label', `Yes, ${current} is ${name}`);
    no.setAttribute('aria-label', `No, ${current} is not ${name}`);
    row.append(element('span', '', `${current} sounds like ${name} (${Math.round(confidence)} %)`), yes, no);
    return [row];
  });
  suggestions.replaceChildren(...rows);
  say(rows.length === 0 ? 'No other speaker matches your voices.' : 'Are these matches right?');
  suggestions.querySelector('button')?.focus();
}

/** Selects a file in the form. */
function selectFile(file: File): void {
  const transfer = new DataTransfer();
  transfer.items.add(file);
  fileField.files = transfer.files;
  find('source-file', HTMLInputElement).checked = true;
  showForm(true);
  showChoice();
}

async function trySample(): Promise<void> {
  const response = await fetch('/playground/sample.mp3');
  selectFile(new File([await response.blob()], 'conversation.mp3', { type: 'audio/mpeg' }));
  await start();
}

form.addEventListener('change', showChoice);
form.addEventListener('input', () => codeExample.update());
form.addEventListener('submit', (event) => {
  event.preventDefault();
  void start();
});
stopButton.addEventListener('click', () => {
  showState('Stopping …');
  // Not `disabled`: a disabled button would lose the focus, which must move to the start button.
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
listenToDrops(
  () => running !== undefined,
  (file) => {
    selectFile(file);
    startButton.focus();
  },
);
// The user may open an address with another key in the same tab.
window.addEventListener('hashchange', readKey);
// Browsers restore the form after a reload, some of them after this script has run.
window.addEventListener('pageshow', showChoice);
showChoice();
readKey();
if (session.job && keyField.value !== '') void resume(keyField.value, memory.job(session.job.id) ?? session.job);
