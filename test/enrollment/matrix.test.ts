/**
 * Which requester gets which names: every combination of requester, label, `[ca.auth] methods`, binding, template and
 * device mode, compared with an oracle that states the rules in a few lines.
 */
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { ClientIdBinding } from '../../src/auth/identity.ts';
import { formatGeneralName } from '../../src/pki/x509/general-name.ts';
import { formatName } from '../../src/pki/x509/name.ts';
import { buildCsr, commonName, dns, extensionRequest, makeKey, san } from '../support/csr.ts';
import {
  EveryRequester,
  hasClientId,
  isByCertificate,
  LABELS,
  OWN,
  PRINCIPAL,
  REQUESTERS,
  type Label,
  type NameRules,
  type Requester,
} from './every-requester.ts';

const OTHER = 'b.example';
const DERIVED = `x.${OWN}`;

const TEMPLATES = {
  none: {},
  subject: { subject: { template: 'CN={id},O=Made' } },
  added: { san: { add: ['dns:{id}'] } },
  // A name that has a dot is no label.
  label: { san: { add: ['dns:{id}.added.example'] } },
  patterns: { subject: { patterns: { CN: '{id}' } }, san: { dns: ['{id}', 'x\\.{id}'] } },
} as const satisfies Readonly<Record<string, NameRules>>;
type Template = keyof typeof TEMPLATES;

interface Row {
  readonly requester: Requester;
  readonly label: Label;
  readonly methods: 'all' | 'otp' | 'ldap' | 'jwt';
  readonly binding: ClientIdBinding;
  readonly mtlsSubject: 'any' | 'same' | 'auto';
  readonly template: Template;
  readonly devices: 'off' | 'registered' | 'not registered';
  readonly asked: { readonly cn: string; readonly dns: string };
}

/** Which device the holder of each certificate is registered as. */
const UNITS: Partial<Record<Requester, string>> = {
  'certificate of a maker': 'unit-0',
  'certificate of devices': 'unit-1',
  'certificate of lab': 'unit-2',
};

/** `{id}`: of a registered device its id, which tells the holders of certificates from the names that they bear. */
function idOf({ requester, devices }: Row): string {
  if (requester === 'gssapi') return PRINCIPAL;
  return (devices === 'registered' ? UNITS[requester] : undefined) ?? OWN;
}

/** The rules of docs/guides/names.md for this requester, whose names are a.example's. */
function oracle(row: Row): string {
  const { requester, label, methods, binding, mtlsSubject, template, devices, asked } = row;
  const byCertificate = isByCertificate(requester);
  if (methods !== 'all' && requester !== methods) return '401';
  if (byCertificate && requester !== `certificate of ${label}` && requester !== 'certificate of a maker') return '403';
  if (devices === 'not registered') return '403';
  const id = idOf(row);
  if (template === 'added' && id === PRINCIPAL) return '403';
  if (template === 'label' && !/^[a-z0-9-]+$/.test(id)) return '403';
  const made = { subject: id, added: id, label: `${id}.added.example`, none: '', patterns: '' }[template];
  const isOwnSubject = template === 'subject' || asked.cn === OWN;
  const isOwnSan = asked.dns === OWN || (template === 'patterns' && asked.dns === `x.${id}`);
  const isSame = mtlsSubject === 'same' || (mtlsSubject === 'auto' && requester !== 'certificate of a maker');
  if (byCertificate && isSame && !(isOwnSubject && isOwnSan)) return '403';
  if (requester === 'gssapi' && !isOwnSan) return '403';
  if (hasClientId(requester) && binding !== 'off' && !(isOwnSubject && isOwnSan)) return '403';
  if (hasClientId(requester) && binding === 'san' && asked.dns !== OWN && made !== OWN) return '403';
  const cn = template === 'subject' ? id : requester === 'gssapi' ? OWN : asked.cn;
  if (template === 'patterns' && !(cn === id && [id, `x.${id}`].includes(asked.dns))) return '400';
  const added = (template === 'added' || template === 'label') && made !== asked.dns ? [made] : [];
  const sans = [asked.dns, ...added].map((name) => `DNS:${name}`).join(', ');
  return `200 CN=${cn}${template === 'subject' ? ',O=Made' : ''} [${sans}]`;
}

const key = makeKey();
let requesters: EveryRequester;
beforeAll(async () => {
  requesters = await EveryRequester.make();
});
afterAll(() => requesters.end());

/** The status; with it, of what was issued, its names. */
async function answer({
  requester,
  label,
  methods,
  binding,
  mtlsSubject,
  template,
  devices,
  asked,
}: Row): Promise<string> {
  const issued = await requesters.send({
    requester,
    label,
    names: { mtls_subject: mtlsSubject, ...TEMPLATES[template] },
    settings: {
      auth: methods === 'all' ? {} : { methods: [methods] },
      devices: devices === 'off' ? 'off' : 'required',
    },
    binding,
    csr: buildCsr(key, { subject: commonName(asked.cn), attributes: [extensionRequest(san(dns(asked.dns)))] }),
  });
  if (typeof issued === 'number') return String(issued);
  return `200 ${formatName(issued.subject)} [${issued.subjectAltNames.map(formatGeneralName).join(', ')}]`;
}

/** A setting that says nothing to this requester is not varied. */
function* rowsOf(requester: Requester, devices: Row['devices']): Generator<Row> {
  const bindings = hasClientId(requester) ? (['off', 'cn', 'san'] as const) : (['off'] as const);
  const mtlsSubjects = isByCertificate(requester) ? (['any', 'same', 'auto'] as const) : (['auto'] as const);
  const templates = ['none', 'subject', 'added', 'label', 'patterns'] as const;
  const names = [[OWN, OWN] as const, [OTHER, OTHER] as const, [OWN, DERIVED] as const];
  for (const label of LABELS) {
    for (const template of templates)
      for (const binding of bindings)
        for (const mtlsSubject of mtlsSubjects)
          for (const [cn, san] of names)
            yield {
              requester,
              label,
              methods: 'all',
              binding,
              mtlsSubject,
              template,
              devices,
              asked: { cn, dns: san },
            };
    const asked = { cn: OWN, dns: OWN };
    for (const methods of ['otp', 'ldap', 'jwt'] as const)
      yield { requester, label, methods, binding: 'cn', mtlsSubject: 'any', template: 'none', devices, asked };
  }
}

const inWords = ({ label, methods, binding, mtlsSubject, template, asked }: Row, outcome: string): string =>
  `${label}, methods ${methods}, bind_client_id ${binding}, mtls_subject ${mtlsSubject}, template ${template}, ` +
  `asks for ${asked.cn} and ${asked.dns}: ${outcome}`;

describe.each(['off', 'registered', 'not registered'] as const)('the matrix, devices: %s', (devices) => {
  beforeAll(() => requesters.register(devices === 'registered' ? 'everybody' : 'nobody'));

  test.each(REQUESTERS)('%s: each status, and the exact names', async (requester) => {
    const rows = [...rowsOf(requester, devices)];
    const answers: string[] = [];
    for (const row of rows) answers.push(inWords(row, await answer(row)));
    expect(answers).toEqual(rows.map((row) => inWords(row, oracle(row))));
  });
});
