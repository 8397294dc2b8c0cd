/** Checks on administrators: each entry identifies one certificate or token, and each of these has one entry. */
import { InputError } from '../../pki/input-error.ts';
import { clientHolder, clientMatch, tokenHolder, type AdminClient, type Grant } from '../admin-entries.ts';
import { labelsOf } from '../labels.ts';
import { type AdminRole, DEFAULT_ROLES } from '../vocabulary.ts';
import { type Finding, finding, type Warning } from '../problem.ts';
import type { Config } from '../schema.ts';
import { readTimestamp } from '../../timestamp.ts';

export function* adminChecks(config: Config): Generator<Finding> {
  const { admin } = config;
  const { tls, bearer_token } = admin;
  if (tls.mode === 'none' && !bearer_token.enabled && admin.oidc === undefined)
    yield finding(
      'admin',
      'nobody could authenticate (admin.tls.mode = "required" or "optional" with trust_anchors, or admin.bearer_token.enabled = true with tokens, or [admin.oidc])',
      'admin.tls.mode',
      'admin.tls.trust_anchors',
      'admin.bearer_token.enabled',
      'admin.oidc',
    );
  if (tls.mode !== 'none' && tls.trust_anchors === undefined)
    yield finding(
      'admin.tls.trust_anchors',
      `is missing, and admin.tls.mode is "${tls.mode}" (a path, relative to the configuration file)`,
      'admin.tls.mode',
    );
  if (bearer_token.enabled && bearer_token.tokens.length === 0)
    yield finding(
      'admin.bearer_token.tokens',
      'is empty, and admin.bearer_token.enabled is true (a list with at least one token)',
      'admin.bearer_token.enabled',
    );
  yield* tokenChecks(bearer_token.tokens);
  yield* clientChecks(admin.clients);
  yield* oidcChecks(admin);
  const known = labelsOf(config).map(({ table }) => table.label);
  const entries = [
    ...admin.clients.map((entry, index) => [`admin.clients[${index}]`, entry] as const),
    ...bearer_token.tokens.map((entry, index) => [`admin.bearer_token.tokens[${index}]`, entry] as const),
    ...Object.entries(admin.oidc?.roles ?? {}).map(([value, entry]) => [`admin.oidc.roles.${value}`, entry] as const),
  ];
  for (const [key, entry] of entries) yield* limitChecks(key, entry, known);
}

function* oidcChecks({ oidc, tls }: Config['admin']): Generator<Finding> {
  if (oidc === undefined) return;
  if (tls.mode === 'required')
    yield finding(
      'admin.oidc',
      'has no effect while admin.tls.mode is "required": only certificates count then ("optional" or "none")',
      'admin.tls.mode',
    );
  if (!oidc.scopes.includes('openid')) yield finding('admin.oidc.scopes', 'lacks "openid" (a list with "openid")');
  if (Object.keys(oidc.roles).length === 0)
    yield finding('admin.oidc.roles', 'is empty: nobody would have a role (values of roles_claim with roles)');
}

/** Only roles whose calls are about records of labels can be limited to labels. */
function* limitChecks(
  key: string,
  { roles = DEFAULT_ROLES, labels }: Partial<Grant>,
  known: readonly string[],
): Generator<Finding> {
  if (labels === undefined) return;
  const unlimited = roles.filter((role) => role === 'admin' || role === 'operator');
  if (unlimited.length > 0)
    yield finding(
      `${key}.labels`,
      `cannot limit ${unlimited.map((role) => `"${role}"`).join(' and ')} to labels (roles = ["ra"], ["auditor"] or both)`,
      `${key}.roles`,
    );
  for (const label of labels)
    if (!known.includes(label))
      yield finding(`${key}.labels`, `"${label}" is not a label (${known.join(', ')})`, 'ca', 'label');
}

function* tokenChecks(tokens: Config['admin']['bearer_token']['tokens']): Generator<Finding> {
  const seen = new Set<string>();
  for (const [index, { token_hash }] of tokens.entries()) {
    const hash = token_hash.toLowerCase();
    const key = `admin.bearer_token.tokens[${index}].token_hash`;
    // The caller would be ambiguous.
    if (seen.has(hash)) yield finding(key, 'occurs twice (a different token for each entry)');
    seen.add(hash);
  }
}

function* clientChecks(clients: readonly AdminClient[]): Generator<Finding> {
  const seen = new Set<string>();
  for (const [index, client] of clients.entries()) {
    const key = `admin.clients[${index}]`;
    const about = WAYS.map((way) => `${key}.${way}`);
    const given = WAYS.filter((way) => client[way] !== undefined).join(' and ');
    if (!['subject and issuer', 'fingerprint', 'spki_sha256'].includes(given)) {
      const what = given === '' ? 'does not identify a certificate' : `has ${given}`;
      yield finding(key, `${what} (subject with issuer, or fingerprint, or spki_sha256)`, ...about);
      continue;
    }
    const match = matchOf(client);
    if (match === undefined) continue;
    if (seen.has(match))
      yield finding(
        key,
        'identifies the same certificate as an earlier entry (one entry for each certificate)',
        ...about,
      );
    seen.add(match);
  }
}

const WAYS = ['subject', 'issuer', 'fingerprint', 'spki_sha256'] as const;

/** undefined: a name is invalid, which is reported at its key. */
function matchOf(client: AdminClient): string | undefined {
  try {
    return clientMatch(client);
  } catch (error) {
    if (error instanceof InputError) return undefined;
    throw error;
  }
}

export function* adminWarnings({ admin }: Config): Generator<Warning> {
  if (admin.tls.mode === 'required_for_reenroll')
    yield finding(
      'admin.tls.mode',
      'is "required_for_reenroll", which means "optional" here: nobody re-enrolls on this listener ("optional")',
    );
  if (admin.tls.mode === 'none' && admin.clients.length > 0)
    yield finding('admin.clients', 'has no effect while admin.tls.mode is "none" ("required" or "optional")');
  for (const [index, { fingerprint }] of admin.clients.entries())
    if (fingerprint !== undefined)
      yield finding(
        `admin.clients[${index}].fingerprint`,
        'is for one certificate: after a renewal, the administrator needs a new entry (subject with issuer, or spki_sha256 if the key stays the same; or a new entry with the same name)',
      );
}

export function* expiredTokens({ admin: { bearer_token } }: Config, now: number): Generator<Warning> {
  if (!bearer_token.enabled) return;
  for (const [index, { name, description, not_after }] of bearer_token.tokens.entries()) {
    const end = not_after === undefined ? undefined : readTimestamp(not_after);
    if (end !== undefined && end <= now)
      yield finding(
        `admin.bearer_token.tokens[${index}].not_after`,
        `has passed: the token of "${name ?? description}" has expired (create a new token, or remove the entry)`,
      );
  }
}

/** A configuration key that grants roles. */
interface RoleList {
  readonly key: string;
  readonly roles: readonly AdminRole[] | undefined;
  /** Their holder, for messages. */
  readonly who: string;
  /** Equal for the entries of one administrator. */
  readonly administrator: string;
}

/** Every key that grants roles. */
export function* roleLists({ admin: { tls, clients, bearer_token } }: Config): Generator<RoleList> {
  // If there are entries, default_roles defaults to nothing.
  if (tls.mode !== 'none' && (tls.default_roles !== undefined || clients.length === 0))
    yield {
      key: 'admin.tls.default_roles',
      roles: tls.default_roles,
      who: 'the holder of a certificate that admin.clients does not name',
      administrator: '',
    };
  for (const [index, client] of clients.entries())
    yield {
      key: `admin.clients[${index}].roles`,
      roles: client.roles,
      who: client.name === undefined ? 'this administrator' : `"${client.name}"`,
      administrator: client.name === undefined ? `entry:${index}` : clientHolder(client),
    };
  if (!bearer_token.enabled) return;
  for (const [index, token] of bearer_token.tokens.entries())
    yield {
      key: `admin.bearer_token.tokens[${index}].roles`,
      roles: token.roles,
      who: `"${token.name ?? token.description}"`,
      administrator: tokenHolder(token),
    };
}
