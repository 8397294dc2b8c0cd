/** Creates the CAs that forward a device's CSR: drivers est, acme and command. */
import type { UpstreamCaMaterial } from '../../config/material/material.ts';
import { describe, failed } from '../../errors.ts';
import type { IsolatedLog } from '../../process/isolated-process.ts';
import type { IntermediateStore } from '../../store/intermediate-store.ts';
import { AcmeUpstream } from '../acme/acme-upstream.ts';
import { CommandUpstream } from '../command/command-upstream.ts';
import { labelledLog } from '../driver.ts';
import { EstUpstream } from '../est/est-upstream.ts';
import { clientTls } from './http.ts';
import { RemoteCa } from './remote-ca.ts';
import type { Upstream } from './upstream.ts';

interface UpstreamContext {
  readonly retryAfter: number;
  readonly log: IsolatedLog;
  readonly store: Pick<IntermediateStore, 'rememberIntermediates'>;
  readonly now: () => number;
}

/** A CA behind an upstream, not started. @throws EstuaryError 500 `CA_UNUSABLE` */
export function createUpstreamCa(
  material: UpstreamCaMaterial,
  { retryAfter, log, store, now }: UpstreamContext,
): RemoteCa {
  const { table, upstreamAnchors: anchors, chain } = material;
  const { label } = table;
  const made = upstreamOf(material, retryAfter);
  return new RemoteCa({
    ...made,
    label,
    anchors,
    chain,
    retryAfter,
    validityDays: table.profile.validity_days,
    log: labelledLog(log, label),
    store,
    now,
  });
}

interface Made {
  readonly upstream: Upstream;
  readonly maxCalls: number;
  /** Milliseconds. */
  readonly timeout: number;
}

function upstreamOf(material: UpstreamCaMaterial, retryAfter: number): Made {
  const { table, accountKey } = material;
  const { label } = table;
  const tls = clientTls(material);
  switch (table.driver) {
    case 'est': {
      const { url, username, password, csrattrs, max_calls: maxCalls } = table.est;
      const timeout = table.est.timeout * 1000;
      const credentials =
        username === undefined || password === undefined
          ? undefined
          : { username, reveal: () => password.reveal().toString('utf8') };
      const forwardsCsrAttributes = csrattrs === 'upstream';
      const options = { url, tls, password: credentials, forwardsCsrAttributes, timeout, retryAfter };
      return { upstream: new EstUpstream(options), maxCalls, timeout };
    }
    case 'acme': {
      const {
        directory,
        challenge,
        dns_hook: dnsHook,
        eab_kid: kid,
        eab_hmac_key: hmac,
        max_calls: maxCalls,
      } = table.acme;
      if (accountKey === undefined) throw failed('CA_UNUSABLE', `ca "${label}": the ACME account has no key`);
      const timeout = table.acme.timeout * 1000;
      const key = (): Buffer => Buffer.from(hmac?.reveal().toString('latin1').trim() ?? '', 'base64url');
      const binding = kid === undefined ? undefined : { kid, key };
      const options = {
        directory,
        tls,
        accountKey,
        binding,
        challenge,
        dnsHook: programOf(dnsHook),
        timeout,
        retryAfter,
      };
      try {
        return { upstream: new AcmeUpstream(options), maxCalls, timeout };
      } catch (error) {
        throw failed('CA_UNUSABLE', `ca "${label}": acme.account_key_file: ${describe(error)}`);
      }
    }
    case 'command': {
      const { issue, poll, revoke, max_running: maxCalls } = table.command;
      const timeout = table.command.timeout * 1000;
      const issuing = programOf(issue);
      if (issuing === undefined) throw failed('CA_UNUSABLE', `ca "${label}": command.issue is empty`);
      const options = { label, issue: issuing, poll: programOf(poll), revoke: programOf(revoke), timeout, retryAfter };
      return { upstream: new CommandUpstream(options), maxCalls, timeout };
    }
  }
}

function programOf(words: readonly string[] | undefined): readonly [string, ...string[]] | undefined {
  const [program, ...args] = words ?? [];
  return program === undefined ? undefined : [program, ...args];
}
