/** Client certificates as a way to authenticate on the EST listener. */
import type { CertificateStore } from '../../store/certificate-store.ts';
import type { IntermediateStore } from '../../store/intermediate-store.ts';
import type { ClientTrust } from './client-trust.ts';
import { certificateHolder, holderKey, holderOf, type CertificateHolder } from '../certificate-holder.ts';
import type { MtlsIdentity, PresentedCredentials } from '../identity.ts';
import { IntermediateMemory } from './intermediate-memory.ts';
import { validatePresented } from './mtls.ts';
import { checkNotRevokedHere, isRecorded } from './own-revocation.ts';
import { NotAccepted, type AuthContext, type AuthPlugin } from '../plugin.ts';
import { presentedCertificates } from './presented-certificates.ts';

export class MtlsPlugin implements AuthPlugin {
  readonly method = 'mtls';
  readonly #trust: () => ClientTrust;
  readonly #store: CertificateStore & IntermediateStore;
  readonly #memory: Pick<IntermediateMemory, 'recall' | 'remember'>;

  /**
   * @param trust the snapshot in force; a reload replaces it
   * @param remembers whether what is presented was presented by a client, and is kept for its next connection
   */
  constructor(trust: () => ClientTrust, store: CertificateStore & IntermediateStore, remembers = true) {
    this.#trust = trust;
    this.#store = store;
    const memory = new IntermediateMemory(store);
    this.#memory = remembers ? memory : { recall: (leaf) => memory.recall(leaf), remember: () => Promise.resolve() };
  }

  async authenticate(presented: PresentedCredentials, context: AuthContext): Promise<MtlsIdentity | undefined> {
    const certificates = presentedCertificates(presented);
    if (certificates === undefined) return undefined;
    const validated = await validatePresented(this.#trust(), certificates, context.now, {
      expiredGraceSeconds: context.expiredGraceSeconds,
      memory: this.#memory,
    });
    const holder = holderOf(validated);
    await checkNotRevokedHere(this.#store, holder);
    const { rules } = context;
    if (rules === undefined) return mtlsIdentity(holder);
    if (!(await rules.accepts(validated.path))) throw new NotAccepted(mtlsIdentity(holder));
    // The store knows certificates of CAs that the configuration no longer names.
    const issuedHere = rules.isOfThisServer(validated.path) || (await isRecorded(this.#store, holder));
    return mtlsIdentity(holder, issuedHere);
  }
}

/** The identity of whom a validated client certificate names. */
export function mtlsIdentity(holder: CertificateHolder, issuedHere = false): MtlsIdentity {
  const display = certificateHolder(holder.certificate);
  return { method: 'mtls', requester: `mtls:${holderKey(holder)}`, display, ...holder, issuedHere };
}
