/** Extensions as text, for people. No decision depends on it. */
import { unlessMalformed } from '../der/der.ts';
import { OID, oidName } from '../der/oids.ts';
import {
  applicationPolicies,
  type Extension,
  parseAuthorityInfoAccess,
  parseAuthorityKeyIdentifier,
  parseBasicConstraints,
  parseDistributionPointNames,
  parseExtKeyUsage,
  parseKeyUsage,
  parseSubjectKeyIdentifier,
} from './extensions.ts';
import {
  directoryName,
  formatGeneralName,
  type GeneralName,
  parseGeneralName,
  parseGeneralNames,
} from './general-name.ts';
import { formatName } from './name.ts';

/** In addition to the forms of records, a directoryName as RFC 4514 text. */
function nameText(name: GeneralName): string {
  const directory = directoryName(name);
  return directory === undefined ? formatGeneralName(name) : formatName(directory);
}

const namesIn = (value: Buffer): string[] => parseGeneralNames(value).map(nameText);

const READERS: Readonly<Record<string, (value: Buffer) => readonly string[]>> = {
  [OID.subjectKeyIdentifier]: (value) => [parseSubjectKeyIdentifier(value).toString('hex')],
  [OID.keyUsage]: parseKeyUsage,
  [OID.subjectAltName]: namesIn,
  [OID.issuerAltName]: namesIn,
  [OID.basicConstraints]: (value) => {
    const { ca, pathLength } = parseBasicConstraints(value);
    return [ca ? 'CA' : 'not a CA', ...(pathLength === undefined ? [] : [`at most ${pathLength} CAs below it`])];
  },
  [OID.cRLDistributionPoints]: (value) => parseDistributionPointNames(value).map(parseGeneralName).map(nameText),
  [OID.certificatePolicies]: applicationPolicies,
  [OID.authorityKeyIdentifier]: (value) => {
    const identifier = parseAuthorityKeyIdentifier(value);
    return identifier === undefined ? [] : [identifier.toString('hex')];
  },
  [OID.extKeyUsage]: (value) => parseExtKeyUsage(value).map(oidName),
  [OID.authorityInfoAccess]: (value) => {
    const { ocsp, caIssuers } = parseAuthorityInfoAccess(value);
    return [...ocsp.map((url) => `OCSP: ${url}`), ...caIssuers.map((url) => `CA certificate: ${url}`)];
  },
  [OID.ocspNoCheck]: () => ['clients do not check its status'],
  [OID.tlsFeature]: () => ['a stapled OCSP response (must staple)'],
};

/** The values of an extension; hex for an unknown or malformed one. */
export const extensionText = ({ oid, value }: Extension): readonly string[] =>
  unlessMalformed(() => READERS[oid]?.(value), undefined) ?? [value.toString('hex')];
