import type { RollcallClient } from '../../client/sdk/client.ts';
import type { Memory, RememberedJob } from './memory.ts';
import { button, element, find } from './page.ts';
import { type Problem, problemOf } from './problem.ts';
import { askName } from './sheet.ts';
import { clock, count } from './turns.ts';
import { makeVoiceprint } from './voices.ts';

const CONSENT = 'This person agrees that their voice is kept in this browser.';
const EXPLANATION =
  'A billed job creates the voiceprint. Only this browser stores it; the service receives it only for a comparison.';

export interface PanelEvents {
  /** @returns undefined without a key */
  client(): RollcallClient | undefined;
  onOpenJob(job: RememberedJob): void;
  onVoices(): void;
  showProblem(problem: Problem): void;
  say(message: string): void;
}

/** Dialogs that the header opens: earlier jobs, voices and usage. */
export class Panels {
  private readonly dialog = find('panel', HTMLDialogElement);
  private readonly title = find('panel-title', HTMLElement);
  private readonly body = find('panel-body', HTMLElement);

  constructor(
    private readonly memory: Memory,
    private readonly events: PanelEvents,
  ) {
    find('panel-close', HTMLButtonElement).addEventListener('click', () => this.dialog.close());
    find('open-history', HTMLButtonElement).addEventListener('click', () => void this.showHistory());
    find('open-voices', HTMLButtonElement).addEventListener('click', () => this.showVoices());
    find('open-usage', HTMLButtonElement).addEventListener('click', () => void this.showUsage());
  }

  /** Asks for a name and consent, and stores the voice of a clip. */
  async remember(clip: () => Promise<Blob | undefined>, name: string): Promise<void> {
    const client = this.events.client();
    if (!client) return;
    const given = await askName('Remember a voice', EXPLANATION, name, CONSENT);
    if (!given) return;
    this.events.say('Creating a voiceprint …');
    const audio = await clip();
    if (!audio) return;
    const print = await makeVoiceprint(client, audio);
    if (!print.ok) {
      this.events.say('');
      return this.events.showProblem(print.problem);
    }
    const voice = { name: given, voiceprint: print.value, addedAt: new Date().toISOString() };
    const isKept = this.memory.rememberVoice(voice);
    this.events.say(
      isKept ? `The voice of ${given} is kept in this browser.` : 'This browser cannot keep another voice.',
    );
    this.events.onVoices();
  }

  private open(title: string, ...content: HTMLElement[]): void {
    this.title.textContent = title;
    this.body.replaceChildren(...content);
    if (!this.dialog.open) this.dialog.showModal();
  }

  private async showHistory(): Promise<void> {
    const client = this.events.client();
    if (!client) return;
    this.open('History', element('p', 'help', 'Loading …'));
    const listed = await client.list({ limit: 100 });
    if (!listed.ok) return this.open('History', element('p', 'help', problemOf(listed.error).message));
    const list = element('ul', 'list');
    for (const { id, status, createdAt } of listed.value.items) {
      const known = this.memory.job(id);
      const name = known?.name ?? `Job ${id.slice(0, 8)}`;
      const isOpen = status !== 'failed' && status !== 'canceled';
      const row = element('li');
      const what = element('div', 'what');
      what.append(element('strong', '', name));
      what.append(element('span', 'help', `${new Date(createdAt).toLocaleString()} · ${status}`));
      row.append(what);
      if (isOpen) {
        const open = button('Open', () => {
          this.dialog.close();
          this.events.onOpenJob(known ?? { id, name });
        });
        open.setAttribute('aria-label', `Open ${name}`);
        row.append(open);
      }
      list.append(row);
    }
    const help = 'Jobs of this account. Results are kept for 24 hours. Names and changes are stored in this browser.';
    const isEmpty = listed.value.items.length === 0;
    this.open('History', element('p', 'help', isEmpty ? 'No jobs yet.' : help), list);
  }

  private showVoices(): void {
    const list = element('ul', 'list');
    for (const { name, addedAt } of this.memory.voices) {
      const row = element('li');
      const what = element('div', 'what');
      what.append(element('strong', '', name));
      what.append(element('span', 'help', `since ${new Date(addedAt).toLocaleDateString()}`));
      const forget = button('Forget', () => {
        this.memory.forgetVoice(name);
        this.events.onVoices();
        this.showVoices();
      });
      forget.setAttribute('aria-label', `Forget ${name}`);
      row.append(what, forget);
      list.append(row);
    }
    const field = element('input');
    field.type = 'file';
    field.id = 'voice-file';
    field.accept = 'audio/*,video/*';
    const caption = element('label', '', 'Add a voice from a recording of one person, 30 seconds at most');
    caption.htmlFor = field.id;
    field.addEventListener('change', () => {
      const file = field.files?.[0];
      if (!file) return;
      this.dialog.close();
      void this.remember(async () => file, file.name.replace(/\.\w+$/, ''));
    });
    const add = element('div', 'field');
    add.append(caption, field);
    const help = element('p', 'help', `Or choose a speaker of a result. ${EXPLANATION}`);
    this.open('Voices', ...(list.children.length > 0 ? [list] : []), add, help);
  }

  private async showUsage(): Promise<void> {
    const client = this.events.client();
    if (!client) return;
    this.open('Usage', element('p', 'help', 'Loading …'));
    const usage = await client.usage();
    if (!usage.ok) return this.open('Usage', element('p', 'help', problemOf(usage.error).message));
    const { days, totals } = usage.value;
    const text = `${clock(totals.billedSeconds)} of audio billed in 30 days, ${count(totals.jobs, 'job')}`;
    const total = element('p', 'total', text);
    const table = element('table');
    const head = element('tr');
    for (const name of ['Day', 'Kind', 'Jobs', 'Billed']) {
      const cell = element('th', '', name);
      cell.scope = 'col';
      head.append(cell);
    }
    const rows = [...days].reverse().map((day) => {
      const row = element('tr');
      row.append(
        ...[day.date, day.kind, String(day.jobs), clock(day.billedSeconds)].map((text) => element('td', '', text)),
      );
      return row;
    });
    table.createTHead().append(head);
    table.createTBody().append(...rows);
    this.open('Usage', total, ...(rows.length > 0 ? [table] : []));
  }
}
