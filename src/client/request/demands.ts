/** Combines the CA's CSR attributes (RFC 7030 §4.5.2, RFC 8951, RFC 9908) with the client's configuration. */
import { children, DerError, parseDer, Tag } from '../../pki/der/der.ts';
import { OID, oidName } from '../../pki/der/oids.ts';
import {
  keyTypeOf,
  parseRequestTemplate,
  type AttrOrOid,
  type AttributeTemplate,
  type RequestTemplate,
} from '../../pki/pkcs10/csrattrs.ts';
import { attributeName } from '../../pki/x509/attribute-types.ts';
import { encodeExtKeyUsage, encodeKeyUsage, parseExtensions, type Extension } from '../../pki/x509/extensions.ts';
import {
  encodeGeneralName,
  encodeGeneralNames,
  parseGeneralName,
  sameGeneralNames,
  type GeneralName,
} from '../../pki/x509/general-name.ts';
import { canGenerateKey } from '../../pki/x509/key-pair.ts';
import { attributeValues, buildName, type Name } from '../../pki/x509/name.ts';
import {
  defaultSignatureAlgorithm,
  SIGNATURE_ALGORITHMS,
  type SignatureAlgorithm,
} from '../../pki/x509/signature-algorithms.ts';
import { ClientError } from '../client-error.ts';

/** The configured content, or that of the certificate to renew. */
export interface Wanted {
  readonly subject: Name;
  readonly subjectAltNames: readonly GeneralName[];
  /** undefined: as the CA requires, otherwise P-256. */
  readonly keyType: string | undefined;
  readonly extKeyUsage: readonly string[];
  /** RFC 7030 §4.2.2: a renewal keeps the names. */
  readonly isRenewal: boolean;
}

/** The content of the request, except the key and the channel binding. */
export interface RequestPlan {
  readonly subject: Name;
  readonly extensions: readonly Extension[];
  readonly keyType: string;
  /** Default: the key's default algorithm. */
  readonly signatureAlgorithm: SignatureAlgorithm | undefined;
  /** The attribute for the channel binding. */
  readonly binding: 'challengePassword' | 'estIdentityLinking' | undefined;
}

const DEFAULT_KEY_TYPE = 'ec:P-256';

/** @throws ClientError `CSRATTRS_UNMET`; `ANSWER_INVALID` */
export function planRequest(asked: readonly AttrOrOid[], wanted: Wanted): RequestPlan {
  try {
    return plan(asked, wanted);
  } catch (error) {
    if (!(error instanceof DerError)) throw error;
    const message = `the response to csrattrs is unusable: ${error.message}`;
    throw new ClientError('later', 'ANSWER_INVALID', message, { cause: error });
  }
}

function plan(asked: readonly AttrOrOid[], wanted: Wanted): RequestPlan {
  const value = asked.find(({ oid }) => oid === OID.certificationRequestInfoTemplate)?.values?.[0];
  const template = value && parseRequestTemplate(value);
  const keyType = chooseKeyType(
    template === undefined ? asked.flatMap((attribute) => keyTypeOf(attribute) ?? []) : [template.keyType],
    wanted,
  );
  // RFC 9908 §4: a client that supports the template uses it alone for everything that it can express.
  const extensions =
    template === undefined
      ? fromAttributes(asked, wanted)
      : template.extensions.map(({ oid, critical, value }) => ({ oid, critical, value: filled(oid, value, wanted) }));
  return {
    subject: wanted.isRenewal || template === undefined ? wanted.subject : fromTemplate(template, wanted.subject),
    extensions: complete(extensions, wanted),
    keyType,
    signatureAlgorithm: signatureFor(asked, keyType),
    binding: bindingAsked(asked),
  };
}

/** RFC 7894 §4: a client that supports estIdentityLinking uses it instead of challengePassword. */
function bindingAsked(asked: readonly AttrOrOid[]): RequestPlan['binding'] {
  const has = (oid: string): boolean => asked.some((extension) => extension.oid === oid);
  if (has(OID.estIdentityLinking)) return 'estIdentityLinking';
  return has(OID.challengePassword) ? 'challengePassword' : undefined;
}

function chooseKeyType(asked: readonly (string | undefined)[], { keyType }: Wanted): string {
  const types = asked.filter((type) => type !== undefined);
  if (keyType !== undefined) {
    if (types.length > 0 && !types.includes(keyType))
      throw unmet(`the CA requires a key of the type ${types.join(' or ')}, and key_type is ${keyType}`);
    return keyType;
  }
  if (types.length === 0) return DEFAULT_KEY_TYPE;
  const made = types.find(canGenerateKey);
  if (made === undefined)
    throw unmet(`the CA requires a key of the type ${types.join(' or ')}, which the client cannot create`);
  return made;
}

function signatureFor(asked: readonly AttrOrOid[], keyType: string): SignatureAlgorithm | undefined {
  const oids = new Set(asked.flatMap(({ oid, values }) => (values === undefined ? [oid] : [])));
  const usual = defaultSignatureAlgorithm(keyType);
  const known = Object.values(SIGNATURE_ALGORITHMS).filter(({ oid, scheme }) => {
    if (!oids.has(oid)) return false;
    if (keyType.startsWith('rsa:')) return scheme === 'rsa-pkcs1' || scheme === 'rsa-pss';
    return scheme === usual?.scheme && (scheme !== 'eddsa' || oid === usual.oid);
  });
  return known.find(({ oid }) => oid === usual?.oid) ?? known[0];
}

/**
 * The values of an extensionReq, and the extensions requested by a bare OID; ignores unknown ones (RFC 7030 §4.5.2).
 */
function fromAttributes(asked: readonly AttrOrOid[], wanted: Wanted): Extension[] {
  return asked.flatMap(({ oid, values }) => {
    if (oid === OID.extensionRequest)
      return (values ?? []).flatMap((value) => (parseDer(value).tag === Tag.SEQUENCE ? parseExtensions(value) : []));
    if (values !== undefined || !FILLED.has(oid)) return [];
    if (oid === OID.subjectAltName && wanted.subjectAltNames.length === 0)
      throw unmet('the CA requires a subjectAltName, and no name is configured (dns_names, ip_addresses …)');
    return [{ oid, critical: oid === OID.keyUsage, value: filled(oid, undefined, wanted) }];
  });
}

const FILLED: ReadonlySet<string> = new Set([OID.subjectAltName, OID.keyUsage, OID.extKeyUsage]);

/** The value of an extension that the CA leaves wholly or partly to the client. */
function filled(oid: string, value: Buffer | undefined, wanted: Wanted): Buffer {
  if (oid === OID.subjectAltName) return filledAltNames(value, wanted);
  if (value !== undefined) return value;
  if (oid === OID.keyUsage) return encodeKeyUsage(['digitalSignature']);
  if (oid === OID.extKeyUsage)
    return encodeExtKeyUsage(wanted.extKeyUsage.length > 0 ? wanted.extKeyUsage : [OID.clientAuth]);
  throw unmet(`the CA requires a value of the extension ${oidName(oid)}, which the client does not know`);
}

/** RFC 9908 §3.4: fills in an empty name; keeps names with a value. */
function filledAltNames(value: Buffer | undefined, { subjectAltNames, isRenewal }: Wanted): Buffer {
  if (isRenewal && subjectAltNames.length > 0) return encodeGeneralNames(subjectAltNames);
  const templates = value === undefined ? [] : children(parseDer(value, Tag.SEQUENCE, 'GeneralNames').value);
  const given = templates.filter((template) => template.value.length > 0).map((template) => parseGeneralName(template));
  for (const { tag } of templates.filter((template) => template.value.length === 0))
    if (!subjectAltNames.some((name) => encodeGeneralName(name)[0] === tag))
      throw unmet(
        `the CA requires a ${GENERAL_NAMES.get(tag & 0x1f) ?? 'name'} in the subjectAltName, and no such name is configured`,
      );
  const others = subjectAltNames.filter((name) => !given.some((known) => sameGeneralNames([known], [name])));
  const names = [...given, ...others];
  if (names.length === 0) throw unmet('the CA requires a subjectAltName, and no name is configured');
  return encodeGeneralNames(names);
}

const GENERAL_NAMES: ReadonlyMap<number, string> = new Map([
  [1, 'rfc822Name'],
  [2, 'dNSName'],
  [6, 'uniformResourceIdentifier'],
  [7, 'iPAddress'],
]);

/** Adds the configured extensions that the CA does not mention. */
function complete(extensions: readonly Extension[], wanted: Wanted): Extension[] {
  const has = (oid: string): boolean => extensions.some((extension) => extension.oid === oid);
  const all = [...extensions];
  if (wanted.subjectAltNames.length > 0 && !has(OID.subjectAltName))
    all.push({ oid: OID.subjectAltName, critical: false, value: encodeGeneralNames(wanted.subjectAltNames) });
  if (wanted.extKeyUsage.length > 0 && !has(OID.extKeyUsage))
    all.push({ oid: OID.extKeyUsage, critical: false, value: encodeExtKeyUsage(wanted.extKeyUsage) });
  return all;
}

/** The CA's values, the client's own where the CA leaves them open, then the client's other attributes. */
function fromTemplate({ subject }: RequestTemplate, own: Name): Name {
  if (subject.length === 0) return own;
  const used = new Map<string, number>();
  const rdns = subject.map((rdn) =>
    rdn.map((attribute) => ({ type: attribute.type, text: textOf(attribute, own, used) })),
  );
  const named = new Set(subject.flat().map(({ type }) => type));
  const others = own.rdns
    .filter((rdn) => rdn.every(({ type }) => !named.has(type)))
    .map((rdn) => rdn.map(({ type, text, tag }) => ({ type, text, tag })));
  return buildName([...rdns, ...others]);
}

function textOf({ type, text }: AttributeTemplate, own: Name, used: Map<string, number>): string {
  if (text !== undefined) return text;
  const nth = used.get(type) ?? 0;
  used.set(type, nth + 1);
  const value = attributeValues(own, type)[nth];
  if (value === undefined) throw unmet(`the CA requires a ${attributeName(type)} in the subject, and subject lacks it`);
  return value;
}

const unmet = (reason: string): ClientError => new ClientError('refused', 'CSRATTRS_UNMET', reason);
