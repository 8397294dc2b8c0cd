/** Enrollment profiles of the tests' own, made over REST: any key, and the CSR's names kept. */
import { createHash } from 'node:crypto';

export interface DogtagProfile {
  /** Carries a hash of the content, so that a tree from an older run never serves another profile of that name. */
  readonly id: string;
  /** As `POST /ca/rest/profiles/raw` takes it. */
  readonly raw: string;
}

interface Rule {
  readonly defaults: string;
  readonly constraint?: string;
  readonly defaultParams?: Readonly<Record<string, string>>;
  readonly constraintParams?: Readonly<Record<string, string>>;
}

const KEY_USAGES = {
  keyUsageCritical: 'true',
  keyUsageDigitalSignature: 'true',
  keyUsageNonRepudiation: 'false',
  keyUsageDataEncipherment: 'false',
  keyUsageKeyEncipherment: 'true',
  keyUsageKeyAgreement: 'false',
  keyUsageKeyCertSign: 'false',
  keyUsageCrlSign: 'false',
  keyUsageEncipherOnly: 'false',
  keyUsageDecipherOnly: 'false',
};

/** What `[ca.profile]` has to ask for, as it is what these profiles (and the stand-in's) give. */
export const ASKED_PROFILE = {
  key_usage: ['digitalSignature', 'keyEncipherment'],
  extended_key_usage: ['clientAuth', 'serverAuth'],
} as const;

const RULES: readonly Rule[] = [
  {
    defaults: 'userSubjectNameDefaultImpl',
    constraint: 'subjectNameConstraintImpl',
    defaultParams: { name: '' },
    constraintParams: { pattern: '.*CN=.*', accept: 'true' },
  },
  {
    defaults: 'validityDefaultImpl',
    constraint: 'validityConstraintImpl',
    defaultParams: { range: '180', startTime: '0' },
    constraintParams: { range: '365', notBeforeCheck: 'false', notAfterCheck: 'false' },
  },
  {
    defaults: 'userKeyDefaultImpl',
    constraint: 'keyConstraintImpl',
    constraintParams: { keyType: '-', keyParameters: '2048,3072,4096,nistp256,nistp384,nistp521' },
  },
  { defaults: 'authorityKeyIdentifierExtDefaultImpl' },
  { defaults: 'keyUsageExtDefaultImpl', defaultParams: KEY_USAGES },
  {
    defaults: 'extendedKeyUsageExtDefaultImpl',
    defaultParams: { exKeyUsageCritical: 'false', exKeyUsageOIDs: '1.3.6.1.5.5.7.3.2,1.3.6.1.5.5.7.3.1' },
  },
  { defaults: 'userExtensionDefaultImpl', defaultParams: { userExtOID: '2.5.29.17' } },
  { defaults: 'signingAlgDefaultImpl', defaultParams: { signingAlg: '-' } },
];

function rule(name: string, { defaults, constraint, defaultParams, constraintParams }: Rule): string[] {
  const params = (kind: string, values: Readonly<Record<string, string>> = {}): string[] =>
    Object.entries(values).map(([key, value]) => `${name}.${kind}.params.${key}=${value}`);
  return [
    `${name}.default.class_id=${defaults}`,
    `${name}.default.name=${defaults}`,
    ...params('default', defaultParams),
    `${name}.constraint.class_id=${constraint ?? 'noConstraintImpl'}`,
    `${name}.constraint.name=${constraint ?? 'No Constraint'}`,
    ...params('constraint', constraintParams),
  ];
}

/** @param authenticator `AgentCertAuth` issues at once to the agent's TLS certificate; without one, requests queue */
function profile(prefix: string, authenticator: string | undefined): DogtagProfile {
  const content = [
    'classId=caEnrollImpl',
    `name=${prefix}`,
    `desc=${prefix}, for tests`,
    'visible=false',
    'enable=false',
    ...(authenticator === undefined ? [] : [`auth.instance_id=${authenticator}`]),
    'input.list=i1,i2',
    'input.i1.class_id=certReqInputImpl',
    'input.i2.class_id=submitterInfoInputImpl',
    'output.list=o1',
    'output.o1.class_id=certOutputImpl',
    'policyset.list=set',
    `policyset.set.list=${RULES.map((_, index) => index + 1).join(',')}`,
    ...RULES.flatMap((text, index) => rule(`policyset.set.${index + 1}`, text)),
  ].join('\n');
  const id = `${prefix}${createHash('sha256').update(content).digest('hex').slice(0, 8)}`;
  return { id, raw: `profileId=${id}\n${content}\n` };
}

/** Issues at once to an agent. */
export const AUTO = profile('estuaryAuto', 'AgentCertAuth');
/** Leaves every request to an agent's decision. */
export const QUEUE = profile('estuaryQueue', undefined);
