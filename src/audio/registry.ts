import type { Container } from './container.ts';
import { adts } from './containers/adts/index.ts';
import { aiff } from './containers/aiff/index.ts';
import { amr } from './containers/amr/index.ts';
import { caf } from './containers/caf/index.ts';
import { flac } from './containers/flac/index.ts';
import { matroska } from './containers/matroska/index.ts';
import { mp3 } from './containers/mp3/index.ts';
import { mp4 } from './containers/mp4/index.ts';
import { mpegTs } from './containers/mpeg-ts/index.ts';
import { ogg } from './containers/ogg/index.ts';
import { wav } from './containers/wav/index.ts';

/**
 * Formats with a clear magic come first; ADTS and MPEG audio, which have none, are recognised by a chain of frame
 * headers.
 */
export const CONTAINERS: readonly Container[] = [wav, flac, aiff, caf, amr, mp4, matroska, ogg, mpegTs, adts, mp3];
