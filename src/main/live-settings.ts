/**
 * What SIGHUP replaces as a whole: certificates, keys, trust anchors, CRLs, bearer tokens, how generated keys are
 * protected, the parties of CMC.
 */
import type { Server } from 'node:https';
import type { CaRouter } from '../ca/router.ts';
import type { AdminAuthSettings } from '../auth/admin-authenticator.ts';
import { loadClientTrust, type ClientTrust } from '../auth/mtls/client-trust.ts';
import { loadCmcParties, type CmcParties } from '../cmc/parties.ts';
import { ownAnchorMessage, ownAnchors } from '../config/check-admin-anchors.ts';
import { certificateEnds, type CertificateEnd } from '../config/certificate-ends.ts';
import { readCertificates } from '../config/pem-files.ts';
import type { Config } from '../config/schema.ts';
import { failed } from '../errors.ts';
import { parseCertificate } from '../pki/x509/certificate.ts';
import { loadKeyProtection, type KeyProtectionSettings } from '../enrollment/key-encryption-keys.ts';
import { loadTlsMaterial } from '../http/tls-material.ts';
import type { TlsMaterial } from '../http/tls.ts';
import type { TlsEnd } from './tls-end.ts';

export interface LiveState {
  /** undefined: no client certificate is verified (`none`). */
  readonly estTrust: ClientTrust | undefined;
  readonly estTls: TlsMaterial;
  readonly adminTls: TlsMaterial;
  /** Whom the admin listener lets in. */
  readonly admin: AdminAuthSettings;
  /** How generated keys leave. */
  readonly keyProtection: KeyProtectionSettings;
  /** `[cmc]`. */
  readonly cmc: CmcParties;
  /** When what is configured as files ends. */
  readonly certificateEnds: readonly CertificateEnd[];
}

/** A server whose certificate, key and anchors are replaced. */
export interface TlsUse {
  readonly end: TlsEnd;
  readonly server: Server;
  readonly material: (state: LiveState) => TlsMaterial;
}

/** What is in force of it. There is nothing before the first {@link replace}: what a CA elsewhere is, it tells when it is started. */
export class LiveSettings {
  readonly #cas: CaRouter;
  readonly #uses: TlsUse[] = [];
  #current: LiveState | undefined;

  constructor(cas: CaRouter) {
    this.#cas = cas;
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
   * Reads what a configuration names, and checks that it can be used.
   *
   * @throws whatever is wrong with it; nothing has changed then
   */
  async load(config: Config): Promise<LiveState> {
    const state = await loadLiveState(config, this.#cas);
    for (const { end, material } of this.#uses) end.check(material(state));
    return state;
  }

  /** Brings into force what {@link load} gave. */
  replace(state: LiveState): void {
    for (const { end, server, material } of this.#uses) end.present(server, material(state));
    this.#current = state;
  }
}

/** @throws EstuaryError or a file error */
async function loadLiveState(config: Config, router: CaRouter): Promise<LiveState> {
  const { client_auth: clientAuth } = config.tls;
  const estTrust = await trustOf(clientAuth.mode, { ...clientAuth }, ownCertificates(router));
  const { mode, trust_anchors, crl } = config.admin.tls;
  const adminTrust = await trustOf(mode, { trust_anchors, crl }, []);
  if (adminTrust !== undefined && trust_anchors !== undefined) await refuseOwnAnchors(trust_anchors, router);
  return {
    estTrust,
    estTls: await loadTlsMaterial(config.tls, config.tls.min_version, estTrust),
    adminTls: await loadTlsMaterial(adminFiles(config), config.tls.min_version, adminTrust),
    admin: { mode, trust: adminTrust, bearer_token: config.admin.bearer_token },
    keyProtection: await loadKeyProtection(config),
    cmc: await loadCmcParties(config),
    certificateEnds: await certificateEnds(config),
  };
}

async function trustOf(
  mode: string,
  files: { readonly trust_anchors?: string | undefined; readonly crl?: string | undefined },
  intermediates: readonly Buffer[],
): Promise<ClientTrust | undefined> {
  const { trust_anchors: anchors, crl } = files;
  return mode === 'none' || anchors === undefined
    ? undefined
    : loadClientTrust({ trust_anchors: anchors, crl }, intermediates);
}

/** The configuration's check knows the files; here is also what a CA elsewhere says its chain is. */
async function refuseOwnAnchors(file: string, router: CaRouter): Promise<void> {
  const own = ownCertificates(router).map((der) => parseCertificate(der));
  const [anchor] = await ownAnchors(await readCertificates(file), own);
  if (anchor === undefined) return;
  throw failed('ADMIN_ANCHOR_OWN', 'admin.tls.trust_anchors makes devices administrators', {
    detail: ownAnchorMessage(anchor),
  });
}

/** Our devices send their certificate alone; what lies between it and the trust anchor is ours to know. */
function ownCertificates(router: CaRouter): Buffer[] {
  return router.all.flatMap((ca) => [...ca.driver.chain(), ...ca.renewalIssuers.map(({ der }) => der)]);
}

function adminFiles(config: Config): { certificate: string; private_key: string } {
  const { certificate, private_key: privateKey } = config.admin.tls;
  return certificate === undefined || privateKey === undefined ? config.tls : { certificate, private_key: privateKey };
}
