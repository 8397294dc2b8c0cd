/**
 * What SIGHUP replaces as a whole: certificates, keys, trust anchors, CRLs, bearer tokens, how generated keys are
 * protected, the parties of CMC.
 */
import type { Server } from 'node:https';
import { createSecureContext, type TlsOptions } from 'node:tls';
import type { AdminAuthSettings } from '../auth/admin-authenticator.ts';
import type { SessionTimes } from '../auth/admin-sessions.ts';
import { ClientTrust } from '../auth/mtls/client-trust.ts';
import type { CaRouter } from '../ca/router.ts';
import { cmcParties, type CmcParties } from '../cmc/sender.ts';
import { type CertificateEnd, certificateEnds } from '../config/material/certificate-ends.ts';
import type { KeyPair, Material } from '../config/material/material.ts';
import { ownAnchorMessage, ownAnchors } from '../config/material/trust.ts';
import type { Config } from '../config/schema.ts';
import { keyProtection, type KeyProtectionSettings } from '../enrollment/key-protection.ts';
import type { ServerCertificate } from '../enrollment/server-certificate.ts';
import { failed } from '../errors.ts';
import type { TicketSecret } from '../http/ticket-secret.ts';
import {
  handshakeOptions,
  present,
  presented,
  renewTicketKeys,
  secureContext,
  type TlsListener,
  type TlsMaterial,
  tlsMaterial,
} from '../http/tls.ts';
import { type Certificate, parseCertificate } from '../pki/x509/certificate.ts';

/** Our end of the TLS connections of one listener. */
export class TlsEnd {
  readonly #listener: TlsListener;

  constructor(name: TlsListener['name'], { server, tls, admin }: Config, ticketSecret: TicketSecret) {
    this.#listener = {
      name,
      mode: name === 'est' ? tls.client_auth.mode : admin.tls.mode,
      handshakeTimeout: server.handshake_timeout * 1000,
      ticketSecret,
    };
  }

  /** For making the server. */
  get options(): TlsOptions {
    return handshakeOptions(this.#listener);
  }

  /** @throws Error when TLS cannot be spoken with it */
  check(material: TlsMaterial): void {
    createSecureContext(secureContext(material, this.#listener));
  }

  /** Puts it in force. */
  present(server: Server, material: TlsMaterial): void {
    present(server, material, this.#listener);
  }

  /** From time to time: the keys of session tickets are those of a period. */
  renewTicketKeys(server: Server, material: TlsMaterial): void {
    renewTicketKeys(server, material, this.#listener);
  }
}

interface LiveState {
  readonly configuration: Config;
  /** undefined: no client certificate is verified (`none`). */
  readonly estTrust: ClientTrust | undefined;
  readonly estTls: TlsMaterial;
  readonly adminTls: TlsMaterial;
  /** Whom the admin listener lets in. */
  readonly admin: AdminAuthSettings;
  /** How long who has signed in there stays so. */
  readonly sessions: SessionTimes;
  /** How generated keys leave. */
  readonly keyProtection: KeyProtectionSettings;
  /** `[cmc]`. */
  readonly cmc: CmcParties;
  /** When what is configured as files ends. */
  readonly certificateEnds: readonly CertificateEnd[];
  /** What the configuration names. */
  readonly named: Material;
}

/** A server whose certificate, key and anchors are replaced. */
interface TlsUse {
  readonly end: TlsEnd;
  readonly server: Server;
  readonly material: (state: LiveState) => TlsMaterial;
}

/** Milliseconds. All nodes do it at about the same time. */
const TICKET_KEYS_INTERVAL = 60_000;

/** What is in force of it. There is nothing before the first {@link replace}: what a CA elsewhere is, it tells when it is started. */
export class LiveSettings {
  readonly #cas: CaRouter;
  readonly #own: ServerCertificate | undefined;
  readonly #uses: TlsUse[] = [];
  #current: LiveState | undefined;

  /** @param own where the configuration names no certificate of the server */
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

  /** Of the EST listener, where client certificates are verified. */
  get clientTrust(): ClientTrust {
    const { estTrust } = this.current;
    if (estTrust === undefined) throw new Error('no client certificate is verified');
    return estTrust;
  }

  /**
   * Makes it of a configuration and what that names, and checks that it can be used.
   *
   * @param cas those that are in force with it
   * @throws whatever is wrong with it; nothing has changed then
   */
  async make(config: Config, material: Material, cas = this.#cas): Promise<LiveState> {
    if (material.tls === undefined) await this.#own?.refresh();
    const state = await makeState(config, resolve(material, this.#own), cas);
    for (const { end, material: materialOf } of this.#uses) end.check(materialOf(state));
    return state;
  }

  /** Brings into force what {@link make} gave. */
  replace(state: LiveState): void {
    for (const { end, server, material } of this.#uses) end.present(server, material(state));
    this.#current = state;
  }

  /** Has the listeners take the present keys of session tickets from time to time. @returns what ends it */
  renewTicketKeys(interval = TICKET_KEYS_INTERVAL): () => void {
    const timer = setInterval(() => {
      for (const { end, server, material } of this.#uses) end.renewTicketKeys(server, material(this.current));
    }, interval);
    timer.unref();
    return () => clearInterval(timer);
  }

  /**
   * Looks after the server's own certificate, and presents it from now on where it is another one than before.
   *
   * @throws as {@link ServerCertificate.refresh}; the former stays in force
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
      certificateEnds: certificateEnds(material),
    });
  }
}

/** What the configuration names, with the server's own certificate where it names none. */
type Resolved = Material & Readonly<Record<'tls' | 'adminTls', KeyPair>> & { readonly named: Material };

function resolve(named: Material, own: ServerCertificate | undefined): Resolved {
  const tls = named.tls ?? own?.current;
  if (tls === undefined) throw failed('SERVER_CERTIFICATE_MISSING', 'The server certificate is not yet issued.');
  return { ...named, tls, adminTls: named.adminTls ?? tls, named };
}

/** @throws EstuaryError, or RangeError where a key cannot sign */
async function makeState(config: Config, material: Resolved, cas: CaRouter): Promise<LiveState> {
  const { clientTrust, adminTrust: adminMaterial, tls, adminTls } = material;
  const intermediates = [...ownCertificates(cas), ...(material.proxies?.intermediates ?? []).map(({ der }) => der)];
  const learned = (): Certificate[] => chainsOfRemoteCas(cas);
  const estTrust = clientTrust && (await ClientTrust.create({ ...clientTrust, intermediates, learned }));
  const adminTrust = adminMaterial && (await ClientTrust.create(adminMaterial));
  if (adminTrust !== undefined) await refuseOwnAnchors(adminTrust.anchors, cas);
  return {
    configuration: config,
    estTrust,
    estTls: tlsMaterial(tls, config.tls, estTrust),
    adminTls: tlsMaterial(adminTls, config.tls, adminTrust),
    admin: {
      mode: config.admin.tls.mode,
      trust: adminTrust,
      bearer_token: config.admin.bearer_token,
      clients: config.admin.clients,
      default_roles: config.admin.tls.default_roles,
    },
    sessions: config.admin.sessions,
    keyProtection: keyProtection(config, material.keyEncryption),
    cmc: cmcParties(config, material.cmc),
    certificateEnds: certificateEnds(material),
    named: material.named,
  };
}

/** The configuration's check knows the files; here is also what a CA elsewhere says its chain is. */
async function refuseOwnAnchors(anchors: readonly Certificate[], cas: CaRouter): Promise<void> {
  const own = ownCertificates(cas).map((der) => parseCertificate(der));
  const [anchor] = await ownAnchors(anchors, own);
  if (anchor === undefined) return;
  throw failed('ADMIN_ANCHOR_OWN', 'admin.tls.trust_anchors makes devices administrators', {
    detail: ownAnchorMessage(anchor),
  });
}

/** As they are now: an upstream may name its chain only when it issues. */
function chainsOfRemoteCas({ all }: CaRouter): Certificate[] {
  return all.flatMap((ca) => (ca.ownIsRecorded && ca.driver.chain().length > 0 ? ca.certificates : []));
}

/** Our devices send their certificate alone; what lies between it and the trust anchor is ours to know. */
function ownCertificates({ all }: CaRouter): Buffer[] {
  return all.flatMap((ca) => [...ca.driver.chain(), ...ca.renewalIssuers.map(({ der }) => der)]);
}
