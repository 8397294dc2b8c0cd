/** What the contract suite needs of an upstream CA, in any protocol: its CA, its decisions, and faults at each of its steps. */
import { createPublicKey } from 'node:crypto';
import { OID } from '../../../../src/pki/der/oids.ts';
import type { Csr } from '../../../../src/pki/pkcs10/csr.ts';
import { parseCertificate } from '../../../../src/pki/x509/certificate.ts';
import { formatName } from '../../../../src/pki/x509/name.ts';
import {
  basicConstraints,
  dns,
  extKeyUsage,
  keyUsage,
  makeCa,
  makeCertificate,
  subjectAltName,
  type CertificateSpec,
  type Issuer,
} from '../../../support/certificates.ts';
import { keyPair } from '../../../support/keys.ts';
import type { Steps } from '../../../support/upstream-steps.ts';

const DAY = 86_400_000;

/** The CA certificates of an upstream. */
export interface Pki {
  readonly issuing: Issuer;
  /** From the issuing CA to the root. */
  readonly chain: readonly Issuer[];
  readonly foreign: Issuer;
  /** Below the same root. */
  readonly expired: Issuer;
  /** Of the next certificate, lower-case hex. */
  readonly serial?: string;
}

export async function makePki(name: string, now: number): Promise<Pki & { readonly root: Issuer }> {
  const root = await makeCa(`CN=${name} Root`);
  const issuing = await makeCa(`CN=${name} Issuing`, { issuer: root });
  return { root, issuing, chain: [issuing, root], ...(await makeStrangers(name, root, now)) };
}

export async function makeStrangers(name: string, root: Issuer, now: number): Promise<Omit<Pki, 'issuing' | 'chain'>> {
  return {
    foreign: await makeCa(`CN=${name} Foreign`),
    expired: await makeCa(`CN=${name} Expired`, { issuer: root, notAfter: now - DAY }),
  };
}

/** Issues what the CSR asks for, with changes. */
export async function certify(
  { issuing, serial }: Pki,
  csr: Csr,
  now: number,
  more: Partial<CertificateSpec> = {},
): Promise<Issuer> {
  const publicKey = createPublicKey({ key: csr.publicKey.spki, format: 'der', type: 'spki' });
  // The private key is never used: the issuer signs.
  const { privateKey } = keyPair('ec:P-256', 'unused');
  const names = csr.subjectAltNames;
  return makeCertificate({
    subject: formatName(csr.subject),
    issuer: issuing,
    ...(serial === undefined ? {} : { serial }),
    keys: { publicKey, privateKey },
    notBefore: now - 60_000,
    notAfter: now + DAY,
    extensions: [...USAGES, ...(names.length === 0 ? [] : [subjectAltName(...names)])],
    ...more,
  });
}

const USAGES = [keyUsage('digitalSignature', 'keyEncipherment'), extKeyUsage(OID.clientAuth, OID.serverAuth)];

export type Wrong = (pki: Pki, csr: Csr, now: number) => Promise<Issuer>;

const bent =
  (more: (csr: Csr, pki: Pki) => Partial<CertificateSpec>): Wrong =>
  (pki, csr, now) =>
    certify(pki, csr, now, more(csr, pki));

/** Certificates that nobody may get; and whether they are the request's own: for its key, and from this CA. */
export const WRONG: Readonly<Record<string, readonly [Wrong, 'own' | 'foreign' | 'another key']>> = {
  'another key': [bent(() => ({ keys: keyPair('ec:P-256', 'another') })), 'another key'],
  'an extra DNS name': [
    bent(({ subjectAltNames }) => ({
      extensions: [...USAGES, subjectAltName(...subjectAltNames, dns('extra.example'))],
    })),
    'own',
  ],
  'another subject': [bent(() => ({ subject: 'CN=somebody else' })), 'own'],
  'an extra RDN': [bent(({ subject }) => ({ subject: `${formatName(subject)},O=Extra` })), 'own'],
  'a CA certificate': [bent(() => ({ extensions: [...USAGES, basicConstraints(true)] })), 'own'],
  'the purpose of a registration authority': [bent(() => ({ extensions: [extKeyUsage(OID.cmcRA)] })), 'own'],
  'a foreign chain': [bent((_, { foreign }) => ({ issuer: foreign })), 'foreign'],
  'an expired chain': [bent((_, { expired }) => ({ issuer: expired })), 'foreign'],
};

export interface Certified {
  readonly der: Buffer;
  isRevoked: boolean;
}

/** What the upstream does with a request. */
export type Mode = 'issue' | 'queue' | 'refuse';

export interface StandIn {
  readonly steps: Steps;
  mode: Mode;
  /** Issued in the place of the next certificate. */
  wrong: Wrong | undefined;
  readonly certified: () => readonly Certified[];
  /** Decides what waits for this name. */
  decide(decision: 'approve' | 'reject', name: string): Promise<void>;
  stop(): Promise<void>;
}

export const isFor = ({ subjectAltNames }: Csr, wanted: string): boolean =>
  subjectAltNames.some((name) => name.kind === 'dns' && name.value === wanted);

/** The certificates of a stand-in. */
export class CertifiedBy {
  readonly all: Certified[] = [];
  wrong: Wrong | undefined;
  readonly #pki: Pki;
  readonly #now: () => number;

  constructor(pki: Pki, now: () => number) {
    this.#pki = pki;
    this.#now = now;
  }

  /** @returns DER of the certificate and its chain */
  async issue(csr: Csr): Promise<readonly Buffer[]> {
    const make = this.wrong ?? certify;
    this.wrong = undefined;
    const { der } = await make(this.#pki, csr, this.#now());
    this.all.push({ der, isRevoked: false });
    return [der, ...this.#pki.chain.map((certificate) => certificate.der)];
  }

  revoke(der: Buffer): void {
    const found = this.all.find((certificate) => certificate.der.equals(der));
    if (found === undefined) throw new Error(`revoked a stranger: ${parseCertificate(der).serialNumber}`);
    found.isRevoked = true;
  }
}
