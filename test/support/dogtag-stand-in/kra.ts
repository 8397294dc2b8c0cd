/** The KRA's part of the stand-in: key archival with 10.10's oddities. It really opens what it is sent. */
import { constants, createDecipheriv, privateDecrypt } from 'node:crypto';
import { encodePem } from '../../../src/pki/der/pem.ts';
import { makeCertificate, type Issuer } from '../certificates.ts';
import { keyPair } from '../keys.ts';
import { badRequest, error, fieldOf, json, type Answered } from './answers.ts';

export interface ArchivedKey {
  readonly clientKeyID: string;
  readonly data: Buffer;
}

/** What goes wrong, until it is taken away again. */
export interface KraFaults {
  /** 10.10 with the data type for private keys: "complete", and nothing stored. */
  storesNothing?: boolean;
  /** Another key is shown than was archived. */
  showsAnother?: boolean;
}

/** The archive behind all replicas of a stand-in. */
export class StandInKra {
  readonly keys = new Map<number, ArchivedKey>();
  readonly faults: KraFaults = {};
  #slot = 0;

  /** The transport key is replaced; what was encrypted for the old one cannot be opened any more. */
  renewTransportKey(): void {
    this.#slot += 1;
  }

  get #transport() {
    return keyPair('rsa:2048', `kra-transport-${this.#slot}`);
  }

  /** @param path what follows `/kra/rest/` */
  async answer(method: string, path: string, body: string, agent: boolean, issuer: Issuer): Promise<Answered> {
    if (path === 'config/cert/transport') return this.#transportCertificate(issuer);
    if (!agent) return error(401, 'base.UnauthorizedException', 'Authentication failed.');
    if (path === 'agent/keyrequests' && method === 'POST') return this.#archive(body);
    const [, active, name] = /^agent\/keys\/(active\/)?([^/]+)$/.exec(path) ?? [];
    return active === undefined ? this.#show(Number(name)) : this.#show(this.#find(decodeURIComponent(name ?? '')));
  }

  async #transportCertificate(issuer: Issuer): Promise<Answered> {
    const { der } = await makeCertificate({ subject: 'CN=DRM Transport Certificate', issuer, keys: this.#transport });
    return json(200, { id: '0x7', Encoded: encodePem('CERTIFICATE', der) });
  }

  #archive(body: string): Answered {
    const request = attributesOf(body);
    const field = (name: string): string => request.get(name) ?? '';
    const clientKeyID = field('clientKeyID');
    if (this.#find(clientKeyID) !== undefined) return badRequest('Can not archive already active existing key!');
    const data = this.#open(
      field('transWrappedSessionKey'),
      field('wrappedPrivateData'),
      field('symmetricAlgorithmParams'),
    );
    if (data === undefined) return error(500, 'base.PKIException', 'Failed to unwrap key');
    const stored = field('dataType') === 'passPhrase' && this.faults.storesNothing !== true;
    const id = this.keys.size + 1;
    if (stored) this.keys.set(id, { clientKeyID, data });
    return json(201, {
      RequestInfo: {
        requestType: 'securityDataEnrollment',
        requestStatus: 'complete',
        requestURL: 'https://localhost/kra/rest/agent/keyrequests/1',
        keyURL: stored ? keyUrl(id) : null,
      },
      KeyData: null,
    });
  }

  /** Undefined where it was encrypted for another transport key: the padding then holds some other session key. */
  #open(sessionKey: string, data: string, iv: string): Buffer | undefined {
    const padding = constants.RSA_PKCS1_PADDING;
    try {
      const key = privateDecrypt({ key: this.#transport.privateKey, padding }, Buffer.from(sessionKey, 'base64'));
      const decipher = createDecipheriv('aes-128-cbc', key, Buffer.from(iv, 'base64'));
      return Buffer.concat([decipher.update(Buffer.from(data, 'base64')), decipher.final()]);
    } catch {
      return undefined;
    }
  }

  #find(clientKeyID: string): number | undefined {
    return [...this.keys].find(([, key]) => key.clientKeyID === clientKeyID)?.[0];
  }

  #show(id: number | undefined): Answered {
    const key = id === undefined ? undefined : this.keys.get(id);
    if (id === undefined || key === undefined) return error(404, 'key.KeyNotFoundException', 'key not found');
    const clientKeyID = this.faults.showsAnother === true ? 'another' : key.clientKeyID;
    return json(200, { keyURL: keyUrl(id), clientKeyID, status: 'active', ownerName: 'kraadmin' });
  }
}

const keyUrl = (id: number): string => `https://localhost/kra/rest/agent/keys/${id}`;

function attributesOf(body: string): Map<string, string> {
  const attributes = fieldOf(fieldOf(JSON.parse(body), 'Attributes'), 'Attribute');
  const list: unknown[] = Array.isArray(attributes) ? attributes : [];
  return new Map(list.map((attribute) => [String(fieldOf(attribute, 'name')), String(fieldOf(attribute, 'value'))]));
}
