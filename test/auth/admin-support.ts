/** Administrators, and an authenticator over a store, for the tests of authentication and of sessions. */
import { createHash } from 'node:crypto';
import { AdminAuthenticator, type AdminAuthSettings } from '../../src/auth/admin-authenticator.ts';
import type { FailureRecords } from '../../src/auth/failure-records.ts';
import type { PresentedCredentials } from '../../src/auth/identity.ts';
import { EstuaryError } from '../../src/errors.ts';
import { encodePem } from '../../src/pki/der/pem.ts';
import { parseCertificate } from '../../src/pki/x509/certificate.ts';
import type { Store } from '../../src/store/store.ts';
import { makeCa, makeClient } from '../support/certificates.ts';
import { failureRecords } from '../support/failure-records.ts';
import { opened, T0, temporaryPaths } from '../store/support.ts';
import { clientTrust } from '../support/client-trust.ts';

export const DAY = 86_400_000;
export const adminCa = await makeCa('CN=Admin CA');
export const admin = await makeClient('CN=Alice,OU=Admins', adminCa);
export const device = await makeClient('CN=device', await makeCa('CN=Devices'));
export const trust = await clientTrust({ trustAnchors: encodePem('CERTIFICATE', adminCa.der) });

export const fingerprintOf = (der: Buffer): string => `sha256:${createHash('sha256').update(der).digest('hex')}`;
export const spkiOf = (der: Buffer): string => createHash('sha256').update(parseCertificate(der).spki).digest('hex');
export const hashed = (token: string): string => `sha256:${createHash('sha256').update(token).digest('hex')}`;
export const TOKENS = [
  { token_hash: hashed('first-token'), description: 'first' },
  { token_hash: hashed('second-token').toUpperCase().replace('SHA256', 'sha256'), description: 'second' },
];

export const REQUIRED = '401 admin authentication required';
export const FAILED = '401 admin authentication failed';

export interface Setup {
  readonly store: Store;
  readonly failures: FailureRecords;
  settings: AdminAuthSettings;
  readonly outcome: (presented: Partial<PresentedCredentials>) => Promise<string>;
}

export async function setUp(mode: AdminAuthSettings['mode'], bearer: boolean): Promise<Setup> {
  const store = await opened(temporaryPaths());
  const failures = failureRecords(store);
  const setup: Setup = {
    store,
    failures,
    settings: { mode, trust: mode === 'none' ? undefined : trust, bearer_token: { enabled: bearer, tokens: TOKENS } },
    outcome: async (presented) => {
      const none = {
        peerCertificate: undefined,
        peerIntermediates: [],
        authorization: undefined,
        address: '192.0.2.1',
      };
      try {
        const { method, display } = await authenticator.authenticate({ ...none, ...presented });
        return `${method} ${display}`;
      } catch (error) {
        if (!(error instanceof EstuaryError)) throw error;
        return `${error.status} ${error.message}`;
      }
    },
  };
  const authenticator = new AdminAuthenticator(
    () => setup.settings,
    store,
    failures,
    () => T0 + DAY,
  );
  return setup;
}

export const certificate = { peerCertificate: admin.der };
export const foreign = { peerCertificate: device.der };
export const token = { authorization: 'Bearer second-token' };
export const wrong = { authorization: 'Bearer third-token' };
