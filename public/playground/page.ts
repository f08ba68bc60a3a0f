import { COLOURS } from './canvas.ts';

/** Finds the element with an id. @throws if the page has none of this type */
export function find<T extends HTMLElement>(id: string, type: new () => T): T {
  const found = document.getElementById(id);
  if (!(found instanceof type)) throw new Error(`the page has no ${type.name} #${id}`);
  return found;
}

/** Creates an element. The text is not parsed as markup, because labels come from the service and the user. */
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

/** Creates a button that does not submit its form. */
export function button(text: string, onClick: () => void, className = ''): HTMLButtonElement {
  const node = element('button', className, text);
  node.type = 'button';
  node.addEventListener('click', onClick);
  return node;
}

/** Creates a square in a speaker's colour. */
export function mark(colour: number): HTMLElement {
  return element('span', `mark speaker-${colour % COLOURS}${colour < COLOURS ? '' : ' again'}`);
}

/** Saves a text as a file through a download. */
export function saveFile(name: string, type: string, text: string): void {
  const link = document.createElement('a');
  link.href = URL.createObjectURL(new Blob([text], { type }));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
}
