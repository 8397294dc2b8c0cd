/** Shared by the tables of certification paths. */
import { OID } from '../../src/pki/der/oids.ts';
import { extKeyUsage, keyUsage, type Issuer } from '../support/certificates.ts';

export const NOW = Date.UTC(2027, 0, 1);

export interface Chain {
  readonly what: string;
  readonly anchors: readonly Issuer[];
  readonly intermediates: readonly Issuer[];
  readonly leaf: Issuer;
  /** undefined: accepted; else the public sentence. */
  readonly refused: string | undefined;
  /** OpenSSL's verdict differs from ours; says why. */
  readonly deviation?: string;
}

export const UNKNOWN = 'certificate signed by unknown authority';

export const CLIENT_USAGES = [keyUsage('digitalSignature'), extKeyUsage(OID.clientAuth)];
