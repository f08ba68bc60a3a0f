import docsScript from '../.wrangler/playground/docs.js';
import microphoneFrames from '../.wrangler/playground/microphone-frames.js';
import playgroundScript from '../.wrangler/playground/playground.js';
import { dependencies } from '../package.json';
import docsStyles from '../public/docs.css';
import docsPage from '../public/docs.html';
import playgroundPage from '../public/index.html';
import playgroundStyles from '../public/playground.css';
import type { DocsAssets, PlaygroundAssets } from './routes/pages.ts';

/**
 * The files of `/docs`, from the Worker's bundle: the page needs no other server. The four megabytes of the reference
 * are loaded at its first request, to save memory in isolates that never serve it.
 */
export const docsAssets: DocsAssets = {
  page: docsPage,
  styles: docsStyles,
  script: docsScript,
  referenceVersion: dependencies['@scalar/fastify-api-reference'],
  reference: async () => (await import('../.wrangler/playground/reference.js')).default,
  referenceStyles: async () => (await import('../.wrangler/playground/reference.css')).default,
};

/** The files of the playground. `public/build.mjs` builds the scripts before the Worker is bundled. */
export const playgroundAssets: PlaygroundAssets = {
  page: playgroundPage,
  styles: playgroundStyles,
  script: playgroundScript,
  microphoneFrames,
  sample: async () => (await import('../.wrangler/playground/sample.mp3')).default,
};
