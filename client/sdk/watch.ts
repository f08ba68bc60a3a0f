/**
 * Aborts a request when the caller's signal aborts, or when no data arrives within the timeout. A large answer on a
 * slow line may take longer in total. Avoids `AbortSignal.any`, which browsers have only since spring 2024.
 */
export class Watch {
  readonly #control = new AbortController();
  readonly #abort = (): void => this.#control.abort(this.caller?.reason);
  #timer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    private readonly timeoutMs: number,
    private readonly caller?: AbortSignal,
  ) {
    if (caller?.aborted) this.#abort();
    else caller?.addEventListener('abort', this.#abort);
    this.renew();
  }

  get signal(): AbortSignal {
    return this.#control.signal;
  }

  renew(): void {
    clearTimeout(this.#timer);
    const timeOut = () => this.#control.abort(new DOMException('timed out', 'TimeoutError'));
    this.#timer = setTimeout(timeOut, this.timeoutMs);
  }

  end(): void {
    clearTimeout(this.#timer);
    this.caller?.removeEventListener('abort', this.#abort);
  }
}

/** Reads the body as text; undefined if the connection breaks. */
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
