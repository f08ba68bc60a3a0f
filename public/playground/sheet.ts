import { button, element, find } from './page.ts';

/** Width of the window below which a sheet is at the bottom of the screen. */
const NARROW_PIXELS = 640;

/** A small dialog next to the element that opened it. */
export class Sheet {
  private readonly dialog = find('sheet', HTMLDialogElement);
  private readonly title = find('sheet-title', HTMLElement);
  private readonly body = find('sheet-body', HTMLElement);

  constructor() {
    find('sheet-close', HTMLButtonElement).addEventListener('click', () => this.dialog.close());
    this.dialog.addEventListener('click', (event) => {
      // A click on the backdrop has the dialog itself as its target.
      if (event.target === this.dialog) this.dialog.close();
    });
  }

  /** @param fill adds the content; its second parameter closes the sheet */
  open(anchor: HTMLElement, title: string, fill: (body: HTMLElement, close: () => void) => void): void {
    this.title.textContent = title;
    this.body.replaceChildren();
    this.dialog.showModal();
    fill(this.body, () => this.dialog.close());
    const { style } = this.dialog;
    if (innerWidth < NARROW_PIXELS) {
      [style.left, style.top] = ['', ''];
      return;
    }
    const [anchorBox, size] = [anchor.getBoundingClientRect(), this.dialog.getBoundingClientRect()];
    style.left = `${Math.max(8, Math.min(innerWidth - size.width - 8, anchorBox.left))}px`;
    style.top = `${Math.max(8, Math.min(innerHeight - size.height - 8, anchorBox.bottom + 4))}px`;
  }
}

/** Asks for a name and for consent. @returns undefined if the user closes the dialog */
export function askName(
  title: string,
  explanation: string,
  name: string,
  consent: string,
): Promise<string | undefined> {
  const dialog = element('dialog', 'dialog');
  const form = element('form');
  const heading = element('h2', '', title);
  heading.id = 'question-title';
  dialog.setAttribute('aria-labelledby', heading.id);
  const field = element('input');
  field.id = 'question-name';
  field.value = name;
  field.required = true;
  field.maxLength = 100;
  const caption = element('label', '', 'Name');
  caption.htmlFor = field.id;
  const tick = element('input');
  tick.type = 'checkbox';
  tick.id = 'question-consent';
  tick.required = true;
  const agreed = element('label', '', consent);
  agreed.htmlFor = tick.id;
  const row = element('div', 'check');
  row.append(tick, agreed);
  const actions = element('div', 'actions');
  const cancel = button('Cancel', () => dialog.close());
  const save = element('button', 'main', 'Remember');
  actions.append(cancel, save);
  form.append(heading, element('p', 'help', explanation), caption, field, row, actions);
  dialog.append(form);
  document.body.append(dialog);
  return new Promise((done) => {
    form.addEventListener('submit', (event) => {
      event.preventDefault();
      done(field.value.trim());
      dialog.close();
    });
    dialog.addEventListener('close', () => {
      done(undefined);
      dialog.remove();
    });
    dialog.showModal();
    field.select();
  });
}
