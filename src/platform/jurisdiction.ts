/** Jurisdictions in which D1, R2 and Durable Objects can all keep data. */
export const JURISDICTIONS = ['eu', 'fedramp'] as const;
export type Jurisdiction = (typeof JURISDICTIONS)[number];

/** The objects of a class in a jurisdiction. The same name is another object in each jurisdiction. */
export function objectsIn<Methods extends Rpc.DurableObjectBranded | undefined>(
  jurisdiction: Jurisdiction | undefined,
  namespace: DurableObjectNamespace<Methods>,
): DurableObjectNamespace<Methods> {
  return jurisdiction ? namespace.jurisdiction(jurisdiction) : namespace;
}
