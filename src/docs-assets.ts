import styles from 'swagger-ui-dist/swagger-ui.css';
import script from 'swagger-ui-dist/swagger-ui-bundle.js';
import licences from 'swagger-ui-dist/swagger-ui-bundle.js.LICENSE.txt';
import { dependencies } from '../package.json';
import type { DocsAssets } from './routes/documentation.ts';

/** The reference page's files, out of the Worker's bundle: the page works without any other server. */
export const docsAssets: DocsAssets = { version: dependencies['swagger-ui-dist'], script, styles, licences };
