/**
 * Policy for requested extensions: a request may name some of the profile's usages and purposes, but always gets all of
 * them.
 */
import { badRequest } from '../errors.ts';
import { DerError } from '../pki/der/der.ts';
import { OID, oidName } from '../pki/der/oids.ts';
import { requireDer } from '../pki/der/element.ts';
import {
  type Extension,
  type KeyUsage,
  MAX_EXTENSION_LENGTH,
  parseBasicConstraints,
  parseExtKeyUsage,
  parseKeyUsage,
} from '../pki/x509/extensions.ts';

export interface ExtensionPolicy {
  readonly keyUsage: ReadonlySet<KeyUsage>;
  readonly purposes: ReadonlySet<string>;
  /** Extensions that are copied from the request. */
  readonly copied: ReadonlySet<string>;
  /** The CA issues CA certificates. */
  readonly forCas: boolean;
}

/** @throws EstuaryError 400 CA_NOT_ALLOWED, KEY_USAGE_NOT_ALLOWED, EXTENDED_KEY_USAGE_NOT_ALLOWED, EXTENSION_NOT_ALLOWED, EXTENSION_MALFORMED */
export function checkRequestedExtension(policy: ExtensionPolicy, { oid, critical, value }: Extension): void {
  switch (oid) {
    case OID.subjectAltName:
      return;
    case OID.basicConstraints:
      if (parsed(oid, value, parseBasicConstraints).ca && !policy.forCas)
        throw badRequest('CA_NOT_ALLOWED', 'The request asks for a CA certificate, which this CA does not issue.');
      return;
    case OID.keyUsage: {
      checkKeyUsage(policy, parsed(oid, value, parseKeyUsage));
      return;
    }
    case OID.extKeyUsage: {
      checkPurposes(policy, parsed(oid, value, parseExtKeyUsage));
      return;
    }
    default:
      // A device CA gets the profile's constraints.
      if (oid === OID.nameConstraints && policy.forCas) return;
      if (policy.copied.has(oid)) checkCopied(oid, value);
      else if (critical)
        throw badRequest(
          'EXTENSION_NOT_ALLOWED',
          `The request has the critical extension ${oidName(oid)}, which this CA does not issue.`,
        );
  }
}

/** Copied extensions are opaque; only DER is checked. */
function checkCopied(oid: string, value: Buffer): void {
  if (value.length > MAX_EXTENSION_LENGTH)
    throw badRequest(
      'EXTENSION_NOT_ALLOWED',
      `The requested ${oidName(oid)} has ${value.length} bytes; ${MAX_EXTENSION_LENGTH} are allowed.`,
    );
  parsed(oid, value, requireDer);
}

function parsed<T>(oid: string, value: Buffer, parse: (value: Buffer) => T): T {
  try {
    return parse(value);
  } catch (error) {
    if (!(error instanceof DerError)) throw error;
    throw badRequest('EXTENSION_MALFORMED', `The requested ${oidName(oid)} is not valid DER: ${error.message}.`);
  }
}

/** Without keyUsage in the profile the extension is omitted, which allows every end-entity usage. */
function checkKeyUsage({ keyUsage }: ExtensionPolicy, usages: readonly KeyUsage[]): void {
  const beyond = usages.find((usage) =>
    keyUsage.size === 0 ? usage === 'keyCertSign' || usage === 'cRLSign' : !keyUsage.has(usage),
  );
  if (beyond !== undefined)
    throw badRequest(
      'KEY_USAGE_NOT_ALLOWED',
      `The request asks for the key usage ${beyond}, which this CA does not issue.`,
    );
}

function checkPurposes({ purposes }: ExtensionPolicy, requested: readonly string[]): void {
  const beyond = purposes.size === 0 ? undefined : requested.find((purpose) => !purposes.has(purpose));
  if (beyond !== undefined)
    throw badRequest(
      'EXTENDED_KEY_USAGE_NOT_ALLOWED',
      `The request asks for the extended key usage ${oidName(beyond)}, which this CA does not issue.`,
    );
}
