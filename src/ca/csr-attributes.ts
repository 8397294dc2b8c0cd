/** The CA's requirements for CSRs: the source of both the csrattrs response and the policy check. */
import type { CsrAttrsConfig } from '../config/schema.ts';
import { badRequest, type EstuaryError } from '../errors.ts';
import { children, DerError, parseDer, readOid, Tag } from '../pki/der/der.ts';
import type { RequestKey } from '../pki/pkcs10/csr.ts';
import type { CsrContent } from '../pki/pkcs10/csr-content.ts';
import {
  encodeCsrAttrs,
  encodeRequestTemplate,
  keyTypeAttribute,
  type AttributeTemplate,
  type AttrOrOid,
  type ExtensionTemplate,
} from '../pki/pkcs10/csrattrs.ts';
import { encodeExtensions, encodeExtKeyUsage, encodeKeyUsage, KEY_USAGES } from '../pki/x509/extensions.ts';
import { attributeName, attributeType } from '../pki/x509/attribute-types.ts';
import { OID, oidByName, oidName } from '../pki/der/oids.ts';
import { InputError } from '../pki/input-error.ts';

/** Extensions that RFC 5280 requires to be critical (§4.2.1.3, §4.2.1.9). */
const CRITICAL: ReadonlySet<string> = new Set([OID.keyUsage, OID.basicConstraints]);

export class CsrAttributes {
  /** DER of CsrAttrs; undefined if there are no requirements. */
  readonly der: Buffer | undefined;
  readonly #config: CsrAttrsConfig | undefined;
  readonly #asksForChallenge: boolean;
  readonly #linksPossession: boolean;
  readonly #signature: string | undefined;
  readonly #extensions: readonly ExtensionTemplate[];
  readonly #subject: readonly (readonly AttributeTemplate[])[];

  /**
   * @param config `[ca.csrattrs]`
   * @param popLinking `est.require_pop_linking`: requests estIdentityLinking (RFC 7894) and challengePassword (RFC 7030
   * §3.5), which the caller checks against the connection
   * @throws InputError for an unknown name or invalid value
   */
  constructor(config: CsrAttrsConfig | undefined, popLinking: boolean) {
    this.#config = config;
    this.#linksPossession = popLinking;
    this.#asksForChallenge = popLinking || config?.challenge_password === true;
    this.#signature = config?.signature === undefined ? undefined : dotted(config.signature);
    this.#extensions = (config?.extensions ?? []).map(extensionTemplate);
    this.#subject = config?.template === true ? config.subject.map(rdnTemplate) : [];
    const items = this.#items();
    this.der = items.length === 0 ? undefined : encodeCsrAttrs(items);
  }

  /**
   * In the order of RFC 8951's example: challengePassword (with estIdentityLinking), key, extensions, further OIDs,
   * signature; then the template.
   */
  #items(): AttrOrOid[] {
    const config = this.#config;
    const valued = this.#extensions.flatMap(({ oid, critical, value }) =>
      value === undefined ? [] : [{ oid, critical, value }],
    );
    return [
      ...(this.#asksForChallenge ? [{ oid: OID.challengePassword }] : []),
      // RFC 7894 §4: clients that support it omit challengePassword.
      ...(this.#linksPossession ? [{ oid: OID.estIdentityLinking }] : []),
      ...(config?.key_type === undefined ? [] : [keyTypeAttribute(config.key_type)]),
      ...this.#extensions.filter(({ value }) => value === undefined).map(({ oid }) => ({ oid })),
      ...(valued.length === 0 ? [] : [{ oid: OID.extensionRequest, values: [encodeExtensions(valued)] }]),
      ...(config?.oids ?? []).map((oid) => ({ oid })),
      ...(this.#signature === undefined ? [] : [{ oid: this.#signature }]),
      ...(config?.template === true ? [{ oid: OID.certificationRequestInfoTemplate, values: [this.#template()] }] : []),
    ];
  }

  #template(): Buffer {
    return encodeRequestTemplate({
      subject: this.#subject,
      keyType: this.#config?.key_type,
      extensions: this.#extensions,
    });
  }

  get keyType(): CsrAttrsConfig['key_type'] {
    return this.#config?.key_type;
  }

  /**
   * Rejects a request, in any format, that lacks an attribute of the csrattrs response.
   * @param own the request's key and signature; undefined for serverkeygen, which ignores them (RFC 7030 §4.4.1)
   * @throws EstuaryError 400 `CSR_ATTRIBUTE_MISSING` or `CSR_ATTRIBUTE_DIFFERS`
   */
  check(csr: CsrContent, own: RequestKey | undefined): void {
    const isLinked = csr.challengePassword !== undefined || csr.identityLinking !== undefined;
    if (this.#config?.challenge_password === true && !isLinked) throw missing('a challengePassword');
    if (own !== undefined) this.#checkKey(own);
    for (const template of this.#extensions) checkExtension(csr, template);
    for (const attribute of this.#subject.flat()) checkSubjectAttribute(csr, attribute);
    const oids = this.#config?.oids ?? [];
    if (oids.length === 0) return;
    const present = oidsIn(csr, own);
    const absent = oids.find((oid) => !present.has(oid));
    if (absent !== undefined) throw missing(`the attribute ${oidName(absent)}`);
  }

  #checkKey({ keyType, signatureAlgorithm }: RequestKey): void {
    const wanted = this.#config?.key_type;
    if (wanted !== undefined && keyType !== wanted)
      throw differs(`The CSR's key is ${keyType}; this CA asks for ${wanted}.`);
    if (this.#signature === undefined) return;
    if (signatureAlgorithm === undefined) throw missing(`a signature with ${oidName(this.#signature)}`);
    if (signatureAlgorithm.oid !== this.#signature)
      throw differs(
        `The CSR's signature algorithm is ${signatureAlgorithm.name}; this CA asks for ${oidName(this.#signature)}.`,
      );
  }
}

const missing = (what: string): EstuaryError =>
  badRequest('CSR_ATTRIBUTE_MISSING', `The CSR needs ${what}; GET csrattrs lists what this CA requires.`);
const differs = (message: string): EstuaryError => badRequest('CSR_ATTRIBUTE_DIFFERS', message);

function checkExtension(csr: CsrContent, template: ExtensionTemplate): void {
  const requested = csr.extensions.find(({ oid }) => oid === template.oid);
  if (requested === undefined) throw missing(`the extension ${oidName(template.oid)}`);
  if (template.value?.equals(requested.value) === false)
    throw differs(`The CSR's extension ${oidName(template.oid)} must have the value that GET csrattrs lists.`);
}

function checkSubjectAttribute(csr: CsrContent, { type, text }: AttributeTemplate): void {
  const values = csr.subject.rdns.flat().filter((attribute) => attribute.type === type);
  if (values.length === 0) throw missing(`a ${attributeName(type)} in its subject`);
  if (text !== undefined && !values.some((value) => value.text === text))
    throw differs(`The CSR's subject has another ${attributeName(type)} than this CA asks for.`);
}

/** All OIDs that can satisfy a bare OID: attributes, extensions, the subject, algorithms. */
function oidsIn(csr: CsrContent, own: RequestKey | undefined): ReadonlySet<string> {
  return new Set([
    ...csr.attributes.map(({ oid }) => oid),
    ...csr.extensions.map(({ oid }) => oid),
    ...csr.subject.rdns.flat().map(({ type }) => type),
    ...directoryAttributes(csr),
    ...(own?.signatureAlgorithm === undefined ? [] : [own.signatureAlgorithm.oid]),
  ]);
}

/** The attribute types in a requested subjectDirectoryAttributes extension (RFC 9908 §5.2: a macAddress). */
function directoryAttributes(csr: CsrContent): string[] {
  const extension = csr.extensions.find(({ oid }) => oid === OID.subjectDirectoryAttributes);
  if (extension === undefined) return [];
  try {
    return children(parseDer(extension.value, Tag.SEQUENCE).value).map((attribute) => {
      const [type] = children(attribute.value);
      if (type === undefined) throw new DerError('Attribute: empty');
      return readOid(type);
    });
  } catch (error) {
    if (!(error instanceof DerError)) throw error;
    throw badRequest('EXTENSION_MALFORMED', 'The requested subjectDirectoryAttributes is not valid DER.', {
      detail: error.message,
    });
  }
}

type ExtensionConfig = CsrAttrsConfig['extensions'][number];

function extensionTemplate({ name, value }: ExtensionConfig): ExtensionTemplate {
  const oid = dotted(name);
  const critical = CRITICAL.has(oid);
  return value === undefined ? { oid, critical } : { oid, critical, value: extensionValue(oid, value) };
}

/** Names for keyUsage and extKeyUsage, otherwise DER in hex. */
function extensionValue(oid: string, parts: readonly string[]): Buffer {
  if (oid === OID.keyUsage) {
    return encodeKeyUsage(
      parts.map((part) => {
        const usage = KEY_USAGES.find((name) => name === part);
        if (usage === undefined) throw new InputError(`not a key usage: ${part}`);
        return usage;
      }),
    );
  }
  if (oid === OID.extKeyUsage) return encodeExtKeyUsage(parts.map(dotted));
  const hex = parts.join('');
  if (!/^([0-9a-fA-F]{2})+$/.test(hex)) throw new InputError(`not DER in hex: ${hex}`);
  const der = Buffer.from(hex, 'hex');
  parseDer(der);
  return der;
}

function rdnTemplate(rdn: Readonly<Record<string, string>>): AttributeTemplate[] {
  return Object.entries(rdn).map(([name, text]) => {
    const type = attributeType(name);
    if (type === undefined) throw new InputError(`not an attribute type: ${name}`);
    return text === '' ? { type } : { type, text };
  });
}

function dotted(name: string): string {
  const oid = name === 'extendedKeyUsage' ? OID.extKeyUsage : oidByName(name);
  if (oid === undefined) throw new InputError(`not an object identifier: ${name}`);
  return oid;
}
