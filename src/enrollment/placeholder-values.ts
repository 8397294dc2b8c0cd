/** What the placeholders of patterns and templates stand for, of one requester. */
import type { Identity } from '../auth/identity.ts';
import { parsePrincipal } from '../auth/gssapi/principal.ts';
import type { Certificate } from '../pki/x509/certificate.ts';
import { certificatePlaceholder, type PlaceholderValues } from '../pki/x509/name-template.ts';
import type { NameRight } from './name-right.ts';
import type { RequestBase } from './request.ts';

const DEVICE = 'device.';
const LDAP = 'ldap.';
const JWT = 'jwt.';

/** The values for a requester: none for a placeholder that says nothing of it. */
export function placeholderValues(
  { identity, device }: Pick<RequestBase, 'identity' | 'device'>,
  right: NameRight,
): PlaceholderValues {
  const clientId = clientIdOf(identity, right);
  const certificate = 'certificate' in identity ? identity.certificate : undefined;
  return (placeholder) => {
    switch (placeholder) {
      case 'id':
        return idOf();
      case 'client_id':
        return some(clientId);
      case 'principal':
      case 'primary':
      case 'instance':
      case 'realm':
        return identity.method === 'gssapi' ? some(principalOf(identity)[placeholder]) : [];
      default:
        if (placeholder.startsWith(DEVICE)) return some(deviceValue(device, placeholder.slice(DEVICE.length)));
        if (placeholder.startsWith(LDAP))
          return described(identity, 'ldap', placeholder.slice(LDAP.length).toLowerCase());
        if (placeholder.startsWith(JWT)) return described(identity, 'jwt', placeholder.slice(JWT.length));
        return ofCertificate(certificate, placeholder);
    }
  };

  function idOf(): readonly string[] {
    const principal = identity.method === 'gssapi' ? (identity.name ?? identity.principal) : undefined;
    const known = device?.id ?? clientId ?? principal;
    return known === undefined ? ofCertificate(certificate, 'cert.CN') : [known];
  }
}

const some = (value: string | undefined): readonly string[] => (value === undefined ? [] : [value]);

function clientIdOf(identity: Identity, right: NameRight): string | undefined {
  if (right.kind === 'secret') return right.identification;
  return 'client_id' in identity ? identity.client_id : undefined;
}

function described(identity: Identity, method: 'ldap' | 'jwt', name: string): readonly string[] {
  return identity.method === method ? (identity.attributes.get(name) ?? []) : [];
}

function principalOf(identity: Extract<Identity, { readonly method: 'gssapi' }>) {
  const { text, components, realm } = parsePrincipal(identity.principal);
  const [primary, instance] = components;
  return { principal: text, primary, instance, realm };
}

function deviceValue(device: RequestBase['device'], name: string): string | undefined {
  if (device === undefined || name === 'id') return device?.id;
  return Object.hasOwn(device.attributes, name) ? device.attributes[name] : undefined;
}

function ofCertificate(certificate: Certificate | undefined, placeholder: string): readonly string[] {
  const wanted = certificatePlaceholder(placeholder);
  if (certificate === undefined || wanted === undefined) return [];
  if ('attribute' in wanted)
    return certificate.subject.rdns.flat().flatMap(({ type, text }) => (type === wanted.attribute ? [text] : []));
  return certificate.subjectAltNames.flatMap((name) =>
    name.kind !== 'other' && name.kind === wanted.kind ? [name.value] : [],
  );
}
