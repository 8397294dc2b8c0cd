/** Client certificates as a way to authenticate on the EST listener. */
import { formatGeneralName } from '../../pki/x509/general-name.ts';
import { formatName } from '../../pki/x509/name.ts';
import type { Certificate } from '../../pki/x509/certificate.ts';
import type { CertificateStore } from '../../store/certificate-store.ts';
import type { IntermediateStore } from '../../store/intermediate-store.ts';
import type { ClientTrust } from './client-trust.ts';
import type { MtlsIdentity, PresentedCredentials } from '../identity.ts';
import { IntermediateMemory } from './intermediate-memory.ts';
import { validatePresented } from './mtls.ts';
import { checkNotRevokedHere } from './own-revocation.ts';
import type { AuthContext, AuthPlugin } from '../plugin.ts';
import { presentedCertificates } from './presented-certificates.ts';

export class MtlsPlugin implements AuthPlugin {
  readonly method = 'mtls';
  readonly #trust: () => ClientTrust;
  readonly #store: CertificateStore & IntermediateStore;
  readonly #memory: IntermediateMemory;

  /** @param trust the snapshot in force; a reload replaces it */
  constructor(trust: () => ClientTrust, store: CertificateStore & IntermediateStore) {
    this.#trust = trust;
    this.#store = store;
    this.#memory = new IntermediateMemory(store);
  }

  async authenticate(presented: PresentedCredentials, context: AuthContext): Promise<MtlsIdentity | undefined> {
    const certificates = presentedCertificates(presented);
    if (certificates === undefined) return undefined;
    const { certificate } = await validatePresented(this.#trust(), certificates, context.now, {
      expiredGraceSeconds: context.expiredGraceSeconds,
      memory: this.#memory,
    });
    await checkNotRevokedHere(this.#store, certificate);
    const display = certificateHolder(certificate);
    return { method: 'mtls', requester: `mtls:${display}`, display, certificate };
  }
}

/** Whom a certificate names: its subject (RFC 4514), or its subject alternative names where that is empty. */
export function certificateHolder({ subject, subjectAltNames }: Certificate): string {
  return subject.rdns.length > 0 ? formatName(subject) : subjectAltNames.map(formatGeneralName).join(',');
}
