import { COLOURS } from './timeline.ts';

/** An element of the page, of the type that it is used as. */
export function find<T extends HTMLElement>(id: string, type: new () => T): T {
  const found = document.getElementById(id);
  if (!(found instanceof type)) throw new Error(`the page has no ${type.name} #${id}`);
  return found;
}

/** Text is always set as text: labels come from outside. */
export function element<Name extends keyof HTMLElementTagNameMap>(
  name: Name,
  className = '',
  text?: string,
): HTMLElementTagNameMap[Name] {
  const node = document.createElement(name);
  if (className !== '') node.className = className;
  if (text !== undefined) node.textContent = text;
  return node;
}

/** A button that is no submit button. */
export function button(text: string, onClick: () => void, className = ''): HTMLButtonElement {
  const node = element('button', className, text);
  node.type = 'button';
  node.addEventListener('click', onClick);
  return node;
}

/** A square in a speaker's colour. */
export function mark(colour: number): HTMLElement {
  return element('span', `mark speaker-${colour % COLOURS}${colour < COLOURS ? '' : ' again'}`);
}

/** Saves a text as a file of the browser. */
export function saveFile(name: string, type: string, text: string): void {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}
