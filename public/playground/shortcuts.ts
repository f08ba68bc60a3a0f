/** Actions of the keyboard shortcuts. */
export interface ShortcutActions {
  undo(): void;
  redo(): void;
  togglePlay(): void;
  /** Moves the position by a step. @param direction on the time axis */
  move(direction: 1 | -1): void;
  /** Moves to the next or the previous turn. */
  moveToTurn(direction: 1 | -1): void;
  moveToStart(): void;
  moveToEnd(): void;
  zoom(factor: number): void;
}

/** Handles keys on the whole page, except in fields and dialogs. @param slider handles further keys when focused */
export function listenToKeys(slider: HTMLElement, isEnabled: () => boolean, actions: ShortcutActions): void {
  document.addEventListener('keydown', (event) => {
    if (!isEnabled() || document.querySelector('dialog[open]') || event.altKey) return;
    const target = event.target instanceof HTMLElement ? event.target : document.body;
    if (target.closest('input, select, textarea')) return;
    const action =
      event.ctrlKey || event.metaKey ? historyAction(event, actions) : actionOf(event, target, slider, actions);
    if (!action) return;
    event.preventDefault();
    action();
  });
}

function historyAction({ key, shiftKey }: KeyboardEvent, actions: ShortcutActions): (() => void) | undefined {
  if (key.toLowerCase() !== 'z') return undefined;
  return shiftKey ? () => actions.redo() : () => actions.undo();
}

function actionOf(
  { key }: KeyboardEvent,
  target: HTMLElement,
  slider: HTMLElement,
  actions: ShortcutActions,
): (() => void) | undefined {
  const keys: Record<string, () => void> = {
    ArrowLeft: () => actions.move(-1),
    ArrowRight: () => actions.move(1),
    '+': () => actions.zoom(2),
    '-': () => actions.zoom(0.5),
    // On a button, the space bar clicks it.
    ...(!target.closest('button, a, summary') && { ' ': () => actions.togglePlay() }),
    ...(target === slider && {
      ArrowUp: () => actions.moveToTurn(-1),
      ArrowDown: () => actions.moveToTurn(1),
      Home: () => actions.moveToStart(),
      End: () => actions.moveToEnd(),
    }),
  };
  return Object.hasOwn(keys, key) ? keys[key] : undefined;
}
