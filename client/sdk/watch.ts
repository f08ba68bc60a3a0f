/**
 * Gives a request up when nothing comes for so long: a large answer over a slow line may take longer as a whole. Also at the caller's signal, by hand:
 * `AbortSignal.any` is missing in browsers of before the spring of 2024.
 */
export class Watch {
  readonly #control = new AbortController();
  readonly #giveUp = (): void => this.#control.abort(this.caller?.reason);
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    private readonly timeoutMs: number,
    private readonly caller?: AbortSignal,
  ) {
    if (caller?.aborted) this.#giveUp();
    else caller?.addEventListener('abort', this.#giveUp);
    this.renew();
  }

  get signal(): AbortSignal {
    return this.#control.signal;
  }

  renew(): void {
    clearTimeout(this.#timer);
    const late = () => this.#control.abort(new DOMException('nothing came in time', 'TimeoutError'));
    this.#timer = setTimeout(late, this.timeoutMs);
  }

  end(): void {
    clearTimeout(this.#timer);
    this.caller?.removeEventListener('abort', this.#giveUp);
  }
}

/** The body as text; undefined where it breaks off. */
export async function readText(response: Response, watch: Watch | undefined): Promise<string | undefined> {
  const decoder = new TextDecoder();
  let text = '';
  const reader = response.body?.getReader();
  try {
    for (let next = await reader?.read(); next && !next.done; next = await reader?.read()) {
      watch?.renew();
      text += decoder.decode(next.value, { stream: true });
    }
    return text + decoder.decode();
  } catch {
    return undefined;
  }
}
