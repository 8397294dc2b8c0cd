/** The offered operations by name. */
import { cacerts, crls, type CrlsDependencies, csrattrs, type CsrAttrsDependencies } from './distribution.ts';
import { fullcmc, type FullCmcDependencies } from './fullcmc.ts';
import type { EstOperation, OperationName } from './operation.ts';
import { renewalInfo, type RenewalInfoDependencies } from './renewal-info.ts';
import { enrollments, type ServerKeyGenDependencies } from './enrollment.ts';

export type OperationDependencies = ServerKeyGenDependencies &
  CsrAttrsDependencies &
  CrlsDependencies &
  RenewalInfoDependencies &
  FullCmcDependencies;

export function createOperations(dependencies: OperationDependencies): ReadonlyMap<OperationName, EstOperation> {
  const operations = [
    cacerts(),
    csrattrs(dependencies),
    crls(dependencies),
    renewalInfo(dependencies),
    ...enrollments(dependencies),
    fullcmc(dependencies),
  ];
  return new Map(operations.map((operation) => [operation.name, operation]));
}
