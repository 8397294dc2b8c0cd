/** Which content a CSR may have that goes to a remote CA as the device signed it (docs/guides/upstream.md). */
import { badRequest } from '../../errors.ts';
import { unlessMalformed } from '../../pki/der/der.ts';
import { OID, oidByName, oidName } from '../../pki/der/oids.ts';
import type { CsrContent } from '../../pki/pkcs10/csr-content.ts';
import { parseCsrAttrs, parseRequestTemplate } from '../../pki/pkcs10/csrattrs.ts';
import { applicationPolicies, findExtension, parseExtensions } from '../../pki/x509/extensions.ts';
import type { Ca } from '../router.ts';

/** Extensions that the profile judges, or that give nothing. */
const EXTENSIONS: ReadonlySet<string> = new Set([
  OID.subjectAltName,
  OID.keyUsage,
  OID.extKeyUsage,
  OID.basicConstraints,
  OID.subjectKeyIdentifier,
  OID.smimeCapabilities,
]);

const ATTRIBUTES: ReadonlySet<string> = new Set([
  OID.extensionRequest,
  OID.microsoftExtensionRequest,
  OID.challengePassword,
  OID.otpChallenge,
  OID.revocationChallenge,
  OID.estIdentityLinking,
  OID.decryptKeyIdentifier,
  OID.asymmetricDecryptKeyIdentifier,
  OID.smimeCapabilities,
  OID.changeSubjectName,
]);

/**
 * Rejects content that nobody judged: the remote CA might certify it.
 * @throws EstuaryError 400 `EXTENSION_NOT_ALLOWED`, `ATTRIBUTE_NOT_ALLOWED`, `EXTENDED_KEY_USAGE_NOT_ALLOWED`; those
 * of the remote CA's csrattrs
 */
export async function checkForwarded(
  { driver, profile, csrAttributes }: Pick<Ca, 'driver' | 'profile' | 'csrAttributes'>,
  csr: Pick<CsrContent, 'extensions' | 'attributes'>,
): Promise<void> {
  checkPurposes(csr, profile.extended_key_usage);
  const allowed = new Set([...profile.forward_extensions, ...askedOids(csrAttributes.der)]);
  const unjudged = () => [
    ...csr.extensions.filter(({ oid }) => !EXTENSIONS.has(oid) && !allowed.has(oid)),
    ...csr.attributes.filter(({ oid }) => !ATTRIBUTES.has(oid) && !allowed.has(oid)),
  ];
  if (unjudged().length === 0) return;
  for (const oid of askedOids(await driver.csrAttributes?.())) allowed.add(oid);
  const [first] = unjudged();
  if (first === undefined) return;
  const [code, kind] =
    'value' in first
      ? (['EXTENSION_NOT_ALLOWED', 'extension'] as const)
      : (['ATTRIBUTE_NOT_ALLOWED', 'attribute'] as const);
  throw badRequest(
    code,
    `The CSR has the ${kind} ${oidName(first.oid)}, which this CA does not forward. Omit it, or let the operator add it to forward_extensions.`,
  );
}

/** An empty profile lets a remote CA certify no purpose; Windows reads application policies like purposes. */
function checkPurposes({ extensions }: Pick<CsrContent, 'extensions'>, names: readonly string[]): void {
  const policies = findExtension(extensions, OID.microsoftApplicationPolicies);
  const asksForSome = findExtension(extensions, OID.extKeyUsage) !== undefined && names.length === 0;
  const allowed = new Set(names.map((name) => oidByName(name) ?? name));
  const purposes = policies && unlessMalformed(() => applicationPolicies(policies.value), undefined);
  const isMalformed = policies !== undefined && purposes === undefined;
  if (asksForSome || isMalformed || purposes?.some((purpose) => !allowed.has(purpose)) === true)
    throw badRequest(
      'EXTENDED_KEY_USAGE_NOT_ALLOWED',
      'The CSR asks for a purpose that this CA does not issue (extKeyUsage or application policies).',
    );
}

/** The extensions and attributes that csrattrs asks for. */
function askedOids(csrAttrs: Buffer | undefined): string[] {
  if (csrAttrs === undefined) return [];
  const asked = () =>
    parseCsrAttrs(csrAttrs).flatMap(({ oid, values = [] }) => {
      if (oid === OID.extensionRequest) return values.flatMap(parseExtensions).map((extension) => extension.oid);
      if (oid === OID.certificationRequestInfoTemplate)
        return values.flatMap((value) => parseRequestTemplate(value).extensions).map((extension) => extension.oid);
      return [oid];
    });
  return unlessMalformed(asked, []);
}
