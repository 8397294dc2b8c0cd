/** The driver with a stand-in or the real Dogtag, and requests as Enrollment makes them. */
import { randomUUID } from 'node:crypto';
import type { AskedProfile, DogtagCa } from '../../../src/ca/dogtag/dogtag-ca.ts';
import { createDogtagCa } from '../../../src/ca/dogtag/index.ts';
import type { IssuanceRequest, IssuanceResult } from '../../../src/ca/driver.ts';
import { caCertificates, type CaCertificates } from '../../../src/config/material/material.ts';
import { readCertificates, readPrivateKey } from '../../../src/config/material/reader.ts';
import { FairLimiter } from '../../../src/process/fair-limiter.ts';
import { parseCsr, verifyCsr } from '../../../src/pki/pkcs10/csr.ts';
import { arrangeChain } from '../../../src/pki/x509/ca-chain.ts';
import { makeKey, simpleCsr, type TestKey } from '../../support/csr.ts';
import { ASKED_PROFILE, type DogtagSettings } from '../../support/dogtag-stand-in/index.ts';

const QUIET = { info: () => undefined, warn: () => undefined, error: () => undefined };

export interface OpenOptions {
  /** Path of a certificate that pins the CA. */
  readonly certificate?: string;
  readonly profile?: Partial<AskedProfile> & { readonly key_escrow?: boolean };
}

export async function openDriver(
  dogtag: DogtagSettings,
  { certificate, profile = {} }: OpenOptions = {},
): Promise<DogtagCa> {
  const ca = createDogtagCa(
    {
      table: {
        label: 'dogtag',
        profile: { ...ASKED_PROFILE, max_validity_days: 825, ...profile },
        dogtag: { ...dogtag, urls: [...dogtag.urls], kra_urls: [...dogtag.kra_urls] },
      },
      certificates: certificate === undefined ? undefined : await pinned(certificate),
      trustAnchors: await readCertificates(dogtag.trust_anchors),
      client: {
        certificates: await readCertificates(dogtag.client_certificate),
        privateKey: await readPrivateKey(dogtag.client_key),
      },
    },
    {
      retryAfter: 7,
      log: QUIET,
      now: Date.now,
      store: {
        recallIntermediates: () => Promise.resolve([]),
        rememberIntermediates: () => Promise.resolve(),
        getAcmeAccount: () => Promise.resolve(undefined),
        putAcmeAccount: () => Promise.resolve(),
      },
      makeMutex: (_name, queueLimit) => new FairLimiter({ concurrency: 1, queue: queueLimit }),
    },
  );
  await ca.start();
  return ca;
}

async function pinned(file: string): Promise<CaCertificates> {
  const [own, ...others] = await readCertificates(file);
  return caCertificates(await arrangeChain(own, others));
}

/** A request of a CSR, for the CSR's own names. */
export async function requestFor(der: Buffer): Promise<IssuanceRequest> {
  const csr = await verifyCsr(parseCsr(der));
  const { subject, subjectAltNames, publicKey } = csr;
  return { request_id: randomUUID(), subject, subjectAltNames, spki: publicKey.spki, csr };
}

/** A request for CN=`cn` with a new key. */
export function newRequest(
  cn: string,
  dnsNames: readonly string[] = [],
  key: TestKey = makeKey(),
): Promise<IssuanceRequest> {
  return requestFor(simpleCsr(key, cn, dnsNames));
}

export async function issue(ca: DogtagCa, request: IssuanceRequest): Promise<IssuanceResult> {
  return (await ca.prepare(request)).issue();
}

/** Issues into a queue; what `poll` takes. */
export async function queued(ca: DogtagCa, request: IssuanceRequest): Promise<string> {
  const result = await issue(ca, request);
  if (result.status !== 'pending') throw new Error(`${result.status}, not pending`);
  return result.reference;
}

/** Issues at once; DER. */
export async function issued(ca: DogtagCa, request: IssuanceRequest): Promise<Buffer> {
  const result = await issue(ca, request);
  if (result.status !== 'issued') throw new Error(`${result.status}, not issued`);
  return result.certificate;
}
