/**
 * The rules of docs/guides/names.md, docs/guides/names.md, docs/guides/devices.md, docs/guides/cmc.md, docs/guides/approval.md, docs/guides/approval.md and docs/reference/admin-api.md,
 * stated once more without any code of the server: what each requester and administrator may get, after all that happened so far.
 */

export const LABELS = ['devices', 'lab', 'shop', 'desk', 'plant', 'hall', 'vault'] as const;
export type Label = (typeof LABELS)[number];
type CaName = 'devices' | 'lab';

interface LabelRules {
  readonly ca: CaName;
  readonly methods: readonly ('mtls' | 'otp' | 'ldap' | 'jwt' | 'cmc')[];
  readonly devices?: 'required';
  readonly approval?: 'manual';
}
/** One-time passwords and the directory both use Basic credentials. */
const MOST = ['mtls', 'otp', 'jwt', 'cmc'] as const;
/** `lab` has several labels on its key, so a certificate counts at the label only that the store recorded it for. */
export const RULES: Readonly<Record<Label, LabelRules>> = {
  devices: { ca: 'devices', methods: MOST },
  lab: { ca: 'lab', methods: MOST },
  shop: { ca: 'lab', methods: ['mtls', 'ldap'] },
  desk: { ca: 'lab', methods: ['otp', 'cmc'] },
  plant: { ca: 'lab', methods: MOST, devices: 'required' },
  hall: { ca: 'lab', methods: ['mtls', 'ldap', 'jwt', 'cmc'], devices: 'required' },
  vault: { ca: 'lab', methods: MOST, devices: 'required', approval: 'manual' },
};

/** A subject (RFC 4514) and DNS names. */
export interface Names {
  readonly subject: string;
  readonly sans: readonly string[];
}

export interface DeviceRef {
  readonly id: string;
  /** The registration that a certificate was recorded with. Without it, `match` or the ID finds the device. */
  readonly registration?: number;
}

export interface TokenFacts {
  readonly kind: 'token';
  readonly id: string;
  readonly clientId: string;
  readonly uses: number;
  readonly limitedTo?: Label;
}
/** A password of the directory, or a token of the identity provider. */
export interface NamedFacts {
  readonly kind: 'named';
  readonly method: 'ldap' | 'jwt';
  /** As the directory or the provider gives it. */
  readonly clientId: string;
  /** The password is wrong, or the token is not for this server. */
  readonly isWrong?: true;
}
export interface SecretFacts {
  readonly kind: 'secret';
  readonly identification: string;
  readonly labels: readonly Label[];
}
export interface CertificateFacts {
  readonly kind: 'certificate';
  /** The same for both encodings of the certificate. */
  readonly id: string;
  readonly own: Names;
  /** The key that signed it: a CA of the server, a trusted manufacturer, another manufacturer's CA with the first one's name, an untrusted CA. */
  readonly issuer: CaName | 'maker' | 'impostor' | 'rival';
  /** The label that the store recorded it for. */
  readonly home?: Label;
  readonly device?: DeviceRef;
  /** The registration that its record names, although its label does not require devices. Gives no right. */
  readonly history?: DeviceRef;
  /** A registration authority, of its CA or of the configuration. */
  readonly ra?: 'own' | 'configured';
  /** The requester that it was issued to. */
  readonly issuedTo?: string;
  /** Of a proxy that forwards certificates. It authenticates nobody, although a trusted CA issued it. */
  readonly isProxy?: true;
}
export type Facts = TokenFacts | NamedFacts | SecretFacts | CertificateFacts;

export type Way = 'simpleenroll' | 'serverkeygen' | 'simplereenroll' | 'fullcmc';

export interface Asked {
  readonly who: Facts;
  readonly way: Way;
  readonly label: Label;
  readonly names: Names;
  /** Identifies the requested key. */
  readonly key: string;
  /** The client of a TLS connection that carries another sender's CMC message. */
  readonly carrier?: CertificateFacts;
  /** How the certificate arrives, if not in the handshake: a header of a proxy, or of somebody who is not a proxy. */
  readonly header?: 'of a proxy' | 'forged';
}

export type OutcomeKind = 'issued' | 'queued' | 'refused';
export interface Expected {
  /** What may happen. Several: the rules leave it open. */
  readonly outcomes: readonly OutcomeKind[];
  /** The certificate that is issued must be this one. */
  readonly certificate?: string | undefined;
  /** The device in whose record and history a new certificate appears. */
  readonly device?: DeviceRef | undefined;
}
const REFUSED: Expected = { outcomes: ['refused'] };

/** A request in the queue of `vault`. */
export interface Queued {
  readonly id: string;
  readonly asked: Asked;
  /** The number of approvals that was configured when it was queued. */
  readonly required: number;
  readonly device: DeviceRef | undefined;
  readonly approvedBy: Set<string>;
  state: 'pending' | 'approved' | 'rejected';
  certificate?: string;
}

export type Role = 'admin' | 'ra' | 'auditor' | 'operator';
export interface AdminFacts {
  /** undefined: no entry of the configuration names this certificate. */
  readonly name: string | undefined;
  readonly roles: readonly Role[];
}
const has = ({ roles }: AdminFacts, ...needed: readonly Role[]): boolean =>
  roles.includes('admin') || needed.some((role) => roles.includes(role));

/** Calls that change nothing, and the roles that may make them. */
export const CALLS: readonly (readonly [method: string, path: string, roles: readonly Role[]])[] = [
  ['GET', '/admin/otp', ['ra']],
  ['GET', '/admin/devices', ['ra', 'auditor']],
  ['GET', '/admin/certificates', ['ra', 'auditor']],
  ['GET', '/admin/requests', ['ra', 'auditor']],
  ['GET', '/admin/audit', ['auditor']],
  ['GET', '/admin/lockouts', ['operator']],
  ['POST', '/admin/reload?dry_run=true', ['operator']],
];
export const mayCall = (who: AdminFacts, roles: readonly Role[]): boolean => has(who, ...roles);

const isSubset = (some: readonly string[], all: readonly string[]): boolean =>
  some.every((entry) => all.includes(entry));
const isSame = (a: Names, b: Names): boolean =>
  a.subject === b.subject && isSubset(a.sans, b.sans) && isSubset(b.sans, a.sans);

/** Equal for those that are one requester. */
export function requesterOf(who: Facts): string {
  switch (who.kind) {
    case 'token':
      return `token ${who.id}`;
    case 'named':
      return `${who.method} ${who.clientId}`;
    case 'secret':
      return `secret ${who.identification}`;
    case 'certificate':
      return `${who.issuer}: ${who.own.subject} ${who.own.sans.toSorted().join()}`;
  }
}

/** Equal for requests that are one: the server generates the key of serverkeygen. */
const requestOf = ({ who, way, label, names, key }: Asked): string =>
  JSON.stringify([requesterOf(who), way, label, names.subject, names.sans.toSorted(), way === 'serverkeygen' || key]);

export class Rules {
  /** `[[label]] approvals` of `vault`, or that the configuration has no such label. */
  vault: 1 | 2 | 'absent' = 2;
  readonly queue: Queued[] = [];
  readonly #disabled: Set<string>;
  readonly #registrations: ReadonlyMap<string, number>;
  readonly #revoked: Set<string>;
  readonly #uses = new Map<string, number>();
  /** The certificates that tokens obtained, by request. */
  readonly #obtained = new Map<string, string>();

  /** @param registrations how often each device was registered so far: those with an ID that is missing here are no devices */
  constructor(
    registrations: ReadonlyMap<string, number>,
    { disabled, revoked }: { readonly disabled: Iterable<string>; readonly revoked: Iterable<string> },
  ) {
    this.#registrations = registrations;
    this.#disabled = new Set(disabled);
    this.#revoked = new Set(revoked);
  }

  // --- what happened ---------------------------------------------------------------------------------------------

  enable(device: string, enabled: boolean): void {
    if (enabled) this.#disabled.delete(device);
    else this.#disabled.add(device);
  }

  revoked(certificate: string): void {
    this.#revoked.add(certificate);
  }

  queued(id: string, asked: Asked): void {
    this.#take(asked.who);
    const required = this.vault === 1 ? 1 : 2;
    const device = deviceOf(asked.who, this.#registrations);
    this.queue.push({ id, asked, required, device, approvedBy: new Set(), state: 'pending' });
  }

  issued(asked: Asked, certificate: string): void {
    if (RULES[asked.label].approval === 'manual') {
      const entry = this.entryOf(asked);
      if (entry !== undefined) entry.certificate = certificate;
      return;
    }
    if (asked.who.kind !== 'token') return;
    if (!this.#obtained.has(requestOf(asked))) this.#take(asked.who);
    this.#obtained.set(requestOf(asked), certificate);
  }

  #take(who: Facts): void {
    if (who.kind === 'token') this.#uses.set(who.id, (this.#uses.get(who.id) ?? 0) + 1);
  }

  /** What was queued last for this request. */
  entryOf(asked: Asked): Queued | undefined {
    const request = requestOf(asked);
    return this.queue.findLast((entry) => requestOf(entry.asked) === request);
  }

  // --- enrollment ------------------------------------------------------------------------------------------------

  ask(asked: Asked): Expected {
    const { who, label } = asked;
    if (asked.header === 'forged') return REFUSED;
    const granted = who.kind === 'certificate' ? this.#toCertificate(asked, who) : toSecret(asked, who);
    if (granted === 'never' || (label === 'vault' && this.vault === 'absent')) return REFUSED;
    const isRequired = RULES[label].devices !== undefined;
    const device = isRequired ? deviceOf(who, this.#registrations) : historyOf(who, this.#registrations);
    if (isRequired && !this.#isInForce(device)) return REFUSED;
    const expected = RULES[label].approval === 'manual' ? this.#fromQueue(asked) : this.#atOnce(asked);
    const outcomes = granted === 'may' ? [...expected.outcomes, 'refused' as const] : expected.outcomes;
    return { ...expected, outcomes, device };
  }

  #atOnce(asked: Asked): Expected {
    const known = this.#obtained.get(requestOf(asked));
    if (known === undefined) return this.#hasUse(asked.who) ? { outcomes: ['issued'] } : REFUSED;
    // A repeat. The key of serverkeygen is sent once.
    if (asked.way === 'serverkeygen' || this.#revoked.has(known)) return REFUSED;
    return { outcomes: ['issued'], certificate: known };
  }

  #fromQueue(asked: Asked): Expected {
    const entry = this.entryOf(asked);
    const { who, way } = asked;
    const fresh: Expected = this.#hasUse(who) ? { outcomes: ['queued'] } : REFUSED;
    if (entry === undefined) return fresh;
    if (entry.state === 'rejected' || !this.#isInForce(entry.device)) return REFUSED;
    if (entry.certificate === undefined) return { outcomes: [entry.state === 'approved' ? 'issued' : 'queued'] };
    const isRenewed = who.kind === 'certificate' && who.id === entry.certificate;
    if (isRenewed || this.#revoked.has(entry.certificate)) return fresh;
    return way === 'serverkeygen' ? REFUSED : { outcomes: ['issued'], certificate: entry.certificate };
  }

  #hasUse(who: Facts): boolean {
    return who.kind !== 'token' || (this.#uses.get(who.id) ?? 0) < who.uses;
  }

  #isInForce(device: DeviceRef | undefined): boolean {
    if (device === undefined || this.#disabled.has(device.id)) return false;
    const registration = this.#registrations.get(device.id);
    return registration !== undefined && (device.registration ?? registration) === registration;
  }

  /** A certificate of the addressed CA that counts at the label. */
  #isOwn({ issuer, home }: CertificateFacts, label: Label): boolean {
    return issuer === RULES[label].ca && (label === 'devices' || home === label);
  }

  /** Whether a certificate authenticates for enrollments. The configured registration authority does so for CMC messages only. */
  #counts(who: CertificateFacts, label: Label): boolean {
    if (this.#revoked.has(who.id) || who.isProxy || !RULES[label].methods.includes('mtls')) return false;
    return this.#isOwn(who, label) || who.issuer === 'maker' || who.issuer === 'impostor';
  }

  #isRa(who: CertificateFacts, label: Label): boolean {
    if (who.ra === 'configured') return !this.#revoked.has(who.id) && RULES[label].methods.includes('mtls');
    return who.ra === 'own' && this.#counts(who, label);
  }

  #toCertificate({ way, label, names, carrier }: Asked, who: CertificateFacts): 'must' | 'may' | 'never' {
    const { own } = who;
    if (way === 'simplereenroll')
      return !this.#revoked.has(who.id) && this.#isOwn(who, label) && isSame(names, own) ? 'must' : 'never';
    if (way === 'fullcmc') return this.#byMessage(names, label, who, carrier);
    if (!this.#counts(who, label)) return 'never';
    // mtls_subject = "auto"
    if (!this.#isOwn(who, label)) return 'must';
    return names.subject === own.subject && isSubset(names.sans, own.sans) ? 'must' : 'never';
  }

  #byMessage(
    names: Names,
    label: Label,
    who: CertificateFacts,
    carrier: CertificateFacts | undefined,
  ): 'must' | 'may' | 'never' {
    const isRa = this.#isRa(who, label);
    if (!isRa && !this.#counts(who, label)) return 'never';
    const isCarried = carrier !== undefined && carrier.id !== who.id;
    if (isCarried && this.#counts(carrier, label) && !this.#isRa(carrier, label)) {
      if (requesterOf(carrier) !== requesterOf(who)) return 'never';
    }
    if (!isRa && names.subject !== who.own.subject) return 'never';
    if (!isRa && this.#isOwn(who, label) && !isSame(names, who.own))
      return isSubset(names.sans, who.own.sans) ? 'may' : 'never';
    // A connection with a certificate that does not count may be refused.
    return isCarried ? 'may' : 'must';
  }

  // --- the queue -------------------------------------------------------------------------------------------------

  /** The answer to an administrator's decision. */
  decide(who: AdminFacts, entry: Queued, decision: 'approve' | 'reject'): 200 | 403 | 409 {
    if (!has(who, 'ra')) return 403;
    if (entry.state !== 'pending') return 409;
    if (decision === 'reject') return 200;
    const required = Math.max(entry.required, this.vault === 'absent' ? 0 : this.vault);
    if (required > 1 && who.name === undefined) return 403;
    if (!this.#isInForce(entry.device)) return 409;
    return who.name !== undefined && entry.approvedBy.has(who.name) ? 409 : 200;
  }

  decided(who: AdminFacts, entry: Queued, decision: 'approve' | 'reject'): void {
    if (decision === 'reject') entry.state = 'rejected';
    else entry.approvedBy.add(who.name ?? '');
    const required = Math.max(entry.required, this.vault === 'absent' ? 0 : this.vault);
    if (entry.state === 'pending' && entry.approvedBy.size >= required) entry.state = 'approved';
  }

  /** queryPending: by the requester, or a registration authority. */
  collect(who: CertificateFacts | SecretFacts, entry: Queued): Expected {
    if (this.vault === 'absent') return REFUSED;
    const isRa = who.kind === 'certificate' && this.#isRa(who, 'vault');
    const isKnown = who.kind === 'certificate' ? this.#counts(who, 'vault') : isSecretKnown(who, 'vault');
    if (!isRa && !(isKnown && requesterOf(who) === requesterOf(entry.asked.who))) return REFUSED;
    if (entry.state !== 'approved') return { outcomes: [entry.state === 'pending' ? 'queued' : 'refused'] };
    if (entry.certificate !== undefined) return { outcomes: ['issued'], certificate: entry.certificate };
    return this.#isInForce(entry.device) ? { outcomes: ['issued'], device: entry.device } : REFUSED;
  }

  // --- revocation ------------------------------------------------------------------------------------------------

  /** revokeRequest at the label of the certificate. */
  mayRevoke(who: CertificateFacts | SecretFacts, victim: CertificateFacts): boolean {
    const label = victim.home;
    if (label === undefined || this.#revoked.has(victim.id)) return false;
    if (label === 'vault' && this.vault === 'absent') return false;
    if (who.kind === 'secret') return isSecretKnown(who, label) && victim.issuedTo === requesterOf(who);
    return this.#isRa(who, label) || (this.#counts(who, label) && requesterOf(who) === requesterOf(victim));
  }

  revokeAsAdministrator(who: AdminFacts, victim: CertificateFacts): 200 | 403 | 409 {
    if (!has(who, 'ra')) return 403;
    return this.#revoked.has(victim.id) ? 409 : 200;
  }
}

const nameOf = (who: TokenFacts | NamedFacts | SecretFacts): string =>
  who.kind === 'secret' ? who.identification : who.clientId;

function deviceOf(who: Facts, registrations: ReadonlyMap<string, number>): DeviceRef | undefined {
  const device = who.kind === 'certificate' ? who.device : { id: nameOf(who) };
  if (device === undefined || device.registration !== undefined) return device;
  const registration = registrations.get(device.id);
  return registration === undefined ? undefined : { ...device, registration };
}

/** The device in whose history a certificate appears that is issued at a label without `devices = "required"`. */
function historyOf(who: Facts, registrations: ReadonlyMap<string, number>): DeviceRef | undefined {
  const isRecorded = who.kind === 'certificate' && who.history !== undefined;
  const device = isRecorded ? who.history : deviceOf(who, registrations);
  return device?.registration === registrations.get(device?.id ?? '') ? device : undefined;
}

const isSecretKnown = ({ labels }: SecretFacts, label: Label): boolean =>
  labels.includes(label) && RULES[label].methods.includes('cmc');

/** `otp.bind_client_id = "cn"`, and `bind` of the directory and the identity provider. */
function toSecret({ way, label, names }: Asked, who: TokenFacts | NamedFacts | SecretFacts): 'must' | 'never' {
  if (who.kind === 'secret' && (way !== 'fullcmc' || !isSecretKnown(who, label))) return 'never';
  if (who.kind !== 'secret') {
    if (way === 'fullcmc' || way === 'simplereenroll') return 'never';
    const method = who.kind === 'token' ? 'otp' : who.method;
    if (!RULES[label].methods.includes(method) || (who.kind === 'named' && who.isWrong)) return 'never';
  }
  if (who.kind === 'token' && who.limitedTo !== undefined && who.limitedTo !== label) return 'never';
  const name = nameOf(who);
  return names.subject === `CN=${name}` && isSubset(names.sans, [name]) ? 'must' : 'never';
}
