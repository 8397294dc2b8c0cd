/** What a certificate shall say: what the configuration has, or, for a renewal, what the present one says (RFC 7030 §4.2.2). */
import { OID, oidByName, oidName } from '../../pki/der/oids.ts';
import { comparableGeneralNames, ipAddress, type GeneralName } from '../../pki/x509/general-name.ts';
import { parseDistinguishedName } from '../../pki/x509/name.ts';
import type { Certificate } from '../../pki/x509/certificate.ts';
import type { CertificateConfig } from '../config/client-config.ts';
import type { Wanted } from './demands.ts';

/** @throws InputError on a name that is none */
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

/** Why a certificate cannot authenticate a TLS client (RFC 5280 §4.2.1.12, §4.2.1.3); undefined: it can. */
export function tlsClientProblem({ extKeyUsage, keyUsage }: Certificate): string | undefined {
  if (extKeyUsage?.some((one) => one === OID.clientAuth || one === OID.anyExtendedKeyUsage) === false)
    return `its extended key usage is ${extKeyUsage.map(oidName).join(', ')}, without clientAuth`;
  return keyUsage?.includes('digitalSignature') === false ? 'its key usage lacks digitalSignature' : undefined;
}
