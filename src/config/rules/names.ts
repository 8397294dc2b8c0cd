/** Settings that let one requester take another's name: each is a warning (docs/names.md). */
import type { Warning } from '../problem.ts';
import type { CaConfig, Config } from '../schema.ts';

/** What the keys say by themselves; what the files say is in check-clients.ts. */
export function* nameWarnings(config: Config): Generator<Warning> {
  const { otp, est, cmc, gssapi, ca } = config;
  const byToken = otp.enabled && ca.some((one) => countsAt(one, 'otp') && leavesNamesFree(one));
  const bySecret = est.fullcmc && cmc.shared_secrets.length > 0 && ca.some(leavesNamesFree);
  if (otp.bind_client_id === 'off' && (byToken || bySecret))
    yield {
      key: 'otp.bind_client_id',
      message: `is "off": whoever has ${byToken ? 'a token' : 'a shared secret'} may ask for any name, another's too ("cn" or "san")`,
    };
  const template = gssapi.default_template;
  if (gssapi.enabled && template !== undefined && !/\{(principal|instance)\}/.test(template))
    yield {
      key: 'gssapi.default_template',
      message:
        'leaves the instance out: all principals of one primary get one subject ({principal}, or {instance} too)',
    };
  for (const [index, one] of ca.entries()) yield* warningsOfCa(config, one, `ca[${index}]`);
}

function* warningsOfCa({ tls }: Config, ca: CaConfig, key: string): Generator<Warning> {
  if (tls.client_auth.mode === 'none') return;
  if (ca.client_issuers.includes('any') && countsAt(ca, 'mtls'))
    yield {
      key: `${key}.client_issuers`,
      message: `has "any": a certificate of another label stands for its names at "${ca.label}" too ("own", "anchors", or files)`,
    };
  if (ca.profile.allow_subject_change && leavesNamesFree(ca))
    yield {
      key: `${key}.profile.allow_subject_change`,
      message: "is true: whoever has a certificate may change to any name, another's too (false)",
    };
}

/** Whether the method counts at the CA's label. */
export function countsAt({ auth }: CaConfig, method: 'mtls' | 'otp' | 'gssapi'): boolean {
  return auth.methods?.includes(method) ?? true;
}

/** Whether neither a person nor the profile keeps a requester to its own names. */
export function leavesNamesFree({ approval }: CaConfig): boolean {
  return approval === 'auto';
}
