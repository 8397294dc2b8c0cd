/** What Dogtag's directory holds, and what its profiles make of a request. Replicas of a stand-in share one. */
import { randomBytes } from 'node:crypto';
import { createPublicKey } from 'node:crypto';
import { parseCsr, verifyCsr, type VerifiedCsr } from '../../../src/pki/pkcs10/csr.ts';
import { encodeSubjectAltName } from '../../../src/pki/x509/extensions.ts';
import { formatName } from '../../../src/pki/x509/name.ts';
import { OID } from '../../../src/pki/der/oids.ts';
import { extKeyUsage, keyUsage, makeCertificate, type Issuer } from '../certificates.ts';
import { keyPair } from '../keys.ts';
import { StandInKra } from './kra.ts';

export interface Profile {
  /** Issues at once to the agent (AgentCertAuth); otherwise an agent decides. */
  readonly auto: boolean;
  /** 10.10's `caServerCert` leaves the CSR's subjectAltName out, and takes RSA only. */
  readonly keepsSan: boolean;
  readonly rsaOnly: boolean;
  readonly inputClass: string;
}

export const PROFILES: Readonly<Record<string, Profile>> = {
  estuaryAuto: { auto: true, keepsSan: true, rsaOnly: false, inputClass: 'certReqInputImpl' },
  estuaryQueue: { auto: false, keepsSan: true, rsaOnly: false, inputClass: 'certReqInputImpl' },
  caServerCert: { auto: false, keepsSan: false, rsaOnly: true, inputClass: 'certReqInputImpl' },
  caAgentServerCert: { auto: true, keepsSan: false, rsaOnly: true, inputClass: 'certReqInputImpl' },
  caFullCMCUserCert: { auto: true, keepsSan: true, rsaOnly: false, inputClass: 'cmcCertReqInputImpl' },
  caUserCert: { auto: false, keepsSan: true, rsaOnly: false, inputClass: 'keyGenInputImpl' },
};

export interface StoredRequest {
  readonly id: number;
  readonly profile: string;
  readonly requestor: string;
  /** As it was sent. */
  readonly text: string;
  readonly csr: VerifiedCsr;
  status: 'pending' | 'complete' | 'rejected' | 'canceled';
  message: string | null;
  certId: number | null;
}

export interface StoredCertificate {
  readonly der: Buffer;
  readonly subject: string;
  readonly issuedOn: number;
  revoked: string | null;
}

/** A CSR that Dogtag answers with 500. */
export class InvalidRequest extends Error {}

export class StandInState {
  readonly issuer: Issuer;
  readonly requests = new Map<number, StoredRequest>();
  readonly certificates = new Map<number, StoredCertificate>();
  readonly kra = new StandInKra();
  /** Replaces the next certificate: what a faulty CA would issue. */
  issueInstead: ((csr: VerifiedCsr, serial: string) => Promise<Buffer>) | undefined;
  /** Leaves every request to an agent. */
  holds = false;
  /** Why every request is rejected. */
  refusal: string | undefined;
  /** Whether the profiles want a common name. */
  requireCn = true;
  #nextRequest = 10;
  #nextSerial = 10;

  constructor(issuer: Issuer) {
    this.issuer = issuer;
  }

  /** @param stored false: the directory is down, but the ID is assigned */
  async submit(profile: string, text: string, requestor: string, stored = true): Promise<StoredRequest> {
    const rules = PROFILES[profile];
    if (rules === undefined) throw new RangeError(`Profile ${profile} Not Found`);
    const csr = await readCsr(text);
    const request: StoredRequest = {
      id: this.#nextRequest++,
      profile,
      requestor,
      text,
      csr,
      status: 'pending',
      message: null,
      certId: null,
    };
    if (!stored) return request;
    this.requests.set(request.id, request);
    if (rules.auto && !this.holds) await this.approve(request);
    return request;
  }

  async approve(request: StoredRequest): Promise<void> {
    const { csr, profile } = request;
    const subject = formatName(csr.subject);
    if (this.refusal !== undefined) {
      request.status = 'rejected';
      request.message = this.refusal;
      return;
    }
    const rsaExpected = PROFILES[profile]?.rsaOnly === true && csr.publicKey.algorithm !== 'rsa';
    if ((this.requireCn && !/CN=/.test(subject)) || rsaExpected) {
      request.status = 'rejected';
      request.message = rsaExpected ? 'Key Type RSA Not Matched' : `Subject Name Not Matched ${subject}`;
      return;
    }
    const serial = this.#nextSerial++;
    const der = (await this.issueInstead?.(csr, hex(serial))) ?? (await this.issue(csr, serial, profile));
    this.issueInstead = undefined;
    this.certificates.set(serial, { der, subject, issuedOn: Date.now(), revoked: null });
    request.status = 'complete';
    request.certId = serial;
  }

  async issue(csr: VerifiedCsr, serial: number, profile = 'estuaryAuto'): Promise<Buffer> {
    const san = csr.extensions.find(({ oid }) => oid === OID.subjectAltName);
    const keeps = PROFILES[profile]?.keepsSan === true && san !== undefined;
    const certificate = await makeCertificate({
      subject: formatName(csr.subject),
      issuer: this.issuer,
      keys: {
        publicKey: createPublicKey({ key: csr.publicKey.spki, format: 'der', type: 'spki' }),
        // Never used: the issuer signs.
        privateKey: keyPair('ec:P-256', 'unused').privateKey,
      },
      serial: hex(serial),
      notBefore: Date.now() - 60_000,
      notAfter: Date.now() + 90 * 86_400_000,
      extensions: [
        keyUsage('digitalSignature', 'keyEncipherment'),
        extKeyUsage(OID.clientAuth, OID.serverAuth),
        ...(keeps ? [{ ...san, value: encodeSubjectAltName(csr.subjectAltNames) }] : []),
      ],
    });
    return certificate.der;
  }
}

function hex(serial: number): string {
  const digits = serial.toString(16);
  return digits.length % 2 === 0 ? digits : `0${digits}`;
}

async function readCsr(text: string): Promise<VerifiedCsr> {
  try {
    return await verifyCsr(parseCsr(Buffer.from(text.replace(/-----[A-Z ]+-----|\s/g, ''), 'base64')));
  } catch (error) {
    throw new InvalidRequest('Invalid Request', { cause: error });
  }
}

/** An int64 that a double cannot hold, as Dogtag's nonces are. */
export function newNonce(): string {
  return (randomBytes(8).readBigInt64BE() | 1n).toString();
}
