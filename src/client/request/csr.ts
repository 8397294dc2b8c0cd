/** The client's requests: created once, stored, and bound to the connection of each copy. */
import { createPrivateKey, createPublicKey, type KeyObject } from 'node:crypto';
import { children, contextConstructed, DerReader, printableString, Tag, utf8String } from '../../pki/der/der.ts';
import { OID, oidByName, oidName } from '../../pki/der/oids.ts';
import { encodePem, tidyPem } from '../../pki/der/pem.ts';
import { attribute, extensionRequest, signCsr } from '../../pki/pkcs10/csr-builder.ts';
import type { Certificate } from '../../pki/x509/certificate.ts';
import { comparableGeneralNames, type GeneralName, ipAddress } from '../../pki/x509/general-name.ts';
import { newKeyPair } from '../../pki/x509/key-pair.ts';
import { privateKeyUri } from '../../pki/pkcs11-uri.ts';
import { parseDistinguishedName, parseName } from '../../pki/x509/name.ts';
import { parsePublicKey, type PublicKeyInfo } from '../../pki/x509/public-key.ts';
import {
  createSignature,
  defaultSignatureAlgorithm,
  parseSignatureAlgorithm,
  type SignatureAlgorithm,
} from '../../pki/x509/signature-algorithms.ts';
import { ClientError } from '../client-error.ts';
import type { CertificateConfig } from '../config/schema.ts';
import { idOfKeyUri, isKeyUri } from '../token/key-uri.ts';
import type { TokenKeys } from '../token/token.ts';
import type { RequestPlan, Wanted } from './demands.ts';

/** @throws InputError for an invalid name */
export function wantedOf(config: CertificateConfig, renews: Certificate | undefined): Wanted {
  const { key_type: keyType } = config;
  const extKeyUsage = config.ext_key_usage.map((name) => oidByName(name) ?? name);
  if (renews !== undefined)
    return { subject: renews.subject, subjectAltNames: renews.subjectAltNames, keyType, extKeyUsage, isRenewal: true };
  const subjectAltNames: GeneralName[] = [
    ...config.dns_names.map((value) => ({ kind: 'dns', value }) as const),
    ...config.ip_addresses.map(ipAddress),
    ...config.emails.map((value) => ({ kind: 'email', value }) as const),
    ...config.uris.map((value) => ({ kind: 'uri', value }) as const),
  ];
  const subject = parseDistinguishedName(config.subject);
  return { subject, subjectAltNames, keyType, extKeyUsage, isRenewal: false };
}

/** Identifies a request: a pending one with other settings is not repeated. */
export function requestKey(
  { label = '', key_store: store, key_file: file = '', channel_binding: binding }: CertificateConfig,
  { subject, subjectAltNames, keyType = '', extKeyUsage }: Wanted,
): string {
  const names = [subject.der.toString('base64'), comparableGeneralNames(subjectAltNames)];
  return [...names, keyType, label, store, file, binding, ...extKeyUsage].join(' ');
}

/** Why a certificate cannot authenticate a TLS client (RFC 5280 §4.2.1.12, §4.2.1.3), or undefined. */
export function tlsClientProblem({ extKeyUsage, keyUsage }: Certificate): string | undefined {
  if (extKeyUsage?.some((purpose) => purpose === OID.clientAuth || purpose === OID.anyExtendedKeyUsage) === false)
    return `its extended key usage is ${extKeyUsage.map(oidName).join(', ')}, without clientAuth`;
  return keyUsage?.includes('digitalSignature') === false ? 'its key usage lacks digitalSignature' : undefined;
}

/** A certificate's private key, generated here and stored in a file, or in a token. */
export interface PrivateKey {
  readonly publicKey: PublicKeyInfo;
  /** PKCS#8 PEM, or the URI of a key in a token. */
  readonly text: string;
  sign(algorithm: SignatureAlgorithm, data: Buffer): Promise<Buffer>;
}

/** @param keyType one of `GENERATED_KEY_TYPES` */
export async function makePrivateKey(keyType: string): Promise<PrivateKey> {
  const { publicKey, privateKey } = await newKeyPair(keyType);
  const pem = encodePem('PRIVATE KEY', privateKey);
  const key = createPrivateKey({ key: privateKey, format: 'der', type: 'pkcs8' });
  privateKey.fill(0);
  return privateKeyOf(key, publicKey, pem);
}

/** @param label of the token. @throws ClientError `KEY_UNUSABLE` */
export async function makeTokenKey(
  keys: TokenKeys,
  label: string,
  keyType: string,
  id: string,
  name: string,
): Promise<PrivateKey> {
  await keys.generate(keyType, id, name);
  return tokenKey(keys, privateKeyUri({ token: label, id }), id);
}

/** @param text of a file: PEM, or a URI. @param keys of the configured token. @throws ClientError `KEY_UNUSABLE` */
export async function openPrivateKey(text: string, where: string, keys: TokenKeys | undefined): Promise<PrivateKey> {
  if (!isKeyUri(text)) return readPrivateKey(text, where);
  const id = idOfKeyUri(text);
  if (keys === undefined || id === undefined)
    throw new ClientError(
      'local',
      'KEY_UNUSABLE',
      `${where} is the URI of a key in a token, and ${id === undefined ? 'has no id' : 'no token is configured ([token])'}`,
    );
  return tokenKey(keys, text.trim(), id);
}

async function tokenKey(keys: TokenKeys, text: string, id: string): Promise<PrivateKey> {
  const publicKey = parsePublicKey(await keys.publicKey(id));
  return { publicKey, text, sign: (algorithm, data) => keys.sign(id, algorithm, data) };
}

/** @throws ClientError `KEY_UNUSABLE` */
export function readPrivateKey(text: string, where: string): PrivateKey {
  try {
    const pem = tidyPem(text);
    const key = createPrivateKey(pem);
    return privateKeyOf(key, createPublicKey(key).export({ format: 'der', type: 'spki' }), pem);
  } catch (error) {
    const why = /ENCRYPTED/.test(text) ? ': it is encrypted' : text.includes('-----BEGIN ') ? '' : ': it is not PEM';
    throw new ClientError('local', 'KEY_UNUSABLE', `${where} does not contain a usable private key${why}`, {
      cause: error,
    });
  }
}

function privateKeyOf(key: KeyObject, spki: Buffer, pem: string): PrivateKey {
  const publicKey = parsePublicKey(spki);
  return {
    publicKey,
    text: pem,
    sign: (algorithm, data) => createSignature(algorithm, key, publicKey.keyType, data),
  };
}

/**
 * @param attributes DER of additional attributes. @returns DER, without a channel binding. @throws ClientError
 * `KEY_UNUSABLE`
 */
export async function makeCsr(plan: RequestPlan, key: PrivateKey, attributes: readonly Buffer[] = []): Promise<Buffer> {
  const { spki, keyType } = key.publicKey;
  const algorithm = plan.signatureAlgorithm ?? defaultSignatureAlgorithm(keyType);
  if (algorithm === undefined)
    throw new ClientError('local', 'KEY_UNUSABLE', `a key of the type ${keyType} cannot sign a request`);
  return signCsr({
    subject: plan.subject,
    spki,
    attributes: [...extensionRequest(plan.extensions), ...attributes],
    algorithm,
    sign: (info) => key.sign(algorithm, info),
  });
}

/** Adds a connection's channel binding to a request (RFC 7030 §3.5, RFC 7894 §3.3). */
export async function bindCsr(
  csr: Buffer,
  key: PrivateKey,
  binding: 'challengePassword' | 'estIdentityLinking',
  value: Buffer,
): Promise<Buffer> {
  const request = DerReader.of(csr, 'CertificationRequest');
  const info = request.enter(Tag.SEQUENCE, 'certificationRequestInfo');
  const algorithm = parseSignatureAlgorithm(request.next(Tag.SEQUENCE, 'signatureAlgorithm').raw);
  info.next(Tag.INTEGER, 'version');
  const subject = parseName(info.next(Tag.SEQUENCE, 'subject').raw);
  const spki = info.next(Tag.SEQUENCE, 'subjectPKInfo').raw;
  const attributes = children(info.next(contextConstructed(0), 'attributes').value).map(({ raw }) => raw);
  const text = value.toString('base64');
  // RFC 2985 §5.4.1 prefers PrintableString, which can represent base64; RFC 7894 requires UTF8String.
  const linked =
    binding === 'challengePassword'
      ? attribute(OID.challengePassword, printableString(text))
      : attribute(OID.estIdentityLinking, utf8String(text));
  return signCsr({
    subject,
    spki,
    attributes: [...attributes, linked],
    algorithm,
    sign: (data) => key.sign(algorithm, data),
  });
}
