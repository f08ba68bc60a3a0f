/** The used part of Scalar's script. */
interface Scalar {
  createApiReference(target: string, configuration: object): unknown;
}

/** Loads the reference when the user scrolls near it, because it is a hundred times larger than the quickstart. */
export function mountReference(): void {
  const section = document.getElementById('reference');
  if (!section) return;
  // Removed when the reference adds its own main landmark.
  document.getElementById('quickstart')?.setAttribute('role', 'main');
  // The fragment is the address of an operation in the reference.
  if (location.hash.includes('/')) return void load(section);
  const watch = new IntersectionObserver(
    (entries) => {
      if (!entries.some(({ isIntersecting }) => isIntersecting)) return;
      watch.disconnect();
      load(section);
    },
    { rootMargin: '400px' },
  );
  watch.observe(section);
}

function load({ dataset: { files } }: HTMLElement): void {
  const styles = document.createElement('link');
  styles.rel = 'stylesheet';
  styles.href = `${files}/reference.css`;
  // Inserted before the page's own styles, which override some colours of the reference.
  document.head.prepend(styles);
  const script = document.createElement('script');
  script.src = `${files}/reference.js`;
  script.addEventListener('load', () => {
    const { Scalar } = window as unknown as { readonly Scalar: Scalar };
    Scalar.createApiReference('#scalar', {
      url: '/openapi.json',
      // Prevents requests to other hosts.
      withDefaultFonts: false,
      telemetry: false,
      agent: { disabled: true },
      mcp: { disabled: true },
      showDeveloperTools: 'never',
      hideClientButton: true,
      hideDarkModeToggle: true,
      hiddenClients: { c: true, clojure: true, objc: true, ocaml: true, r: true },
    });
  });
  document.head.append(script);
  nameControls();
}

/** Names controls of the reference for screen readers: Scalar omits some names and repeats others. */
function nameControls(): void {
  const target = document.getElementById('scalar');
  if (!target) return;
  new MutationObserver(() => {
    for (const copy of target.querySelectorAll('button[class*="copy-button"]:not([aria-label])')) {
      copy.setAttribute('aria-label', 'Copy');
    }
    // The text of a button is its name.
    for (const named of target.querySelectorAll('button.show-more[aria-label], button[data-testid][aria-label]')) {
      if (named.textContent?.trim()) named.removeAttribute('aria-label');
    }
    // Every operation has a card with the same name, but the names of landmarks must differ.
    for (const card of target.querySelectorAll('.response-card[role="region"]')) card.setAttribute('role', 'group');
    if (target.querySelector('main')) document.getElementById('quickstart')?.removeAttribute('role');
  }).observe(target, { childList: true, subtree: true });
}
