/** The client of live streams alone. */
export * from '../live/index.ts';
