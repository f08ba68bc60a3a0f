import microphoneFrames from '../.wrangler/playground/microphone-frames.js';
import playgroundScript from '../.wrangler/playground/playground.js';
import { dependencies } from '../package.json';
import playgroundPage from '../public/index.html';
import playgroundStyles from '../public/playground.css';
import type { DocsAssets } from './routes/documentation.ts';
import type { PlaygroundAssets } from './routes/playground.ts';

/**
 * The reference page's files, out of the Worker's bundle: the page works without any other server. They are two megabytes, which an isolate holds once
 * it has asked for them; those that compute never do.
 */
export const docsAssets: DocsAssets = {
  version: dependencies['swagger-ui-dist'],
  script: async () => (await import('swagger-ui-dist/swagger-ui-bundle.js')).default,
  styles: async () => (await import('swagger-ui-dist/swagger-ui.css')).default,
  licences: async () => (await import('swagger-ui-dist/swagger-ui-bundle.js.LICENSE.txt')).default,
};

/** The playground's files; its scripts are bundled by `public/build.mjs` before the Worker is. */
export const playgroundAssets: PlaygroundAssets = {
  page: playgroundPage,
  styles: playgroundStyles,
  script: playgroundScript,
  microphoneFrames,
};
