/** `[cmc]` and its neighbors in the configuration. */
import { createPrivateKey, createPublicKey } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, test } from 'vitest';
import { buildControl } from '../../src/pki/cmc/controls.ts';
import { buildPkiData, encodeReqSequence } from '../../src/pki/cmc/pki-data.ts';
import { parseSignedData } from '../../src/pki/cms/cms.ts';
import { sequence } from '../../src/pki/der/der.ts';
import { formatName } from '../../src/pki/x509/name.ts';
import { OID } from '../../src/pki/der/oids.ts';
import { aki, makeCrl } from '../support/certificates.ts';
import {
  certificateOf,
  exchange,
  fullRequest,
  IDENTIFICATION,
  inShort,
  issuedBy,
  issuedOutside,
  ownKeyIdentifier,
  postCmc,
  requestBy,
  requestedKey,
  SECRET,
  tcr,
  withParticipants,
} from '../support/cmc.ts';
import { buildCsr, commonName, csrAttribute, extensionRequest, makeKey, simpleCsr } from '../support/csr.ts';
import { caSection, Estuary, itemsOf, section, type EstuaryOptions } from '../support/estuary.ts';
import { untilLogged } from '../support/server-process.ts';
import { buildAuthenticatedData, createIdentityProof } from '../support/cmc-secrets.ts';

let server: Estuary;
afterEach(() => server.stop());

async function started(configure: NonNullable<EstuaryOptions['configure']>): Promise<void> {
  server = await Estuary.start({ configure: withParticipants(configure).configure });
}

/** An initial request with an identity proof. */
function withSecret(secret: string, identification = IDENTIFICATION): Promise<Buffer> {
  const key = makeKey();
  const reqSequence = [tcr(1, buildCsr(key, { attributes: [extensionRequest(ownKeyIdentifier(key))] }))];
  const proof = createIdentityProof(encodeReqSequence(reqSequence), { secret: Buffer.from(secret), identification });
  return fullRequest(
    {
      controlSequence: [
        buildControl(111, 'identification', identification),
        buildControl(112, 'identityProofV2', proof),
      ],
      reqSequence,
    },
    { signers: [requestedKey(key)] },
  );
}

test('wrong secrets count toward the lockout, on the identification; it is lifted like any other', async () => {
  await started((config) => {
    Object.assign(section(config, 'otp'), { max_failures: 2, lockout_scope: 'both', lockout_duration: 900 });
    section(config, 'est')['fullcmc_require_mtls'] = false;
  });
  for (let i = 0; i < 3; i++) {
    const reply = await exchange(server, withSecret('wrong'));
    expect([reply.status, ...inShort(reply), reply.statuses[0]?.statusString]).toEqual([
      401,
      'failed badIdentity [112]',
      'The shared secret is wrong.',
    ]);
  }
  const locked = await exchange(server, withSecret(SECRET));
  expect([locked.status, ...inShort(locked), locked.statuses[0]?.statusString]).toEqual([
    401,
    'failed badIdentity [0]',
    'too many failures, locked out',
  ]);
  expect(Number(locked.answer.headers['retry-after'])).toBeGreaterThan(800);
  const keys = itemsOf((await server.admin('GET', '/admin/lockouts')).json).map(({ key }) => key);
  expect(keys.sort()).toEqual(['address:127.0.0.1', `identification:${IDENTIFICATION}`]);
  for (const key of keys) await server.admin('DELETE', `/admin/lockouts/${encodeURIComponent(String(key))}`);
  const reply = await exchange(server, withSecret(SECRET));
  expect([reply.status, ...inShort(reply)]).toEqual([200, 'success [1]']);
});

test('the holder of one shared secret clears no count: it has no uses to spend', async () => {
  await started((config) => {
    Object.assign(section(config, 'otp'), { max_failures: 2 });
    section(config, 'est')['fullcmc_require_mtls'] = false;
  });
  const statuses: number[] = [];
  for (const secret of ['wrong', 'wrong', SECRET, 'wrong', SECRET])
    statuses.push((await exchange(server, withSecret(secret))).status);
  expect(statuses).toEqual([401, 401, 200, 401, 401]);
});

test('est.fullcmc_require_mtls = false: the message alone authenticates; est.fullcmc = false: 501', async () => {
  await started((config) => {
    section(config, 'est')['fullcmc_require_mtls'] = false;
  });
  const device = await server.enrolled(makeKey(), 'device-1');
  const own = () => requestBy(device, { reqSequence: [tcr(1, simpleCsr(makeKey(), 'device-1'))] });
  const reply = await exchange(server, own());
  expect([reply.status, ...inShort(reply)]).toEqual([200, 'success [1]']);
  const key = makeKey();
  const csr = buildCsr(key, { attributes: [extensionRequest(ownKeyIdentifier(key))] });
  const nobody = await exchange(server, fullRequest({ reqSequence: [tcr(1, csr)] }, { signers: [requestedKey(key)] }));
  expect([nobody.status, ...inShort(nobody)]).toEqual([401, 'failed badIdentity [0]']);
  const other = await server.enrolled(makeKey(), 'device-2');
  const carried = await exchange(server, own(), other);
  expect([carried.status, ...inShort(carried)]).toEqual([403, 'failed badIdentity [0]']);
  server.reconfigure((config) => {
    section(config, 'est')['fullcmc'] = false;
  });
  server.server.signal('SIGTERM');
  await server.server.exited;
  await server.restart();
  const off = await postCmc(server, await own(), device);
  expect([off.status, off.text]).toEqual([501, 'This server does not offer fullcmc.']);
});

describe('RFC 6402 §2.10: a configured responder', () => {
  test('signs the responses, and is in them; SIGHUP takes over a change of [cmc]', async () => {
    let responder = '';
    await started((config, dir) => {
      const made = issuedOutside({ dir }, 'issuing', makeKey('P-384'), '/CN=CMC responder', [
        'keyUsage=critical,digitalSignature',
        'extendedKeyUsage=1.3.6.1.5.5.7.3.27',
      ]);
      responder = certificateOf(made).serialNumber;
      writeFileSync(join(dir, 'cmc.pem'), made.cert);
      writeFileSync(join(dir, 'cmc.key'), made.key, { mode: 0o600 });
      Object.assign(section(config, 'cmc'), { certificate: 'cmc.pem', private_key: 'cmc.key' });
    });
    const device = await server.enrolled(makeKey(), 'device-1');
    const signerOf = (der: Buffer): string | undefined => {
      const sid = parseSignedData(der).signerInfos[0]?.sid;
      return sid?.kind === 'issuerAndSerialNumber' ? sid.serialNumber : undefined;
    };
    const reply = await exchange(server, requestBy(device, { reqSequence: [tcr(1, simpleCsr(makeKey()))] }), device);
    expect([reply.status, ...inShort(reply)]).toEqual([200, 'success [1]']);
    expect(signerOf(reply.der)).toBe(responder);

    const before = await exchange(server, withSecret('another secret of this device', 'device 8'), device);
    expect([before.status, ...inShort(before)]).toEqual([401, 'failed badIdentity [112]']);
    server.reconfigure((config, dir) => {
      writeFileSync(join(dir, 'device-8.secret'), 'another secret of this device', { mode: 0o600 });
      const cmc = section(config, 'cmc');
      cmc['shared_secrets'] = [{ identification: 'device 8', secret_file: 'device-8.secret' }];
      delete cmc['certificate'];
      delete cmc['private_key'];
    });
    server.server.signal('SIGHUP');
    // Not in a poll: each wrong secret counts toward the lockout.
    await untilLogged(server.server, { msg: 'configuration reloaded' });
    const known = await exchange(server, withSecret('another secret of this device', 'device 8'), device);
    expect(inShort(known)).toEqual(['success [1]']);
    const after = await exchange(server, requestBy(device, {}), device);
    expect(signerOf(after.der)).not.toBe(responder);
  });
});

test("a configured RA whom its issuer's CRL revokes is nobody", async () => {
  const setting = withParticipants();
  server = await Estuary.start({ configure: setting.configure });
  const { configuredRa: ra } = setting.participants;
  const ask = () => exchange(server, requestBy(ra, { reqSequence: [tcr(1, simpleCsr(makeKey(), 'anybody'))] }), ra);
  expect(inShort(await ask())).toEqual(['success [1]']);
  const [key, pem] = ['ca/lab.key', 'ca/lab.pem'].map((name) => readFileSync(join(server.dir, name), 'latin1'));
  if (key === undefined || pem === undefined) throw new Error('no CA');
  const privateKey = createPrivateKey(key);
  const lab = certificateOf({ cert: pem, key });
  const issuer = {
    subject: formatName(lab.subject),
    kind: 'ec:P-256' as const,
    keys: { privateKey, publicKey: createPublicKey(privateKey) },
    der: lab.der,
  };
  const crl = await makeCrl(issuer, { revoked: [certificateOf(ra).serialNumber], extensions: [aki(issuer.keys)] });
  server.reconfigure((config, dir) => {
    writeFileSync(join(dir, 'lab.crl'), crl);
    section(config, 'tls', 'client_auth')['crl'] = 'lab.crl';
    section(config, 'est')['fullcmc_require_mtls'] = false;
  });
  server.server.signal('SIGTERM');
  await server.server.exited;
  await server.restart();
  const reply = await exchange(server, requestBy(ra, { reqSequence: [tcr(1, simpleCsr(makeKey(), 'anybody'))] }));
  expect([reply.status, ...inShort(reply)]).toEqual([401, 'failed badIdentity [0]']);
  expect(reply.statuses[0]?.statusString).toContain('client certificate revoked');
});

test('RFC 6402 §2.8: ChangeSubjectName, where the profile allows it', async () => {
  await started((config) => {
    section(caSection(config), 'profile')['allow_subject_change'] = true;
  });
  const device = await server.enrolled(makeKey(), 'device-1');
  const change = csrAttribute('1.3.6.1.5.5.7.7.36', sequence(commonName('renamed')));
  const ask = (cn: string) => {
    const csr = buildCsr(makeKey(), { subject: commonName(cn), attributes: [change] });
    return exchange(server, requestBy(device, { reqSequence: [tcr(1, csr)] }), device);
  };
  const reply = await ask('device-1');
  expect([reply.status, ...inShort(reply)]).toEqual([200, 'success [1]']);
  expect(issuedBy(reply).map(({ subject }) => formatName(subject))).toEqual(['CN=renamed']);
  const other = await ask('device-2');
  expect([other.status, ...inShort(other)]).toEqual([403, 'failed badIdentity [1]']);
});

test('otp.bind_client_id = "cn": a shared secret stands for one name, which links the request to it', async () => {
  await started((config) => {
    section(config, 'otp')['bind_client_id'] = 'cn';
  });
  const device = await server.enrolled(makeKey(), 'device-1');
  const ask = (cn: string) => {
    const content = buildPkiData({
      controlSequence: [buildControl(111, 'identification', IDENTIFICATION)],
      reqSequence: [tcr(1, simpleCsr(makeKey(), cn))],
    });
    return exchange(server, buildAuthenticatedData(OID.pkiData, content, Buffer.from(IDENTIFICATION + SECRET)), device);
  };
  const own = await ask(IDENTIFICATION);
  expect([own.status, ...inShort(own)]).toEqual([200, 'success [1]']);
  const other = await ask('device 8');
  expect([other.status, ...inShort(other)]).toEqual([403, 'failed badIdentity [1]']);
});
