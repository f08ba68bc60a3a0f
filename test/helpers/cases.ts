/** Long series of cases: `npm run test:e2e` runs all of them, `npm test` some. */
export const RUNS_ALL_CASES = process.env.TEST_CASES === 'all';

if (!RUNS_ALL_CASES) console.warn('skipped: parts of the long series of cases, which npm run test:e2e runs');
