/**
 * Archives keys in Dogtag's key recovery authority, as data of a key archival request. The data type for private keys
 * reports "complete" but stores nothing, so the type for pass phrases is used.
 */
import { constants, createCipheriv, type KeyObject, publicEncrypt, randomBytes } from 'node:crypto';
import { EstuaryError, failed, isUnavailable, unavailable } from '../../errors.ts';
import type { HealthReport, KeyArchive, SealedKey } from '../driver.ts';
import {
  errorOf,
  jsonOf,
  readAnswer,
  asObject,
  complaint,
  type JsonObject,
  textOf,
  ReplicaFault,
  getJson,
  jsonPost,
  keyId,
} from './answers.ts';
import { certificateIn } from './enroll.ts';
import type { Attempt, Replicas } from './replicas.ts';

/** Milliseconds to cache the transport certificate. */
const TRANSPORT_FRESH = 300_000;

export class Kra implements KeyArchive {
  readonly #replicas: Replicas;
  readonly #now: () => number;
  #transport: { readonly key: KeyObject; readonly read: number } | undefined;

  constructor(replicas: Replicas, now: () => number) {
    this.#replicas = replicas;
    this.#now = now;
  }

  /** Checks the replicas. */
  start(): Promise<void> {
    return this.#replicas.start();
  }

  async seal(pkcs8: Buffer): Promise<SealedKey> {
    return { parts: wrapForTransport(pkcs8, await this.#transportKey()) };
  }

  health(): HealthReport {
    return this.#replicas.health();
  }

  close(): void {
    this.#replicas.close();
  }

  /** Signing may fail after archival, so a request may archive twice. Each archival needs a new name. */
  async archive({ parts }: SealedKey, requestId: string): Promise<string> {
    const name = `estuary-${requestId}-${randomBytes(4).toString('hex')}`;
    const order = jsonPost('/kra/rest/agent/keyrequests', archivalRequest(name, parts));
    try {
      return await this.#read((replica) => archiveAt(replica, name, order));
    } catch (error) {
      // It may have been encrypted for an obsolete transport key.
      this.#transport = undefined;
      throw error;
    }
  }

  async #transportKey(): Promise<KeyObject> {
    const known = this.#transport;
    if (known !== undefined && this.#now() - known.read < TRANSPORT_FRESH) return known.key;
    const { publicKey } = await this.#read(async (replica) =>
      certificateIn(await getJson(replica.call, '/kra/rest/config/cert/transport')),
    );
    if (publicKey.algorithm !== 'rsa') throw notArchived(`a transport key of the type ${publicKey.keyType}`);
    this.#transport = { key: publicKey.keyObject, read: this.#now() };
    return publicKey.keyObject;
  }

  /** Idempotent work, which moves to the next replica on failure. */
  async #read<T>(work: (replica: Attempt) => Promise<T>): Promise<T> {
    try {
      return await this.#replicas.read(work);
    } catch (error) {
      if (!(error instanceof EstuaryError)) throw error;
      const { detail, retryAfter } = error;
      if (!isUnavailable(error)) throw notArchived(detail ?? error.message);
      throw unavailable('KEY_ARCHIVE_UNAVAILABLE', 'The key archive is unavailable.', {
        ...(detail === undefined ? {} : { detail }),
        ...(retryAfter === undefined ? {} : { retryAfter }),
      });
    }
  }
}

function notArchived(detail: string): EstuaryError {
  return failed('KEY_NOT_ARCHIVED', 'The key could not be archived.', { detail });
}

function archivalRequest(name: string, wrapped: SealedKey['parts']): JsonObject {
  const attributes = { clientKeyID: name, dataType: 'passPhrase', algorithmOID: AES_128_CBC, ...wrapped };
  return {
    ClassName: 'com.netscape.certsrv.key.KeyArchivalRequest',
    Attributes: { Attribute: Object.entries(attributes).map(([key, value]) => ({ name: key, value })) },
  };
}

/**
 * Archives at one replica, unless a previous attempt succeeded despite an error. Reads the key back to confirm.
 * @returns the archive's key ID
 */
async function archiveAt(replica: Attempt, name: string, order: ReturnType<typeof jsonPost>): Promise<string> {
  const answer = await replica.call({ ...order, freshConnection: true });
  const taken = answer.status === 400 && /already active/i.test(errorOf(answer)?.message ?? '');
  const path = taken
    ? `active/${encodeURIComponent(name)}`
    : archivedAs(answer.status === 201 ? jsonOf(answer) : readAnswer(answer));
  const key = await getJson(replica.call, `/kra/rest/agent/keys/${path}`);
  const id = keyId(key);
  if (textOf(key, 'clientKeyID') !== name || textOf(key, 'status') !== 'active' || id === undefined)
    throw new ReplicaFault(`the archive does not show the key: ${complaint(answer)}`, true);
  return id;
}

/** The key ID in the response to an archival request. */
function archivedAs(answer: JsonObject): string {
  const request = asObject(answer['RequestInfo']) ?? {};
  const status = textOf(request, 'requestStatus') ?? 'without a status';
  const id = keyId(request);
  // "complete" without a key ID means that nothing was stored.
  if (status !== 'complete' || id === undefined)
    throw notArchived(`the archival request is ${status}, ${id === undefined ? 'without a key' : `of the key ${id}`}`);
  return id;
}

/** AES-128-CBC, in the KRA's notation for OIDs. */
const AES_128_CBC = '{2 16 840 1 101 3 4 1 2}';

/**
 * Wraps a private key for the KRA: encrypted by AES-128-CBC (PKCS#7 padding) with a session key, which is encrypted with
 * the KRA's transport key by RSAES-PKCS1-v1_5, the only scheme in 10.10. All values are in base64.
 * @param data not retained
 */
export function wrapForTransport(data: Buffer, transportKey: KeyObject) {
  const sessionKey = randomBytes(16);
  const iv = randomBytes(16);
  try {
    const cipher = createCipheriv('aes-128-cbc', sessionKey, iv);
    const encrypted = Buffer.concat([cipher.update(data), cipher.final()]);
    const padding = constants.RSA_PKCS1_PADDING;
    return {
      wrappedPrivateData: encrypted.toString('base64'),
      symmetricAlgorithmParams: iv.toString('base64'),
      transWrappedSessionKey: publicEncrypt({ key: transportKey, padding }, sessionKey).toString('base64'),
    };
  } finally {
    sessionKey.fill(0);
  }
}
