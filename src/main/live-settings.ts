/**
 * Settings that SIGHUP replaces as a whole: certificates, keys, trust anchors, CRLs, bearer tokens, key protection, CMC
 * signers.
 */
import type { Server } from 'node:https';
import type { AdminAuthSettings } from '../auth/admin-authenticator.ts';
import type { SessionTimes } from '../auth/admin-sessions.ts';
import { OidcSignIn } from '../auth/oidc/oidc-sign-in.ts';
import { ClientTrust } from '../auth/mtls/client-trust.ts';
import type { ListState } from '../auth/mtls/revocation-lists.ts';
import type { CaRouter } from '../ca/router.ts';
import { cmcParties, type CmcParties } from '../cmc/sender.ts';
import {
  type CertificateExpiry,
  certificateExpiries,
  type KeyPair,
  type Material,
  type ServiceMaterial,
  type TrustMaterial,
} from '../config/material/material.ts';
import { CRL_EFFECT, ownAnchorMessage, ownAnchors } from '../config/material/trust.ts';
import type { Fault } from '../config/problem.ts';
import type { Config } from '../config/schema.ts';
import { keyProtection, type KeyProtectionSettings } from '../enrollment/key-protection.ts';
import type { ServerCertificate } from '../enrollment/server-certificate.ts';
import { failed } from '../errors.ts';
import { presented, type TlsEnd, type TlsMaterial, tlsMaterial } from '../http/tls.ts';
import { type Certificate, parseCertificate, pemOf } from '../pki/x509/certificate.ts';
import { atIntervals } from '../process/turns.ts';

interface LiveState {
  readonly configuration: Config;
  /** undefined if client certificates are not verified (`none`). */
  readonly estTrust: ClientTrust | undefined;
  readonly estTls: TlsMaterial;
  readonly adminTls: TlsMaterial;
  readonly admin: AdminAuthSettings;
  /** Session lifetimes of administrators. */
  readonly sessions: SessionTimes;
  /** How generated keys are protected. */
  readonly keyProtection: KeyProtectionSettings;
  /** `[cmc]`. */
  readonly cmc: CmcParties;
  /** DER of the CAs' certificates that the trust was made from. */
  readonly chains: readonly Buffer[];
  /** Expiry of configured files. */
  readonly certificateExpiries: readonly CertificateExpiry[];
  /** What the configuration names. */
  readonly named: Material;
}

/** A server with replaceable TLS material. */
interface TlsUse {
  readonly end: TlsEnd;
  readonly server: Server;
  readonly material: (state: LiveState) => TlsMaterial;
}

/** Milliseconds. All nodes switch at about the same time. */
const TICKET_KEYS_INTERVAL = 60_000;

/**
 * The settings in force. Empty before the first {@link replace}, because a remote CA reports its certificate on start.
 */
export class LiveSettings {
  readonly #cas: CaRouter;
  readonly #own: ServerCertificate | undefined;
  readonly #uses: TlsUse[] = [];
  #current: LiveState | undefined;

  /** @param own used if the configuration names no server certificate */
  constructor(cas: CaRouter, own?: ServerCertificate) {
    this.#cas = cas;
    this.#own = own;
  }

  add(use: TlsUse): void {
    this.#uses.push(use);
  }

  get current(): LiveState {
    if (this.#current === undefined) throw new Error('the service is not started');
    return this.#current;
  }

  /** For the EST listener if it verifies client certificates. */
  get clientTrust(): ClientTrust {
    const { estTrust } = this.current;
    if (estTrust === undefined) throw new Error('client certificates are not verified');
    return estTrust;
  }

  /** CRLs of clients' and administrators' issuers. */
  clientCrls(now: number): ListState[] {
    const { estTrust, admin } = this.current;
    return [estTrust, admin.trust].flatMap((trust) => trust?.revocation.states(now) ?? []);
  }

  /**
   * Creates settings from a configuration and checks them.
   * @param cas in force with them
   * @throws the problem; nothing has changed then
   */
  async make(config: Config, material: Material, cas = this.#cas): Promise<LiveState> {
    if (material.tls === undefined) await this.#own?.refresh();
    const before = this.#current;
    const trusts = before && { estTrust: before.estTrust, adminTrust: before.admin.trust };
    const state = await makeState(config, resolve(material, this.#own), cas, trusts);
    for (const { end, material: materialOf } of this.#uses) end.check(materialOf(state));
    return state;
  }

  /** Puts the result of {@link make} in force. */
  replace(state: LiveState): void {
    for (const { end, server, material } of this.#uses) end.present(server, material(state));
    this.#current = state;
  }

  /**
   * Uses the chains of remote CAs that have become known or changed since: to find paths, in handshakes, and for CRLs.
   * @throws as {@link make}; nothing has changed then
   */
  async renewChains(): Promise<void> {
    const { current } = this;
    const chains = ownCertificates(this.#cas);
    if (isSame(chains, current.chains)) return;
    const state = await this.make(current.configuration, current.named);
    // A reload may have been faster.
    if (this.#current === current) this.replace(state);
  }

  /** Updates session ticket keys periodically. @returns a function that stops it */
  renewTicketKeys(): () => void {
    return atIntervals(TICKET_KEYS_INTERVAL, () => {
      for (const { end, server, material } of this.#uses) end.renewTicketKeys(server, material(this.current));
    });
  }

  /**
   * Renews the server's own certificate if due, and presents a changed one.
   * @throws as {@link ServerCertificate.refresh}; the old one stays in force
   */
  async renewOwn(): Promise<void> {
    const { named } = this.current;
    if (this.#own === undefined || named.tls !== undefined) return;
    await this.#own.refresh();
    const { current } = this;
    const material = resolve(current.named, this.#own);
    const own = presented(material.tls);
    if (own.certificate === current.estTls.certificate) return;
    this.replace({
      ...current,
      estTls: { ...current.estTls, ...own },
      adminTls: current.named.adminTls === undefined ? { ...current.adminTls, ...own } : current.adminTls,
      certificateExpiries: certificateExpiries(material),
    });
  }
}

/** The configured material, with the server's own certificate if none is configured. */
type Resolved = Material & Readonly<Record<'tls' | 'adminTls', KeyPair>> & { readonly named: Material };

function resolve(named: Material, own: ServerCertificate | undefined): Resolved {
  const tls = named.tls ?? own?.current;
  if (tls === undefined) throw failed('SERVER_CERTIFICATE_MISSING', 'The server certificate is not yet issued.');
  return { ...named, tls, adminTls: named.adminTls ?? tls, named };
}

/** @throws EstuaryError, or RangeError if a key cannot sign */
async function makeState(
  config: Config,
  material: Resolved,
  cas: CaRouter,
  before: ClientTrusts | undefined,
): Promise<LiveState> {
  const { tls, adminTls } = material;
  const chains = ownCertificates(cas);
  const proxies = material.proxies?.certificates ?? [];
  const { estTrust, adminTrust } = await trustsOf(material, cas, before, chains);
  // The configuration check knows the files; this also knows the chains of remote CAs.
  const own = chains.map((der) => parseCertificate(der));
  const [anchor] = adminTrust === undefined ? [] : await ownAnchors(adminTrust.anchors, own);
  if (anchor !== undefined)
    throw failed('ADMIN_ANCHOR_OWN', 'admin.tls.trust_anchors makes devices administrators', {
      detail: ownAnchorMessage(anchor),
    });
  return {
    configuration: config,
    chains,
    estTrust,
    estTls: tlsMaterial(tls, config.tls, estTrust, proxies),
    adminTls: tlsMaterial(adminTls, config.tls, adminTrust),
    admin: {
      mode: config.admin.tls.mode,
      trust: adminTrust,
      bearer_token: config.admin.bearer_token,
      clients: config.admin.clients,
      default_roles: config.admin.tls.default_roles,
      oidc: config.admin.oidc && new OidcSignIn({ ...config.admin.oidc, ca: trustedBy(material.openidProvider) }),
    },
    sessions: config.admin.sessions,
    keyProtection: keyProtection(config, material.keyEncryption),
    cmc: cmcParties(config, material.cmc),
    certificateExpiries: certificateExpiries(material),
    named: material.named,
  };
}

/** The trusted issuers of client certificates with these CAs. @throws EstuaryError */
export const trustsOf = (
  material: Material,
  cas: CaRouter,
  before?: ClientTrusts,
  own: readonly Buffer[] = ownCertificates(cas),
): Promise<ClientTrusts> =>
  clientTrusts(
    material,
    own.map((der) => parseCertificate(der)),
    before,
    () => chainsOfRemoteCas(cas),
  );

export interface ClientTrusts {
  readonly estTrust: ClientTrust | undefined;
  readonly adminTrust: ClientTrust | undefined;
}

/** @param before in force until now */
async function clientTrusts(
  { clientTrust, adminTrust, proxies }: Material,
  own: readonly Certificate[],
  before?: ClientTrusts,
  learned: () => readonly Certificate[] = () => [],
): Promise<ClientTrusts> {
  // Without `crl`, nothing is checked, whatever was.
  const former = (trust: ClientTrust | undefined, { crls }: TrustMaterial) => crls && trust?.revocation;
  const intermediates = [...own, ...(proxies?.intermediates ?? [])].map(({ der }) => der);
  return {
    estTrust:
      clientTrust &&
      (await ClientTrust.create({
        ...clientTrust,
        before: former(before?.estTrust, clientTrust),
        intermediates,
        learned,
        own: await ownAnchors(clientTrust.anchors, own),
        proxies: proxies?.certificates ?? [],
      })),
    adminTrust:
      adminTrust && (await ClientTrust.create({ ...adminTrust, before: former(before?.adminTrust, adminTrust) })),
  };
}

/** CRLs that cannot be used, are missing or have expired. */
export function crlFaults({ estTrust, adminTrust }: ClientTrusts, now: number): Fault[] {
  const sections = [
    ['tls.client_auth.crl', estTrust],
    ['admin.tls.crl', adminTrust],
  ] as const;
  return sections.flatMap(([key, trust]) => [
    ...(trust?.revocation.problems ?? []).map((problem): Fault => ({
      key,
      message: `${problem} (a current CRL of a trusted CA)`,
      effect: CRL_EFFECT,
    })),
    ...(trust?.revocation.states(now) ?? []).flatMap(({ problem, nextUpdate }): Fault[] => {
      if (problem === undefined) return [];
      const message = `${problem} (a current CRL, and a reload)`;
      return [{ key, message, effect: 'its certificates are rejected', isTime: nextUpdate > 0 }];
    }),
  ]);
}

/** {@link crlFaults} of a configuration that is not in force: the chains of remote CAs are unknown. */
export async function configuredCrlFaults(material: Material, now: number): Promise<Fault[]> {
  const ofCas = material.cas.flatMap(({ certificates: found }) =>
    found === undefined ? [] : [found.certificate, ...found.issuers, ...found.rollover],
  );
  const labels = [...material.cas, ...[...material.labels.values()].flat()];
  const trusts = await clientTrusts(material, [...ofCas, ...labels.flatMap(({ renewalIssuers }) => renewalIssuers)]);
  return crlFaults(trusts, now);
}

/** The CAs for the certificate of a service, PEM. */
export const trustedBy = (service: ServiceMaterial | undefined): string | undefined =>
  service?.trustAnchors && pemOf(service.trustAnchors);

/** Where the keys of the token issuer come from. */
export const keySource = (
  { jwks_url: url, jwks_file: file = '', jwks_token_file: tokenFile }: NonNullable<Config['auth']['jwt']>,
  material: () => Pick<Material, 'tokenIssuer'>,
) => (url === undefined ? { file } : { url, tokenFile, ca: () => trustedBy(material().tokenIssuer) });

const isSame = (some: readonly Buffer[], others: readonly Buffer[]): boolean =>
  some.length === others.length && some.every((der, index) => others[index]?.equals(der) === true);

/** Current chains: an upstream may report its chain only on issuance. */
function chainsOfRemoteCas({ all }: CaRouter): Certificate[] {
  return all.flatMap((ca) => (ca.ownIsRecorded && ca.driver.chain().length > 0 ? ca.certificates : []));
}

/** Devices send only their own certificate, so the server supplies the intermediates. */
function ownCertificates({ all }: CaRouter): Buffer[] {
  return all.flatMap((ca) => [...ca.driver.chain(), ...ca.renewalIssuers.map(({ der }) => der)]);
}
