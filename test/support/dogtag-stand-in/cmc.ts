/**
 * Dogtag's CMC servlet: whatever comes of a message, the answer is 200 and a signed PKIResponse; the TLS certificate has to be
 * the signer's; what is queued is reported failed; and the message is kept in a field that all requests share.
 */
import { buildControl, parseControl } from '../../../src/pki/cmc/controls.ts';
import { parsePkiData, buildPkiResponse } from '../../../src/pki/cmc/pki-data.ts';
import type { CmcStatusInfo } from '../../../src/pki/cmc/status-info.ts';
import { parseCertificate } from '../../../src/pki/x509/certificate.ts';
import {
  parseSignedData,
  verifySignerInfo,
  buildSignedData,
  issuerAndSerialNumber,
  keySigner,
} from '../../../src/pki/cms/cms.ts';
import { DerError } from '../../../src/pki/der/der.ts';
import { OID } from '../../../src/pki/der/oids.ts';
import { pause } from '../until.ts';
import { InvalidRequest, PROFILES, type StandInState } from './state.ts';

interface Outcome {
  readonly status: CmcStatusInfo;
  readonly certificates: readonly Buffer[];
}

const BAD_REQUEST = 'badRequest';
const CA_ERROR = 'internalCAError';

export class CmcServlet {
  readonly #state: StandInState;
  /** The field of 10.10 that every thread writes and reads. */
  #message: Buffer = Buffer.alloc(0);

  constructor(state: StandInState) {
    this.#state = state;
  }

  async answer(body: Buffer, profile: string, agent: Buffer | undefined): Promise<Buffer> {
    this.#message = body;
    // Where another thread gets its turn.
    await pause(20);
    const { status, certificates } = await this.#outcome(this.#message, profile, agent);
    const issuer = parseCertificate(this.#state.issuer.der);
    return buildSignedData({
      contentType: OID.pkiResponse,
      content: buildPkiResponse({ controlSequence: [buildControl(1, 'statusInfoV2', status)] }),
      certificates: [...certificates, issuer.der],
      signers: [keySigner(this.#state.issuer.keys.privateKey, issuer.publicKey, issuerAndSerialNumber(issuer))],
      signingTime: new Date(),
    });
  }

  async #outcome(body: Buffer, profile: string, agent: Buffer | undefined): Promise<Outcome> {
    const request = await readMessage(body, agent);
    if (request === undefined) return refused('Invalid Credential.', BAD_REQUEST);
    if (PROFILES[profile] === undefined) return refused(`Profile ${profile} Not Found`, CA_ERROR);
    const stored = await this.#state.submit(profile, request.toString('base64'), '').catch((error: unknown) => {
      if (error instanceof InvalidRequest) return undefined;
      throw error;
    });
    // The stand-in reads PKCS#10 only.
    if (stored === undefined) return refused('Invalid Request Rejected - {1}', CA_ERROR);
    if (stored.status === 'pending') return refused('Request Deferred', CA_ERROR);
    if (stored.certId === null) return refused(`Request ${String(stored.message)} Rejected - {1}`, CA_ERROR);
    const issued = this.#state.certificates.get(stored.certId);
    return { status: { status: 'success', bodyList: [1] }, certificates: issued === undefined ? [] : [issued.der] };
  }
}

function refused(statusString: string, failInfo: 'badRequest' | 'internalCAError'): Outcome {
  return { status: { status: 'failed', bodyList: [1], statusString, otherInfo: { failInfo } }, certificates: [] };
}

/** The PKCS#10 in a message that the agent signed. */
async function readMessage(body: Buffer, agent: Buffer | undefined): Promise<Buffer | undefined> {
  if (agent === undefined) return undefined;
  try {
    const signedData = parseSignedData(body);
    const [signer] = signedData.signerInfos;
    const { publicKey } = parseCertificate(agent);
    if (signer === undefined || !(await verifySignerInfo(signedData, signer, publicKey))) return undefined;
    const { reqSequence, controlSequence } = parsePkiData(signedData.content ?? Buffer.alloc(0));
    controlSequence.forEach(parseControl);
    return reqSequence[0]?.der;
  } catch (error) {
    if (error instanceof DerError) return undefined;
    throw error;
  }
}
