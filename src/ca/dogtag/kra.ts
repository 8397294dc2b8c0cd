/**
 * Dogtag's key recovery authority as a key archive. A key goes there as the data of a key archival request: the type for
 * private keys is answered with "complete" and stored nowhere, the one for pass phrases keeps the octets.
 */
import { constants, createCipheriv, type KeyObject, publicEncrypt, randomBytes } from 'node:crypto';
import { EstuaryError, failed, isUnavailable, unavailable } from '../../errors.ts';
import type { HealthReport, KeyArchive, SealedKey } from '../driver.ts';
import { errorOf, jsonOf, readAnswer } from './answers.ts';
import { certificateIn } from './enroll.ts';
import { asObject, complaint, type JsonObject, textOf } from './json.ts';
import { ReplicaFault } from './replica.ts';
import type { Attempt, Replicas } from './replicas.ts';

/** Milliseconds that the transport certificate is taken for current. */
const TRANSPORT_FRESH = 300_000;

export class Kra implements KeyArchive {
  readonly #replicas: Replicas;
  readonly #now: () => number;
  #transport: { readonly key: KeyObject; readonly read: number } | undefined;

  constructor(replicas: Replicas, now: () => number) {
    this.#replicas = replicas;
    this.#now = now;
  }

  /** Finds out which replicas can be used. */
  start(): Promise<void> {
    return this.#replicas.start();
  }

  async seal(pkcs8: Buffer): Promise<SealedKey> {
    return { parts: { ...wrapForTransport(pkcs8, await this.#transportKey()) } };
  }

  health(): HealthReport {
    return this.#replicas.health();
  }

  close(): void {
    this.#replicas.close();
  }

  /** A request may archive twice, where signing failed after the first time; an archive's name for a key is used once. */
  async archive({ parts }: SealedKey, requestId: string): Promise<string> {
    const name = `estuary-${requestId}-${randomBytes(4).toString('hex')}`;
    const body = Buffer.from(JSON.stringify(archivalRequest(name, parts)), 'utf8');
    try {
      return await this.#read((replica) => archiveAt(replica, name, body));
    } catch (error) {
      // It may have been encrypted for a transport key that is no longer in use.
      this.#transport = undefined;
      throw error;
    }
  }

  async #transportKey(): Promise<KeyObject> {
    const known = this.#transport;
    if (known !== undefined && this.#now() - known.read < TRANSPORT_FRESH) return known.key;
    const { publicKey } = await this.#read(async (replica) =>
      certificateIn(readAnswer(await replica.call({ method: 'GET', path: '/kra/rest/config/cert/transport' }))),
    );
    if (publicKey.algorithm !== 'rsa') throw notArchived(`a transport key of the type ${publicKey.keyType}`);
    this.#transport = { key: publicKey.keyObject, read: this.#now() };
    return publicKey.keyObject;
  }

  /** What is done here may be done twice, so that it goes from one replica to the next like a read. */
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
 * Archives at one replica, unless an attempt that seemed to fail was taken after all; the answer is believed once the
 * archive shows the key.
 *
 * @returns the key's id there
 */
async function archiveAt(replica: Attempt, name: string, body: Buffer): Promise<string> {
  const answer = await replica.call({
    method: 'POST',
    path: '/kra/rest/agent/keyrequests',
    headers: { 'Content-Type': 'application/json' },
    body,
    freshConnection: true,
  });
  const taken = answer.status === 400 && /already active/i.test(errorOf(answer)?.message ?? '');
  const path = taken
    ? `active/${encodeURIComponent(name)}`
    : archivedAs(answer.status === 201 ? jsonOf(answer) : readAnswer(answer));
  const key = readAnswer(await replica.call({ method: 'GET', path: `/kra/rest/agent/keys/${path}` }));
  const id = idIn(key);
  if (textOf(key, 'clientKeyID') !== name || textOf(key, 'status') !== 'active' || id === undefined)
    throw new ReplicaFault(`the archive does not show the key: ${complaint(answer)}`, true);
  return id;
}

/** The id that the answer to an archival request tells. */
function archivedAs(answer: JsonObject): string {
  const request = asObject(answer['RequestInfo']) ?? {};
  const status = textOf(request, 'requestStatus') ?? 'without a status';
  const id = idIn(request);
  // "complete" without a key means that nothing was stored.
  if (status !== 'complete' || id === undefined)
    throw notArchived(`the archival request is ${status}, ${id === undefined ? 'without a key' : `of the key ${id}`}`);
  return id;
}

/** The last part of a keyURL. */
function idIn(object: JsonObject): string | undefined {
  const id = textOf(object, 'keyURL')?.split('/').at(-1);
  return id !== undefined && /^(0x)?[0-9a-f]{1,40}$/i.test(id) ? id : undefined;
}

/** How a private key travels to the KRA: encrypted with a session key that only its transport key can unwrap. */

/** Each base64. */
interface WrappedKey {
  /** AES-128-CBC with the session key, PKCS#7 padding. */
  readonly wrappedPrivateData: string;
  /** The initialization vector. */
  readonly symmetricAlgorithmParams: string;
  /** The session key, RSAES-PKCS1-v1_5 for the KRA's transport key: 10.10 takes nothing else. */
  readonly transWrappedSessionKey: string;
}

/** AES-128-CBC, as the KRA writes object identifiers. */
const AES_128_CBC = '{2 16 840 1 101 3 4 1 2}';

/** @param data not kept */
export function wrapForTransport(data: Buffer, transportKey: KeyObject): WrappedKey {
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
