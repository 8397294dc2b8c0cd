/** `subject.template` and `san.add` of a profile, filled in for a requester. */
import type { ProfileConfig } from '../config/schema.ts';
import { forbidden } from '../errors.ts';
import type { GeneralName } from '../pki/x509/general-name.ts';
import { NoFittingValue, SanTemplate, SubjectTemplate, type PlaceholderValues } from '../pki/x509/name-template.ts';
import type { Name } from '../pki/x509/name.ts';

/** The parts of `[ca.profile]` that have templates. */
type TemplateProfile = Pick<ProfileConfig, 'subject' | 'san'>;

interface Templates {
  readonly subject: SubjectTemplate | undefined;
  readonly added: readonly SanTemplate[];
}

const parsed = new WeakMap<TemplateProfile, Templates>();

/**
 * @returns the subject that stands in place of the request's, if the profile has a template for it, and the SANs that come beside the request's
 * @throws EstuaryError 403 `NAME_NOT_MADE`: no value, several where one fits, or one that is not valid there
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
      added: profile.san.add?.map((text) => new SanTemplate(text)) ?? [],
    };
    parsed.set(profile, templates);
  }
  return templates;
}
