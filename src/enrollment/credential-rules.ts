/** Which credentials count at a CA's label for enrolments: one rule for simpleenroll, serverkeygen and fullcmc. */
import type { CredentialRules } from '../auth/plugin.ts';
import type { Ca } from '../ca/router.ts';
import { isSameCertificate, type Certificate } from '../pki/x509/certificate.ts';

/** @param exempt certificates that are not filtered: those of registration authorities that the configuration names */
export function credentialRules(ca: Ca, exempt: readonly Certificate[] = []): CredentialRules {
  return {
    methods: ca.config.auth.methods,
    accepts: async (path) =>
      exempt.some((one) => path[0] !== undefined && isSameCertificate(one, path[0])) ||
      (await ca.clientIssuers.accept(path)),
    isOfThisServer: (path) => ca.clientIssuers.isOfThisServer(path),
  };
}
