import type { Endpoint } from './endpoint.ts';
import { FOR_MINUTES, file, page, send } from './static-files.ts';

/** The playground, as the Worker's bundle holds it. */
export interface PlaygroundAssets {
  /** HTML with `{{version}}` where the service's version goes. */
  readonly page: string;
  readonly styles: string;
  readonly script: string;
  /** What runs in the browser's audio thread. */
  readonly microphoneFrames: string;
  /** Sample recording, MP3. */
  readonly sample: () => Promise<ArrayBuffer>;
}

const SCRIPT = 'text/javascript; charset=utf-8';

/**
 * GET /: the playground with its files. It plays a local recording from the page's memory (`blob:`), an upload from the
 * service, and a recording on the web from its address.
 */
export function playground(version: string, assets: PlaygroundAssets): Endpoint[] {
  const html = assets.page.replace('{{version}}', version);
  return [
    page('/', 'getPlayground', 'Playground', html, ["media-src 'self' blob: https: http:"]),
    file('/playground/playground.css', (c) => send(c, 'text/css; charset=utf-8', assets.styles, FOR_MINUTES)),
    file('/playground/playground.js', (c) => send(c, SCRIPT, assets.script, FOR_MINUTES)),
    file('/playground/microphone-frames.js', (c) => send(c, SCRIPT, assets.microphoneFrames, FOR_MINUTES)),
    file('/playground/sample.mp3', async (c) => send(c, 'audio/mpeg', await assets.sample(), FOR_MINUTES)),
  ];
}
