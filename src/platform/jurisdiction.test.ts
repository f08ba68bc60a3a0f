import { expect, it } from 'vitest';
import { objectsIn } from './jurisdiction.ts';

it('uses the jurisdiction of the deployment, if it has one, for the ids of objects', () => {
  const eu = {} as DurableObjectNamespace;
  const jurisdictions: string[] = [];
  const anywhere = {
    jurisdiction: (name: string) => {
      jurisdictions.push(name);
      return eu;
    },
  } as unknown as DurableObjectNamespace;
  expect(objectsIn('eu', anywhere)).toBe(eu);
  expect(objectsIn(undefined, anywhere)).toBe(anywhere);
  expect(jurisdictions).toEqual(['eu']);
});
