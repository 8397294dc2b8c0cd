/** Certificates, as a client sends them in the handshake or in a message. */
import { certificateHolder } from '../../../src/auth/certificate-holder.ts';
import { isSelfIssued, issuerProblem, keyProblem, pathNamesProblem } from '../../../src/auth/mtls/path-validation.ts';
import { lint } from '../../../src/ca/local/lint.ts';
import { boundsProblem } from '../../../src/pki/x509/certificate-bounds.ts';
import { parseCertificate, verifyCertificateSignature } from '../../../src/pki/x509/certificate.ts';
import { issuerAndSerialNumber } from '../../../src/pki/cms/cms.ts';
import { distributionPointNames } from '../../../src/pki/x509/crl.ts';
import { children, parseDer, unlessMalformed } from '../../../src/pki/der/der.ts';
import { formatGeneralName, generalNameProblem, sameGeneralNames } from '../../../src/pki/x509/general-name.ts';
import {
  foldedName,
  comparableName,
  formatName,
  namesEqual,
  parseDistinguishedName,
  type Name,
} from '../../../src/pki/x509/name.ts';
import { isDerError, type Target } from '../target.ts';
import { certificateSeeds, hierarchy } from './certificates.ts';
import { InputError } from '../../../src/pki/input-error.ts';

const known = parseCertificate((await hierarchy()).issuing.der);

/** The text of any name that is read is read again; an empty value, for one, can be written but not asked for. */
function roundTrip(name: Name): void {
  const text = formatName(name);
  let again: Name;
  try {
    again = parseDistinguishedName(text);
  } catch (error) {
    if (error instanceof InputError) return;
    throw error;
  }
  const written = formatName(again);
  if (written !== text) throw new Error(`a name is written as ${text} and, read again, as ${written}`);
}

async function read(input: Buffer): Promise<void> {
  // What is linted before it is signed need not be part of a certificate that can be read.
  const [tbs] = unlessMalformed(() => children(parseDer(input).value), []);
  if (tbs !== undefined)
    lint(tbs.raw, { issuer: known, signatureAlgorithm: known.signatureAlgorithm, maxValidityDays: 1 });
  unlessMalformed(() => boundsProblem(input), undefined);
  const certificate = parseCertificate(input);
  const { subject, issuer, extensions, subjectAltNames } = certificate;
  roundTrip(subject);
  roundTrip(issuer);
  certificateHolder(certificate);
  if (namesEqual(subject, issuer) !== (comparableName(subject) === comparableName(issuer)))
    throw new Error('two comparisons of names differ');
  foldedName(subject);
  subjectAltNames.map(formatGeneralName);
  subjectAltNames.map(generalNameProblem);
  sameGeneralNames(subjectAltNames, [...subjectAltNames].reverse());
  unlessMalformed(() => distributionPointNames(extensions), []);
  issuerAndSerialNumber(certificate);
  keyProblem(certificate.publicKey);
  issuerProblem(certificate, { anchor: true, below: isSelfIssued(certificate) ? 0 : 1 });
  pathNamesProblem([certificate, certificate, certificate]);
  await verifyCertificateSignature(certificate, certificate);
}

export const target: Target = { grammar: 'der', seeds: certificateSeeds, read, isRefusal: isDerError };
