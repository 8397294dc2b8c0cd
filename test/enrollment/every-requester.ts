/** A requester of each method, whose names are a.example's, and two CAs on one store. The credentials are good. */
import { randomUUID } from 'node:crypto';
import { createEstAuthenticator, type EstAuthenticator } from '../../src/auth/est-authenticator.ts';
import { FailureRecords } from '../../src/auth/failure-records.ts';
import type { Identity } from '../../src/auth/identity.ts';
import { mtlsIdentity } from '../../src/auth/mtls/mtls.ts';
import { NotAccepted, type AuthPlugin } from '../../src/auth/plugin.ts';
import { Ca } from '../../src/ca/router.ts';
import type { CaConfig, ProfileConfig } from '../../src/config/schema.ts';
import type { ClientIdBinding } from '../../src/auth/identity.ts';
import type { EstEnrollment } from '../../src/enrollment/request.ts';
import { EstuaryError } from '../../src/errors.ts';
import { parseCertificate, type Certificate } from '../../src/pki/x509/certificate.ts';
import { parseDistinguishedName } from '../../src/pki/x509/name.ts';
import type { Store } from '../../src/store/store.ts';
import { fileCa } from '../support/file-ca.ts';
import { deviceRow, otpRow, T0 } from '../store/rows.ts';
import { openedIn } from '../store/support.ts';
import { dns as dnsName, makeCa, makeClient, subjectAltName } from '../support/certificates.ts';
import { buildCsr, commonName, dns, extensionRequest, makeKey, san } from '../support/csr.ts';
import { temporaryFolder } from '../support/openssl.ts';
import { pipeline, otpIdentity, received } from './support.ts';

/** CN and DNS name of each certificate, the token's client_id, the CN that the principal is mapped to. */
export const OWN = 'a.example';
export const PRINCIPAL = 'a@EXAMPLE';

export const REQUESTERS = [
  'certificate of devices',
  'certificate of lab',
  'certificate of a maker',
  'otp',
  'ldap',
  'jwt',
  'gssapi',
] as const;
export type Requester = (typeof REQUESTERS)[number];
export const LABELS = ['devices', 'lab'] as const;
export type Label = (typeof LABELS)[number];

/** Those that have a client_id. */
export const hasClientId = (requester: Requester): boolean => ['otp', 'ldap', 'jwt'].includes(requester);

export const isByCertificate = (requester: Requester): boolean => requester.startsWith('certificate');

/** What of a profile says which names are issued. */
export interface NameRules extends Partial<Pick<ProfileConfig, 'mtls_subject'>> {
  readonly subject?: Partial<ProfileConfig['subject']>;
  readonly san?: Partial<ProfileConfig['san']>;
}

export interface Sending {
  readonly requester: Requester;
  readonly label: Label;
  readonly names?: NameRules;
  readonly settings?: Partial<Pick<CaConfig, 'auth' | 'devices'>>;
  readonly binding: ClientIdBinding;
  readonly operation?: EstEnrollment;
  readonly csr: Buffer;
}

export class EveryRequester {
  readonly #folder: ReturnType<typeof temporaryFolder>;
  readonly #store: Store;
  readonly #failures: FailureRecords;
  readonly #cas: Readonly<Record<Label, Ca>>;
  /** Path of each requester's certificate, its own first. */
  readonly #paths = new Map<Requester, readonly Certificate[]>();

  private constructor(folder: ReturnType<typeof temporaryFolder>, store: Store, cas: Readonly<Record<Label, Ca>>) {
    this.#folder = folder;
    this.#store = store;
    this.#cas = cas;
    this.#failures = new FailureRecords({ store, log: { error: () => undefined }, now: () => T0 });
  }

  static async make(): Promise<EveryRequester> {
    const folder = temporaryFolder();
    const store = await openedIn(folder);
    const cas = { devices: await fileCa(folder, 'devices', true), lab: await fileCa(folder, 'lab') };
    const made = new EveryRequester(folder, store, cas);
    const maker = await makeCa('CN=Maker,O=Example');
    const foreign = await makeClient(`CN=${OWN}`, maker, { extensions: [subjectAltName(dnsName(OWN))] });
    const paths = made.#paths.set('certificate of a maker', [foreign.der, maker.der].map(parseCertificate));
    paths.set('certificate of devices', await made.#issuedBy('devices'));
    paths.set('certificate of lab', await made.#issuedBy('lab'));
    return made;
  }

  async end(): Promise<void> {
    await this.#store.close();
    this.#folder.remove();
  }

  /** Registers every requester, the holders of certificates by their fingerprints as `unit-0`, `unit-1` …; or nobody. */
  async register(wanted: 'everybody' | 'nobody'): Promise<void> {
    for (const { key } of (await this.#store.listDevices({ limit: 100 })).items)
      await this.#store.deleteDevice(key, []);
    if (wanted === 'nobody') return;
    const matches = [...this.#paths.values()].flatMap(([leaf]) =>
      leaf ? [{ fingerprint_sha256: leaf.fingerprint }] : [],
    );
    const rows = [
      deviceRow({ id: OWN }),
      deviceRow({ id: PRINCIPAL }),
      ...matches.map((match, i) => deviceRow({ id: `unit-${i}`, match })),
    ];
    const imported = rows.map((row) => ({ row, events: [] }));
    await this.#store.putDevices(imported, 'create');
  }

  /** What is issued; else the status of the refusal. */
  async send(sending: Sending): Promise<Certificate | number> {
    const { requester, binding, operation = 'simpleenroll', csr } = sending;
    const identity = await this.#identityOf(requester, binding);
    const authenticator = this.#authenticatorOf(requester, identity);
    const enrollment = pipeline({
      store: this.#store,
      identity,
      authenticator,
      rules: { clientIdBinding: requester === 'otp' ? binding : 'off' },
    });
    try {
      const request = received(this.#caWith(sending), csr, { requestId: randomUUID(), operation });
      const { outcome } = await enrollment.enroll(request);
      if (outcome.status !== 'issued') throw new Error(outcome.status);
      return parseCertificate(outcome.certificate);
    } catch (error) {
      if (error instanceof EstuaryError) return error.status;
      throw error;
    }
  }

  #caWith({ label, names: { subject, san: altNames, ...more } = {}, settings }: Sending): Ca {
    const { config, driver } = this.#cas[label];
    const { profile } = config;
    const changed = {
      ...profile,
      ...more,
      subject: { ...profile.subject, ...subject },
      san: { ...profile.san, ...altNames },
    };
    return new Ca({ ...config, ...settings, profile: changed }, driver, { all: () => Object.values(this.#cas) });
  }

  async #token(): Promise<Identity> {
    const row = otpRow({ client_id: OWN });
    await this.#store.insertOtp(row, []);
    return otpIdentity({ otp_id: row.id, requester: `otp:${row.id}`, client_id: OWN, display: OWN });
  }

  async #issuedBy(label: Label): Promise<readonly Certificate[]> {
    const csr = buildCsr(makeKey(), { subject: commonName(OWN), attributes: [extensionRequest(san(dns(OWN)))] });
    const issued = await this.send({ requester: 'otp', label, binding: 'off', csr });
    if (typeof issued === 'number') throw new Error(String(issued));
    return [issued, ...this.#cas[label].certificates];
  }

  async #identityOf(requester: Requester, binding: ClientIdBinding): Promise<Identity> {
    if (requester === 'otp') return this.#token();
    const described = { display: OWN, client_id: OWN, binding, attributes: new Map() };
    if (requester === 'ldap') return { ...described, method: 'ldap', requester: `ldap:${OWN}` };
    if (requester === 'jwt')
      return { ...described, method: 'jwt', requester: `jwt:https://issuer.example ${OWN}`, token: undefined };
    const [certificate, issuer] = this.#paths.get(requester) ?? [];
    if (certificate !== undefined && issuer !== undefined)
      return mtlsIdentity({ certificate, issuer }, requester !== 'certificate of a maker');
    return {
      method: 'gssapi',
      requester: `gssapi:${PRINCIPAL}`,
      display: PRINCIPAL,
      principal: PRINCIPAL,
      subject: parseDistinguishedName(`CN=${OWN}`),
      replyToken: undefined,
    };
  }

  #authenticatorOf(requester: Requester, identity: Identity): EstAuthenticator {
    const plugin: AuthPlugin = {
      method: identity.method,
      authenticate: async (_presented, { rules }) => {
        const path = this.#paths.get(requester);
        if (path !== undefined && rules !== undefined && !(await rules.accepts(path))) throw new NotAccepted(identity);
        return identity;
      },
    };
    return createEstAuthenticator({ plugins: [plugin], store: this.#store, failures: this.#failures });
  }
}
