/** Who may administrate, and that each of them stands there once (contract §10). */
import { parseDistinguishedName } from '../../pki/x509/name.ts';
import { foldedName } from '../../pki/x509/name-matching.ts';
import type { AdminRole } from '../admin-roles.ts';
import type { Warning } from '../problem.ts';
import type { Config } from '../schema.ts';
import type { Finding } from './finding.ts';
import { readTimestamp } from '../../timestamp.ts';

type Client = Config['admin']['clients'][number];

export function* adminChecks({ admin }: Config): Generator<Finding> {
  const { tls, bearer_token } = admin;
  if (tls.mode === 'none' && !bearer_token.enabled)
    yield {
      key: 'admin',
      message:
        'nobody could authenticate (admin.tls.mode = "required" or "optional" with trust_anchors, or admin.bearer_token.enabled = true with tokens)',
      about: ['admin.tls.mode', 'admin.tls.trust_anchors', 'admin.bearer_token.enabled'],
    };
  if (tls.mode !== 'none' && tls.trust_anchors === undefined)
    yield {
      key: 'admin.tls.trust_anchors',
      message: `is missing, and admin.tls.mode is "${tls.mode}" (a path, relative to the configuration file)`,
      about: ['admin.tls.mode'],
    };
  if (bearer_token.enabled && bearer_token.tokens.length === 0)
    yield {
      key: 'admin.bearer_token.tokens',
      message: 'is empty, and admin.bearer_token.enabled is true (a list with at least one token)',
      about: ['admin.bearer_token.enabled'],
    };
  yield* tokenChecks(bearer_token.tokens);
  yield* clientChecks(admin.clients);
}

function* tokenChecks(tokens: Config['admin']['bearer_token']['tokens']): Generator<Finding> {
  const seen = new Set<string>();
  for (const [index, { token_hash }] of tokens.entries()) {
    const hash = token_hash.toLowerCase();
    const key = `admin.bearer_token.tokens[${index}].token_hash`;
    // Whose call it is could not be told.
    if (seen.has(hash)) yield { key, message: 'is there twice (a token for each entry)' };
    seen.add(hash);
  }
}

function* clientChecks(clients: readonly Client[]): Generator<Finding> {
  const seen = new Set<string>();
  for (const [index, client] of clients.entries()) {
    const key = `admin.clients[${index}]`;
    const { subject, issuer, fingerprint } = client;
    const about = [`${key}.subject`, `${key}.issuer`, `${key}.fingerprint`];
    const named = [subject, issuer].filter((one) => one !== undefined).length;
    if (fingerprint === undefined ? named !== 2 : named !== 0) {
      yield { key, message: `names ${describe(client)} (subject and issuer, or fingerprint)`, about };
      continue;
    }
    const who = identityOf(client);
    if (who !== undefined && seen.has(who))
      yield { key, message: 'is there twice (an entry for each administrator)', about };
    if (who !== undefined) seen.add(who);
  }
}

function describe({ subject, issuer, fingerprint }: Client): string {
  const given = Object.entries({ subject, issuer, fingerprint }).flatMap(([name, value]) =>
    value === undefined ? [] : [name],
  );
  return given.length === 0 ? 'nobody' : `${given.join(' and ')}${given.length === 1 ? ' alone' : ''}`;
}

/** The same for entries of one administrator; undefined where a name is none, which is a problem of its own. */
function identityOf({ subject = '', issuer = '', fingerprint }: Client): string | undefined {
  if (fingerprint !== undefined) return fingerprint.toLowerCase();
  try {
    return [subject, issuer].map((name) => foldedName(parseDistinguishedName(name))).join(' ');
  } catch {
    return undefined;
  }
}

export function* adminWarnings({ admin }: Config): Generator<Warning> {
  if (admin.tls.mode === 'required_for_reenroll')
    yield {
      key: 'admin.tls.mode',
      message:
        'is "required_for_reenroll", which means "optional" here: nobody re-enrolls on this listener ("optional")',
    };
  if (admin.tls.mode === 'none' && admin.clients.length > 0)
    yield {
      key: 'admin.clients',
      message: 'has no effect while admin.tls.mode is "none" ("required" or "optional")',
    };
}

/** Tokens that nobody can come in with any more. @param now milliseconds since the epoch */
export function* endedTokens({ admin: { bearer_token } }: Config, now: number): Generator<Warning> {
  if (!bearer_token.enabled) return;
  for (const [index, { description, not_after }] of bearer_token.tokens.entries()) {
    const end = not_after === undefined ? undefined : readTimestamp(not_after);
    if (end !== undefined && end <= now)
      yield {
        key: `admin.bearer_token.tokens[${index}].not_after`,
        message: `has passed: the token of "${description}" is not taken any more (a new token, or no entry)`,
      };
  }
}

/** A list of roles, and the key where it stands. */
interface RoleList {
  readonly key: string;
  readonly roles: readonly AdminRole[] | undefined;
  /** Who has them. */
  readonly holder: string;
}

/** Every place that says which roles somebody has. */
export function* roleLists({ admin }: Config): Generator<RoleList> {
  if (admin.tls.mode !== 'none')
    yield {
      key: 'admin.tls.default_roles',
      roles: admin.tls.default_roles,
      holder: 'whoever has a certificate that admin.clients does not name',
    };
  for (const [index, { roles }] of admin.clients.entries())
    yield { key: `admin.clients[${index}].roles`, roles, holder: 'this administrator' };
  if (!admin.bearer_token.enabled) return;
  for (const [index, { roles }] of admin.bearer_token.tokens.entries())
    yield { key: `admin.bearer_token.tokens[${index}].roles`, roles, holder: "the token's holder" };
}
