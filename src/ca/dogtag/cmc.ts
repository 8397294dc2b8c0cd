/**
 * Forwards requests of full CMC messages to Dogtag's CMC service. Dogtag requires that the message's signer
 * authenticates the connection, so each request is wrapped and signed anew by the agent. Estuary checks the client's
 * signature, IDs and nonces, and builds the response.
 */
import { CmcError } from '../../pki/cmc/cmc-error.ts';
import { parseControl } from '../../pki/cmc/controls.ts';
import { buildPkiData, parsePkiResponse } from '../../pki/cmc/pki-data.ts';
import type { CmcStatusInfo } from '../../pki/cmc/status-info.ts';
import type { KeyPair } from '../../config/material/material.ts';
import { describe, failed, unavailable } from '../../errors.ts';
import { NoPermitError, type MakeMutex, type Limiter } from '../../process/fair-limiter.ts';
import type { Certificate } from '../../pki/x509/certificate.ts';
import {
  parseSignedData,
  verifySignerInfo,
  type SignedData,
  buildSignedData,
  issuerAndSerialNumber,
  keySigner,
  type CmsSigner,
} from '../../pki/cms/cms.ts';
import { DerError } from '../../pki/der/der.ts';
import { OID } from '../../pki/der/oids.ts';
import type { ForwardedRequest } from '../driver.ts';
import type { RemoteChain } from './chain.ts';
import type { HttpAnswer } from '../../https-client.ts';
import { complaint, sentence, ReplicaFault } from './answers.ts';
import type { Replicas } from './replicas.ts';

type CmcResult =
  | {
      readonly status: 'issued';
      /* DER of all certificates in the response. */ readonly certificates: readonly Buffer[];
    }
  | { readonly status: 'rejected'; readonly reason: string };

interface CmcServiceOptions {
  readonly replicas: Replicas;
  readonly agent: KeyPair;
  /** Dogtag's enrollment profile. */
  readonly profile: string;
  readonly retryAfter: number;
  readonly chain: Pick<RemoteChain, 'certificate'>;
  /** The CA's label; all nodes together send one request at a time. */
  readonly label: string;
  readonly makeMutex: MakeMutex;
  readonly now: () => number;
}

/** Requests that may wait for the mutex, and their maximum wait in milliseconds. */
const QUEUE = 256;
const WAIT = 30_000;
const BODY_PART = 1;

export class CmcService {
  readonly #options: CmcServiceOptions;
  /**
   * Dogtag 10.10 keeps a message in a field that its threads share, so concurrent requests receive each other's
   * certificates.
   */
  readonly #mutex: Limiter;
  readonly #agent: Certificate;
  readonly signer: CmsSigner;

  /** @throws EstuaryError 500 `CA_UNUSABLE` if the agent's key cannot sign */
  constructor(options: CmcServiceOptions) {
    this.#options = options;
    this.#mutex = options.makeMutex(`cmc:${options.label}`, QUEUE);
    const { certificates, privateKey } = options.agent;
    [this.#agent] = certificates;
    try {
      this.signer = keySigner(privateKey, this.#agent.publicKey, issuerAndSerialNumber(this.#agent));
    } catch (error) {
      throw failed('CA_UNUSABLE', `dogtag.client_key: ${describe(error)}`);
    }
  }

  get certificate(): Buffer {
    return this.#agent.der;
  }

  /**
   * Submits one request once, under the mutex.
   * @throws EstuaryError 500 if the CA cannot process it, 503 if it certainly did not arrive; SubmissionUnanswered,
   * also if the CA queued it without returning an ID
   */
  async submit(request: ForwardedRequest): Promise<CmcResult> {
    const { replicas, retryAfter, profile } = this.#options;
    const body = await this.#message(request);
    const release = await this.#mutex.acquire({ waitMs: WAIT }).catch((error: unknown) => {
      if (!(error instanceof NoPermitError)) throw error;
      throw unavailable('CA_BUSY', 'The CA is busy.', { retryAfter, detail: error.message });
    });
    try {
      return await replicas.submit(async (replica) =>
        this.#result(
          await replica.call({
            method: 'POST',
            path: `/ca/ee/ca/profileSubmitCMCFull?profileId=${profile}`,
            headers: { 'Content-Type': 'application/pkcs7-mime', Accept: '*/*' },
            body,
            freshConnection: true,
          }),
        ),
      );
    } finally {
      release();
    }
  }

  #message({ format, der }: ForwardedRequest): Promise<Buffer> {
    const kind = format === 'crmf' ? 'crm' : 'tcr';
    return buildSignedData({
      contentType: OID.pkiData,
      content: buildPkiData({ reqSequence: [{ kind, bodyPartID: BODY_PART, der }] }),
      certificates: [this.#agent.der],
      signers: [this.signer],
      signingTime: new Date(this.#options.now()),
    });
  }

  async #result(answer: HttpAnswer): Promise<CmcResult> {
    const type = answer.headers['content-type']?.split(';')[0];
    if (answer.status !== 200 || type !== 'application/pkcs7-mime')
      throw new ReplicaFault(complaint(answer), answer.status !== 404);
    const { signedData, status } = await this.#read(answer.body);
    if (status.status === 'success') return { status: 'issued', certificates: signedData.certificates };
    return refusal(sentence(status.statusString ?? status.status));
  }

  /** @throws ReplicaFault unless it is a PKI response signed by the CA */
  async #read(der: Buffer): Promise<{ signedData: SignedData; status: CmcStatusInfo }> {
    try {
      const signedData = parseSignedData(der);
      const [signer] = signedData.signerInfos;
      const issuer = this.#options.chain.certificate;
      if (
        signer === undefined ||
        issuer === undefined ||
        !(await verifySignerInfo(signedData, signer, issuer.publicKey))
      )
        throw new ReplicaFault('the CMC response is not signed by the CA', true);
      if (signedData.contentType !== OID.pkiResponse || signedData.content === undefined)
        throw new ReplicaFault('the CMC response contains no PKIResponse', true);
      const { controlSequence } = parsePkiResponse(signedData.content);
      for (const control of controlSequence.map(parseControl))
        if (control.name === 'statusInfoV2' || control.name === 'statusInfo')
          return { signedData, status: control.value };
      throw new ReplicaFault('the CMC response contains no status', true);
    } catch (error) {
      if (!(error instanceof DerError) && !(error instanceof CmcError)) throw error;
      throw new ReplicaFault(`the CMC response cannot be parsed: ${error.message}`, true, error);
    }
  }
}

/** Only certain outcomes are rejections. "Request Deferred" means queued, without an ID. */
function refusal(text: string): CmcResult {
  // The agent is unknown, or its directory is down; the request was not processed.
  if (text.startsWith('Invalid Credential')) throw new ReplicaFault(text, false);
  if (/^Profile \S+ Not Found/.test(text))
    throw failed('CA_REFUSED', 'The CA cannot process this request.', { detail: text });
  if (/Rejected/.test(text)) return { status: 'rejected', reason: text };
  throw new ReplicaFault(text, true);
}
