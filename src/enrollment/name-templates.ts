/** Placeholder values of a requester, for patterns and templates. */
import { parsePrincipal } from '../auth/gssapi/principal.ts';
import type { Identity } from '../auth/identity.ts';
import type { ProfileConfig } from '../config/schema.ts';
import { forbidden } from '../errors.ts';
import type { Certificate } from '../pki/x509/certificate.ts';
import type { GeneralName } from '../pki/x509/general-name.ts';
import {
  certificatePlaceholder,
  NoFittingValue,
  type PlaceholderValues,
  SanTemplate,
  SubjectTemplate,
} from '../pki/x509/name-template.ts';
import type { Name } from '../pki/x509/name.ts';
import type { NameRight } from './bound-names.ts';
import type { RequestBase } from './request.ts';

const DEVICE = 'device.';
const LDAP = 'ldap.';
const JWT = 'jwt.';

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
  return certificate.subjectAltNames.flatMap((name) => (name.kind === wanted.kind ? [name.value] : []));
}

/** The parts of `[ca.profile]` with templates. */
type TemplateProfile = Pick<ProfileConfig, 'subject' | 'san'>;

interface Templates {
  readonly subject: SubjectTemplate | undefined;
  readonly added: readonly SanTemplate[];
}

const parsed = new WeakMap<TemplateProfile, Templates>();

/**
 * @returns the subject from the profile's template, if any, and the SANs to add
 * @throws EstuaryError 403 `NAME_NOT_MADE` if a placeholder has no value, several values, or an invalid one
 */
export function filledTemplates(
  profile: TemplateProfile,
  values: PlaceholderValues,
): { readonly subject: Name | undefined; readonly added: readonly GeneralName[] } {
  const { subject, added } = templatesOf(profile);
  try {
    return { subject: subject?.fill(values), added: added.map((template) => template.fill(values)) };
  } catch (error) {
    if (!(error instanceof NoFittingValue)) throw error;
    throw forbidden('NAME_NOT_MADE', "The certificate's names cannot be made for this requester.", {
      detail: error.message,
    });
  }
}

function templatesOf(profile: TemplateProfile): Templates {
  let templates = parsed.get(profile);
  if (templates === undefined) {
    const { template } = profile.subject;
    templates = {
      subject: template === undefined ? undefined : new SubjectTemplate(template),
      added: profile.san.add?.map((text) => new SanTemplate(text, profile.san.dns_underscore)) ?? [],
    };
    parsed.set(profile, templates);
  }
  return templates;
}
