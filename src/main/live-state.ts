/**
 * What SIGHUP replaces as a whole: certificates, keys, trust anchors, CRLs, bearer tokens, how generated keys are
 * protected, the parties of CMC.
 */
import type { CaRouter } from '../ca/router.ts';
import type { AdminAuthSettings } from '../auth/admin-authenticator.ts';
import { loadClientTrust, type ClientTrust } from '../auth/mtls/client-trust.ts';
import { loadCmcParties, type CmcParties } from '../cmc/parties.ts';
import { ownAnchorMessage, ownAnchors } from '../config/check-admin-anchors.ts';
import { readCertificates } from '../config/pem-files.ts';
import type { Config } from '../config/schema.ts';
import { failed } from '../errors.ts';
import { parseCertificate } from '../pki/x509/certificate.ts';
import { loadKeyProtection, type KeyProtectionSettings } from '../enrollment/key-encryption-keys.ts';
import { loadTlsMaterial } from '../http/tls-material.ts';
import type { TlsMaterial } from '../http/tls.ts';

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
}

/**
 * Reads the files that the configuration names.
 *
 * @throws EstuaryError or a file error; nothing has changed then
 */
export async function loadLiveState(config: Config, router: CaRouter): Promise<LiveState> {
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
