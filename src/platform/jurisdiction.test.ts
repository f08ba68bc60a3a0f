import { expect, it } from 'vitest';
import { objectsIn } from './jurisdiction.ts';

it("makes objects' ids in the jurisdiction of the deployment, where it has one", () => {
  const eu = {} as DurableObjectNamespace;
  const asked: string[] = [];
  const anywhere = {
    jurisdiction: (name: string) => {
      asked.push(name);
      return eu;
    },
  } as unknown as DurableObjectNamespace;
  expect(objectsIn('eu', anywhere)).toBe(eu);
  expect(objectsIn(undefined, anywhere)).toBe(anywhere);
  expect(asked).toEqual(['eu']);
});
