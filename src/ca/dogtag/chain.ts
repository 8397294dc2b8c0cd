/** The certificate of a remote CA and those above it, from the configuration, the server, or both. */
import { describe } from '../../errors.ts';
import { parseCertificate, type Certificate } from '../../pki/x509/certificate.ts';
import { DerError } from '../../pki/der/der.ts';
import { namesMatch, formatName } from '../../pki/x509/name.ts';
import { parseCertsOnly } from '../../pki/cms/cms.ts';
import { arrangeChain } from '../../pki/x509/ca-chain.ts';
import type { CaCertificates } from '../../config/material/material.ts';
import { textOf, type JsonObject, ReplicaFault, getJson } from './answers.ts';
import { certificateIn } from './enroll.ts';
import type { ChainKeeping } from '../remote/chain-keeping.ts';
import type { Replicas } from './replicas.ts';

export class RemoteChain {
  readonly #pinned: CaCertificates | undefined;
  readonly #keeping: ChainKeeping | undefined;
  #certificates: readonly Certificate[];
  #problem: string | undefined;
  #isConfirmed = false;

  /** @param pinned `ca.certificate` and `ca.chain`; the server must agree with them */
  constructor(pinned: CaCertificates | undefined, keeping?: ChainKeeping) {
    this.#pinned = pinned;
    this.#keeping = keeping;
    this.#certificates = pinned === undefined ? [] : [pinned.certificate, ...pinned.issuers, ...pinned.rollover];
  }

  /** DER, the CA's certificate first; empty while unknown. */
  get der(): readonly Buffer[] {
    return this.#certificates.map(({ der }) => der);
  }

  get certificate(): Certificate | undefined {
    return this.#certificates[0];
  }

  /** See `CaDriver.unconfirmed`. */
  get unconfirmed(): readonly Certificate[] {
    return this.#isConfirmed || this.#pinned !== undefined ? [] : (this.#keeping?.anchors ?? []);
  }

  /** Takes the chain that an earlier process kept, until the server answers. Never rejects. */
  async recall(): Promise<void> {
    if (this.#pinned !== undefined || this.#keeping === undefined) return;
    const kept = await this.#keeping.recall();
    if (kept !== undefined && this.certificate === undefined) this.#certificates = kept;
  }

  /** Why the server cannot be used as this CA. */
  get problem(): string | undefined {
    return this.#problem;
  }

  /** Reads the chain from the server; keeps the known chain if that fails. Never rejects. */
  async refresh(replicas: Replicas): Promise<void> {
    try {
      const { own, others } = await replicas.read(async (replica) =>
        certificatesIn(await getJson(replica.call, '/ca/rest/config/cert/signing')),
      );
      this.#problem = await this.#take(own, others);
      if (this.#problem !== undefined) return;
      this.#isConfirmed = true;
      if (this.#pinned === undefined) await this.#keeping?.keep(this.#certificates);
    } catch (error) {
      if (this.certificate === undefined) this.#problem = `the CA certificate is unknown: ${describe(error)}`;
    }
  }

  /** @returns why the certificates are rejected, or undefined */
  async #take(own: Certificate, others: readonly Certificate[]): Promise<string | undefined> {
    const pinned = this.#pinned;
    if (pinned !== undefined && !pinned.certificate.der.equals(own.der))
      return `the server is the CA "${formatName(own.subject)}" (serial ${own.serialNumber}), not that of ca.certificate`;
    const configured = [...(pinned?.issuers ?? []), ...(pinned?.rollover ?? [])];
    const { path, rollover, problems } = await arrangeChain(
      own,
      configured.length > 0 ? configured : above(own, others),
    );
    const [problem] = problems;
    if (problem === undefined) this.#certificates = [...path, ...rollover];
    return problem;
  }
}

function certificatesIn(json: JsonObject): { own: Certificate; others: Certificate[] } {
  const own = certificateIn(json);
  const chain = textOf(json, 'PKCS7CertChain');
  if (chain === undefined) return { own, others: [] };
  try {
    return { own, others: parseCertsOnly(Buffer.from(chain, 'base64')).map(parseCertificate) };
  } catch (error) {
    if (error instanceof DerError) throw new ReplicaFault(`the chain cannot be parsed: ${error.message}`, true, error);
    throw error;
  }
}

/** The certificates from one up to its root, in order; the server's order may differ. */
function above(certificate: Certificate, others: readonly Certificate[]): Certificate[] {
  const path: Certificate[] = [];
  for (let last = certificate; !namesMatch(last.subject, last.issuer);) {
    const { issuer } = last;
    const next = others.find((candidate) => namesMatch(candidate.subject, issuer) && !path.includes(candidate));
    if (next === undefined) break;
    path.push(next);
    last = next;
  }
  return path;
}
