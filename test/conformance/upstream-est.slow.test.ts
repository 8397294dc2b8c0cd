/**
 * `driver = "est"`: the built server enrolls as a registration authority at another built server, whose keys are in an
 * HSM, and at libest's. Its own key is in a file or in the HSM.
 */
import { X509Certificate } from 'node:crypto';
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse, stringify, type TomlTable } from 'smol-toml';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { runAny } from '../support/command.ts';
import { makeKey } from '../support/csr.ts';
import { caSection, Estuary, section, type EstuaryOptions } from '../support/estuary.ts';
import { withKeysInHsm } from '../support/keys-in-hsm.ts';
import { hasLibest, startLibest } from '../support/libest.ts';
import { temporaryFolder } from '../support/openssl.ts';
import { requires } from '../support/requires.ts';
import { NODE, SERVER } from '../support/server-process.ts';
import { until } from '../support/until.ts';
import { PIN, softHsm, SOFTHSM_MODULE } from '../support/softhsm.ts';
import { killed } from '../support/spawned.ts';
import { latestAudit, enrollAt, startFront, x509 } from '../support/upstream.ts';

let upstream: Estuary;
let front: Estuary;
const key = makeKey();
const raKey = makeKey();
const base = { driver: 'est', upstream_trust_anchors: 'upstream-roots.pem', profile: {} };
const pkcs11 = { module: SOFTHSM_MODULE, token_label: 'ra token', pin_env: 'TEST_RA_PIN', key_label: 'ra' };

const folder = temporaryFolder();
const hsm = requires('softhsm') ? softHsm(folder.path) : undefined;
const hasTokenTls = hsm !== undefined && requires('tokenTls');
const libests: Awaited<ReturnType<typeof startLibest>>[] = [];

beforeAll(async () => {
  const options: EstuaryOptions = {
    configure: (config) => {
      for (const index of [0, 1]) section(caSection(config, index), 'profile')['mtls_subject'] = 'any';
      Object.assign(caSection(config, 1), { approval: 'manual', client_issuers: ['any'] });
      Object.assign(caSection(config, 0), { csrattrs: { key_type: 'ec:P-256' } });
      section(config, 'est')['retry_after'] = 1;
    },
  };
  hsm?.addToken('est');
  hsm?.addToken('ra token');
  upstream = await Estuary.start(hsm === undefined ? options : withKeysInHsm(options, hsm));
  if (hasLibest()) libests.push(await startLibest(upstream.dir), await startLibest(upstream.dir, ['-m', '1']));
  const ra = await upstream.enrolled(raKey, 'front-ra');
  const { token } = await upstream.otp({ client_id: 'front', max_uses: 100 });
  front = await startFront({
    env: { ...hsm?.env, TEST_RA_PIN: PIN, WRONG_PIN: '0000' },
    anchors: join(upstream.dir, 'ca/root.pem'),
    ca: (dir) => {
      writeFileSync(join(dir, 'ra.pem'), ra.cert);
      writeFileSync(join(dir, 'ra.key'), ra.key, { mode: 0o600 });
      hsm?.importKey('ra token', join(dir, 'ra.key'), 'ra', '01');
      const est = {
        url: `https://localhost:${upstream.server.port('est')}/.well-known/est/devices`,
        tls_trust_anchors: 'upstream-roots.pem',
        client_certificate: 'ra.pem',
        client_key: 'ra.key',
        csrattrs: 'upstream',
        timeout: 60,
      };
      return { driver: 'est', est };
    },
    configure: (config, dir) => {
      section(config, 'est')['retry_after'] = 1;
      writeFileSync(join(dir, 'upstream.password'), token, { mode: 0o600 });
      const url = (label: string): string =>
        `https://localhost:${upstream.server.port('est')}/.well-known/est/${label}`;
      const tls = { tls_trust_anchors: 'upstream-roots.pem' };
      const cas = config['ca'];
      if (!Array.isArray(cas)) throw new TypeError('no [[ca]]');
      config['ca'] = [
        ...cas,
        {
          ...base,
          label: 'queue',
          est: { ...tls, url: url('lab'), client_certificate: 'ra.pem', client_key: 'ra.key' },
        },
        {
          ...base,
          label: 'password',
          est: { ...tls, url: url('devices'), username: 'front', password_file: 'upstream.password' },
        },
        ...(hasTokenTls
          ? [{ ...base, label: 'token', est: { ...tls, url: url('devices'), client_certificate: 'ra.pem', pkcs11 } }]
          : []),
        ...libests.map(({ port }, index) => ({
          ...base,
          label: `libest-${index}`,
          est: {
            ...tls,
            url: `https://localhost:${port}/.well-known/est`,
            client_certificate: 'ra.pem',
            client_key: 'ra.key',
          },
        })),
      ];
    },
  });
});
afterAll(async () => {
  await front.stop();
  for (const { process } of libests) await killed(process);
  await upstream.stop();
  folder.remove();
});

describe('an EST server upstream', () => {
  test('certifies the CSR; the certificate authenticates and renews at the label, and at no other', async () => {
    const answer = await enrollAt(front, key, 'device-1');
    expect(answer.status).toBe(200);
    const certificate = x509(answer);
    expect(certificate.subjectAltName).toBe('DNS:device-1.example.com');
    expect(certificate.publicKey.export({ type: 'spki', format: 'der' })).toEqual(key.spki);
    const client = { cert: certificate.toString(), key: key.pem };
    const renewal = { client, path: 'edge/simplereenroll' };
    expect((await enrollAt(front, key, 'device-1', renewal)).status).toBe(200);
    expect((await enrollAt(front, key, 'device-1', { client, path: 'queue/simplereenroll' })).status).toBe(403);
    expect((await enrollAt(front, key, 'device-1', { client, path: 'devices/simplereenroll' })).status).toBe(403);
  });

  test('a certificate of the upstream that this server did not record is not its own', async () => {
    const other = makeKey();
    const client = await upstream.enrolled(other, 'stranger', ['stranger.example.com']);
    const renewal = await enrollAt(front, other, 'stranger', { client, path: 'edge/simplereenroll' });
    expect(renewal.status).toBe(403);
    const enrolled = await enrollAt(front, other, 'stranger', { client });
    expect([enrolled.status, enrolled.text.trim()]).toEqual([403, 'client certificate not accepted by this CA']);
  });

  test('a password authenticates this server upstream', async () => {
    expect((await enrollAt(front, key, 'device-2', { path: 'password/simpleenroll' })).status).toBe(200);
  });

  test("cacerts and csrattrs are the upstream CA's", async () => {
    expect((await front.est('edge/cacerts')).text).toBe((await upstream.est('devices/cacerts')).text);
    expect((await front.est('edge/csrattrs')).text).toBe((await upstream.est('devices/csrattrs')).text);
  });
});

describe.skipIf(!hasTokenTls)('a key in a PKCS #11 token', () => {
  /** The configuration with another table of the label, for `--check`. */
  function checked(change: TomlTable): ReturnType<typeof runAny> {
    const config = parse(readFileSync(join(front.dir, 'est.toml'), 'utf8'));
    const cas = Array.isArray(config['ca']) ? config['ca'] : [];
    const est = section(caSection(config, cas.length - 1 - libests.length), 'est');
    config['ca'] = [...cas.slice(0, 2), { ...base, label: 'token', est: { ...est, ...change } }];
    const file = join(front.dir, 'token.toml');
    writeFileSync(file, stringify(config));
    return runAny(NODE, [SERVER, '--config', file, '--check'], { env: front.env });
  }

  test('authenticates this server upstream, and a reload takes its new certificate', async () => {
    expect((await enrollAt(front, key, 'token-1', { path: 'token/simpleenroll' })).status).toBe(200);
    const { cert } = await upstream.enrolled(raKey, 'next-ra');
    writeFileSync(join(front.dir, 'ra.pem'), cert);
    expect((await front.admin('POST', '/admin/reload')).status).toBe(200);
    // The reload waits two seconds for the token.
    const enroll = async () => (await enrollAt(front, key, 'token-2', { path: 'token/simpleenroll' })).status;
    await expect.poll(enroll, { interval: 500 }).toBe(200);
    expect(JSON.stringify(await latestAudit(upstream, 'certificate.issued'))).toContain('next-ra');
    expect(await front.outputSoFar()).not.toContain(PIN);
  });

  test('a PIN that is changed at the token and back: 503, and a reload without any change opens the token again', async () => {
    const enroll = async () => (await enrollAt(front, key, 'token-3', { path: 'token/simpleenroll' })).status;
    const child = front.server.log().findLast(({ process: name, child }) => name === 'PKCS11' && child !== undefined);
    await hsm?.tool('ra token', '--change-pin', '--new-pin', 'another-pin');
    process.kill(Number(child?.['child']), 'SIGKILL');
    await until('it gives up', () =>
      front.server.log().some(({ msg }) => String(msg).includes('process stays down until a reload')),
    );
    expect(await enroll()).toBe(503);
    await hsm?.tool('ra token', '--pin', 'another-pin', '--change-pin', '--new-pin', PIN);
    expect((await front.admin('POST', '/admin/reload')).status).toBe(200);
    await expect.poll(enroll, { interval: 500 }).toBe(200);
  });

  test.each([
    ['a wrong PIN', { pin_env: 'WRONG_PIN' }, 'pkcs11.pin_env: token "ra token" refuses the PIN (CKR_PIN_INCORRECT)'],
    ['a missing token', { token_label: 'gone' }, 'pkcs11.token_label: there is no token "gone"; the module shows'],
    ['no engine', { engine: 'ra.pem' }, 'pkcs11.engine: cannot be used'],
  ])('--check refuses %s', async (_, change, message) => {
    const { code, output } = await checked({ pkcs11: { ...pkcs11, ...change } });
    expect(output).toContain(`ca[token].est.${message}`);
    expect(code).toBe(2);
    expect(output).not.toContain(PIN);
  });

  test("--check refuses another key's certificate, and accepts the right one", async () => {
    const { code, output } = await checked({ client_certificate: 'ca/issuing.pem' });
    expect(output).toContain('ca[token].est.client_certificate: does not belong to the private key in the token');
    expect(code).toBe(2);
    const { module, token_label, pin_env } = pkcs11;
    expect((await checked({ pkcs11: { module, token_label, pin_env, key_id: '01' } })).code).toBe(0);
  });
});

describe.skipIf(!hasLibest())("libest's estserver upstream", () => {
  test('certifies the CSR; the certificate renews at the label; cacerts is its chain', async () => {
    const answer = await enrollAt(front, key, 'libest-1', { path: 'libest-0/simpleenroll' });
    expect(answer.text.length > 0 && answer.status).toBe(200);
    const certificate = x509(answer);
    expect(certificate.subjectAltName).toBe('DNS:libest-1.example.com');
    const client = { cert: certificate.toString(), key: key.pem };
    const renewal = { client, path: 'libest-0/simplereenroll' };
    expect((await enrollAt(front, key, 'libest-1', renewal)).status).toBe(200);
    expect((await front.est('libest-0/cacerts')).status).toBe(200);
  });

  test('its simulated manual approval is 202 here, also after a restart, then 200', async () => {
    const { token } = await front.otp({ client_id: 'libest-2' });
    const poll = async () => enrollAt(front, key, 'libest-2', { password: token, path: 'libest-1/simpleenroll' });
    expect((await poll()).status).toBe(202);
    // It wants to be asked again in an hour, which a restarted server does not know.
    await front.server.stop();
    await front.restart();
    await expect.poll(async () => (await poll()).status, { interval: 500 }).toBe(200);
  });
});

describe('a fleet moves to the upstream and back', () => {
  /** Starts the server again with another table of the label. */
  const lab = async (make: (table: TomlTable) => TomlTable): Promise<void> => {
    await front.server.stop();
    front.reconfigure((config) => {
      const cas = Array.isArray(config['ca']) ? config['ca'] : [];
      config['ca'] = cas.map((_, index) => (index === 1 ? make(caSection(config, 1)) : caSection(config, index)));
    });
    await front.restart();
  };
  const renewed = async (client: { cert: string; key: string }): Promise<X509Certificate> => {
    const renewal = { client, path: 'lab/simplereenroll', names: ['mover.example.com'] };
    const answer = await enrollAt(front, key, 'mover', renewal);
    expect(answer.status === 200 ? '' : answer.text).toBe('');
    return x509(answer);
  };

  test('with the same label: each certificate renews at the CA that the label has then', async () => {
    const own = x509(await enrollAt(front, key, 'mover', { names: ['mover.example.com'], path: 'lab/simpleenroll' }));
    const before = caSection(parse(readFileSync(join(front.dir, 'est.toml'), 'utf8')), 1);
    const { certificate = '' } = before;
    await lab(({ label, profile = {} }) => ({
      label: label ?? '',
      driver: 'est',
      upstream_trust_anchors: 'upstream-roots.pem',
      profile: { ...(profile as TomlTable), renewal_issuers: certificate },
      est: {
        url: `https://localhost:${upstream.server.port('est')}/.well-known/est/devices`,
        tls_trust_anchors: 'upstream-roots.pem',
        client_certificate: 'ra.pem',
        client_key: 'ra.key',
      },
    }));
    const there = await renewed({ cert: own.toString(), key: key.pem });
    expect(there.checkIssued(new X509Certificate(readFileSync(join(upstream.dir, 'ca/issuing.pem'))))).toBe(true);
    copyFileSync(join(upstream.dir, 'ca/issuing.pem'), join(front.dir, 'upstream-issuing.pem'));
    section(before, 'profile')['renewal_issuers'] = 'upstream-issuing.pem';
    await lab(() => before);
    const back = await renewed({ cert: there.toString(), key: key.pem });
    expect(back.issuer).toBe(own.issuer);
  });
});
