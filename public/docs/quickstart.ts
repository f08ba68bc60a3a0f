/** Inserts the address of this service into the examples. */
export function fillOrigin(): void {
  for (const code of document.querySelectorAll('pre code')) {
    code.textContent = (code.textContent ?? '').replaceAll('{{origin}}', location.origin);
  }
}

/** Shows one example at a time. Without this script, the page shows all of them. */
export function mountTabs(): void {
  const list = document.getElementById('tabs');
  const examples = [...document.querySelectorAll<HTMLElement>('.example')];
  const tabs = examples.map((example, i) => {
    const tab = document.createElement('button');
    tab.type = 'button';
    tab.id = `tab-${i}`;
    tab.textContent = example.dataset.name ?? '';
    tab.setAttribute('role', 'tab');
    example.id = `example-${i}`;
    tab.setAttribute('aria-controls', example.id);
    example.setAttribute('role', 'tabpanel');
    example.setAttribute('aria-labelledby', tab.id);
    const code = example.querySelector('pre');
    if (code) {
      code.tabIndex = 0;
      code.setAttribute('role', 'region');
      code.setAttribute('aria-label', `Code, ${tab.textContent}`);
    }
    example.append(copyButton(code?.textContent ?? ''));
    tab.addEventListener('click', () => select(i));
    tab.addEventListener('keydown', ({ key }) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[key];
      if (step === undefined) return;
      const next = (i + step + tabs.length) % tabs.length;
      select(next);
      tabs[next].focus();
    });
    return tab;
  });
  function select(chosen: number): void {
    for (const [i, tab] of tabs.entries()) {
      tab.setAttribute('aria-selected', String(i === chosen));
      tab.tabIndex = i === chosen ? 0 : -1;
      examples[i].hidden = i !== chosen;
    }
  }
  list?.append(...tabs);
  select(0);
}

function copyButton(text: string): HTMLButtonElement {
  const copy = document.createElement('button');
  copy.type = 'button';
  copy.className = 'copy';
  copy.textContent = 'Copy';
  copy.addEventListener('click', () => {
    // The clipboard is undefined if the page comes over plain http from another machine.
    void navigator.clipboard?.writeText(text).then(() => {
      copy.textContent = 'Copied';
    });
  });
  return copy;
}
