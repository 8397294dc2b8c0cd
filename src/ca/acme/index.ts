/** `driver = "acme"`: a CA behind an ACME server. */
import { generateKeyPairSync, type KeyObject } from 'node:crypto';
import { existsSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { bothOrNeither, finding, type Finding } from '../../config/problem.ts';
import { choice, list, optional, path, type Static, table, text } from '../../config/keys.ts';
import { FileError, type MaterialReader } from '../../config/material/reader.ts';
import { errorCode } from '../../config/secret.ts';
import { describe, failed } from '../../errors.ts';
import { OID, oidByName } from '../../pki/der/oids.ts';
import { commandLine } from '../../process/run-program.ts';
import { type DriverDefinition, type DriverContext, labeledLog } from '../driver.ts';
import {
  https,
  loadUpstream,
  type MadeUpstream,
  maxCalls,
  program,
  programChecks,
  timeout,
  tlsTrustAnchors,
  upstreamCa,
  upstreamKeys,
  type UpstreamMaterial,
} from '../remote/create.ts';
import { clientTls } from '../remote/client-tls.ts';
import { AcmeUpstream } from './acme-upstream.ts';

const acme = table('An ACME server.', {
  directory: https("The URL of the server's directory."),
  tls_trust_anchors: tlsTrustAnchors(),
  account_key_file: path({
    description: 'PEM file with the EC P-256 key of the account. It is created (0600) if absent.',
  }),
  eab_kid: optional.text({
    description: 'Key identifier of the external account binding.',
    allowed: 'text',
    pattern: /^.+$/su,
  }),
  eab_hmac_key: optional.secret({ description: 'Key of the external account binding, base64url.' }),
  contact: list(
    text({
      description: 'A URL.',
      allowed: 'a URL such as "mailto:pki@example.com"',
      pattern: /^mailto:[^\s@]+@[^\s@]+$/u,
    }),
    { description: 'Sent when the account is created; some CAs require one.', default: [] },
  ),
  origins: list(https('An origin, such as "https://files.example.com".'), {
    description:
      "Origins at which the server's URLs may be, in addition to that of `directory`. Other URLs are not followed.",
    default: [],
  }),
  challenge: choice(['dns-01', 'none'], {
    description:
      '`dns-01`: `dns_hook` proves control of the names. `none`: the CA considers our names authorized already.',
    default: 'dns-01',
  }),
  dns_hook: optional(program('Called with `present` or `cleanup`, the name of the TXT record and its value.')),
  timeout: timeout(30),
  max_calls: maxCalls(),
});

const keys = table('A CA behind an ACME server.', {
  ...upstreamKeys,
  driver: choice(['acme'], { description: 'Where the CA is: behind an ACME server.' }),
  acme,
});

type AcmeTable = Static<typeof keys>;
interface AcmeMaterial extends UpstreamMaterial<AcmeTable> {
  readonly accountKey: KeyObject;
}

export const acmeDriver: DriverDefinition<AcmeTable, AcmeMaterial> = {
  keys,
  name: 'acme',
  remote: 'the upstream CA',
  dependency: 'acme',
  async load(reader, ca, key) {
    const { account_key_file, tls_trust_anchors } = ca.acme;
    const material = await loadUpstream(reader, ca, key, { tls_trust_anchors });
    const purposes = ca.profile.extended_key_usage.map((name) => oidByName(name) ?? name);
    if (!purposes.includes(OID.serverAuth))
      reader.warn(
        `${key}.profile.extended_key_usage`,
        'lacks serverAuth, which most ACME CAs certify; such certificates are not delivered',
        '["serverAuth"]',
      );
    const accountKey = await loadAccountKey(reader, `${key}.acme.account_key_file`, account_key_file);
    return material && accountKey && { ...material, accountKey };
  },
  checks: acmeChecks,
  create: upstreamCa(makeUpstream),
};

/** The ACME account may get any name that it is authorized for, so every requester must be bound to names. */
function* acmeChecks({ acme: own, profile }: AcmeTable, key: string, isFree: () => boolean): Generator<Finding> {
  const { challenge, dns_hook, eab_kid, eab_hmac_key } = own;
  yield* programChecks({ dns_hook }, `${key}.acme`);
  if (challenge === 'dns-01' && dns_hook === undefined)
    yield finding(`${key}.acme.dns_hook`, 'is missing, and challenge is "dns-01" (a program, or challenge = "none")');
  yield* bothOrNeither(`${key}.acme`, { eab_kid, eab_hmac_key });
  if (profile.san.dns === undefined && isFree())
    yield finding(
      `${key}.profile.san.dns`,
      'is missing, and requesters are not bound to names (patterns, or otp.bind_client_id and mtls_subject = "same")',
      'otp.bind_client_id',
      `${key}.profile.mtls_subject`,
    );
}

/** The ACME account key, which the first start creates. */
async function loadAccountKey(reader: MaterialReader, key: string, file: string): Promise<KeyObject | undefined> {
  if (!existsSync(file)) {
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    const pem = privateKey.export({ format: 'pem', type: 'pkcs8' });
    const written = await reader.reading(key, file, async () => {
      await writeFile(file, pem, { flag: 'wx', mode: 0o600 }).catch((error: unknown) => {
        // Another process has just created it.
        if (errorCode(error) === 'EEXIST') return;
        throw new FileError(
          `cannot create ${file}: ${errorCode(error)}`,
          'the path of a file that the server may create',
        );
      });
      return true;
    });
    if (written === undefined) return undefined;
  }
  const accountKey = await reader.privateKey(key, file);
  if (accountKey === undefined || accountKey.asymmetricKeyDetails?.namedCurve === 'prime256v1') return accountKey;
  reader.fault(key, `${file} is not an EC P-256 key`, 'the key of an ACME account');
  return undefined;
}

/** @throws EstuaryError 500 `CA_UNUSABLE` if the account's key cannot sign */
function makeUpstream(material: AcmeMaterial, { retryAfter, log, store }: DriverContext): MadeUpstream {
  const { accountKey, table: ca } = material;
  const {
    directory,
    contact,
    origins,
    challenge,
    dns_hook: words,
    eab_kid: kid,
    eab_hmac_key: hmac,
    max_calls,
  } = ca.acme;
  const key = (): Buffer => Buffer.from(hmac?.reveal().toString('latin1').trim() ?? '', 'base64url');
  const common = { tls: clientTls(material), timeout: ca.acme.timeout * 1000, retryAfter };
  const binding = kid === undefined ? undefined : { kid, key };
  try {
    const upstream = new AcmeUpstream({
      ...common,
      directory,
      contact,
      origins,
      store,
      log: labeledLog(log, ca.label),
      accountKey,
      binding,
      challenge,
      dnsHook: commandLine(words),
    });
    return { upstream, maxCalls: max_calls, timeout: common.timeout };
  } catch (error) {
    throw failed('CA_UNUSABLE', `ca "${ca.label}": acme.account_key_file: ${describe(error)}`);
  }
}
