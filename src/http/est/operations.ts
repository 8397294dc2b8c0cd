/** The operations that this server offers, by name. */
import { cacerts } from './cacerts.ts';
import { crls, type CrlsDependencies } from './crls.ts';
import { csrattrs, type CsrAttrsDependencies } from './csrattrs.ts';
import { fullcmc, type FullCmcDependencies } from './fullcmc.ts';
import type { EstOperation, OperationName } from './operation.ts';
import { serverkeygen, type ServerKeyGenDependencies } from './serverkeygen.ts';
import { simpleenroll } from './simpleenroll.ts';
import { simplereenroll } from './simplereenroll.ts';

export type OperationDependencies = ServerKeyGenDependencies &
  CsrAttrsDependencies &
  CrlsDependencies &
  FullCmcDependencies;

export function createOperations(dependencies: OperationDependencies): ReadonlyMap<OperationName, EstOperation> {
  const operations = [
    cacerts(),
    csrattrs(dependencies),
    crls(dependencies),
    simpleenroll(dependencies),
    simplereenroll(dependencies),
    serverkeygen(dependencies),
    fullcmc(dependencies),
  ];
  return new Map(operations.map((operation) => [operation.name, operation]));
}
