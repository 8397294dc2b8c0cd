/** A database that does not answer at the start, at a reload, and while the server runs: only what needs it fails. */
import { X509Certificate } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parsePemCertificates } from '../../src/pki/x509/certificate.ts';
import { SUCCESSFUL, TRY_LATER } from '../publication/support.ts';
import { postCmc, requestBy, tcr } from '../support/cmc.ts';
import { runAny } from '../support/command.ts';
import { makeKey, onTheWire, simpleCsr } from '../support/csr.ts';
import { type ClientIdentity, Estuary, type EstuaryOptions, section } from '../support/estuary.ts';
import { ocspRequest } from '../support/ocsp.ts';
import { temporaryFolder } from '../support/openssl.ts';
import { sharedPostgres } from '../support/postgres.ts';
import { freePorts } from '../support/ports.ts';
import { requires } from '../support/requires.ts';
import { NODE, SERVER, untilLogged } from '../support/server-process.ts';
import { withStoreIn } from '../support/store-in-postgres.ts';
import { TcpRelay } from '../support/tcp-relay.ts';
import { until } from '../support/until.ts';

describe.skipIf(!requires('postgres'))('a database that does not answer at the start', () => {
  let estuary: Estuary;
  let relay: TcpRelay;
  let url: string;
  /** Its listener opens after the wait. */
  let publication: number;
  let client: ClientIdentity;
  let otp: string;
  const key = makeKey();
  const programs = temporaryFolder();
  const enroll = async () => {
    const { token } = await estuary.otp();
    return (await estuary.enroll(onTheWire(simpleCsr(key, 'device-1')), { password: token })).status;
  };

  beforeAll(async () => {
    const cluster = await sharedPostgres();
    url = await cluster.createDatabase();
    relay = await TcpRelay.start(cluster.port);
    const [est, admin, port = 0] = await freePorts(3);
    publication = port;
    const configure: NonNullable<EstuaryOptions['configure']> = (config) => {
      Object.assign(section(config, 'est'), { port: est });
      Object.assign(section(config, 'admin'), { port: admin });
      section(config, 'serverkeygen')['encryption'] = 'optional';
      const base_url = 'http://pki.example.test/';
      Object.assign(section(config, 'publication'), { enabled: true, host: '127.0.0.1', port, base_url });
    };
    const through = url.replace(/:\d+\//, `:${relay.port}/`);
    const notify = programs.file('systemd-notify');
    writeFileSync(notify, `#!/bin/sh\necho "$@" >> ${programs.file('notified')}\n`, { mode: 0o755 });
    const env = { NOTIFY_SOCKET: '/nowhere', PATH: `${programs.path}:${process.env['PATH'] ?? ''}` };
    estuary = await Estuary.start({ ...withStoreIn({ configure, env }, through, 'one'), built: true });
    expect(await enroll()).toBe(200);
    client = await estuary.enrolled(key);
    otp = (await estuary.otp()).token;
    await estuary.server.stop();
    await relay.die();
    await estuary.restart();
  });
  afterAll(async () => {
    await estuary.stop();
    await relay.die();
    programs.remove();
  });

  const der = simpleCsr(key, 'device-1');
  const enrolled = async (credential: object, path = 'simpleenroll') =>
    (await estuary.enroll(onTheWire(der), { ...credential, path })).status;
  /** What needs the database. */
  const needing = async (): Promise<Record<string, number>> => ({
    otp: await enrolled({ password: otp }),
    certificate: await enrolled({ client }),
    simplereenroll: await enrolled({ client }, 'simplereenroll'),
    serverkeygen: await enrolled({ client }, 'serverkeygen'),
    fullcmc: (await postCmc(estuary, await requestBy(client, { reqSequence: [tcr(1, der)] }), client)).status,
    readyz: (await estuary.admin('GET', '/readyz')).status,
    admin: (await estuary.admin('GET', '/admin/certificates')).status,
    reload: (await estuary.admin('POST', '/admin/reload')).status,
    'dry run': (await estuary.admin('POST', '/admin/reload?dry_run=true')).status,
  });
  const published = async (path: string, body?: Buffer) => {
    const headers = { 'Content-Type': 'application/ocsp-request' };
    const call = body === undefined ? {} : { method: 'POST', headers, body: new Uint8Array(body) };
    return fetch(`http://127.0.0.1:${publication}/${path}`, call);
  };
  const ocsp = async (): Promise<string> => {
    const [certificate] = parsePemCertificates(readFileSync(join(estuary.dir, 'ca/issuing.pem'), 'utf8'));
    if (certificate === undefined) throw new Error('no certificate');
    const request = ocspRequest({ certificate }, [new X509Certificate(client.cert).serialNumber.toLowerCase()]);
    return Buffer.from(await (await published('ocsp/devices', request)).arrayBuffer()).toString('hex');
  };
  const others = async () => ({
    csrattrs: (await estuary.est('csrattrs')).status,
    cacerts: (await estuary.est('cacerts')).status,
    crl: (await published('crl/devices.crl')).status,
    healthz: (await estuary.admin('GET', '/healthz')).status,
    cas: (await estuary.admin('GET', '/admin/cas')).status,
    ocsp: await ocsp(),
  });
  const all503 = async () => expect(Object.entries(await needing()).filter(([, status]) => status !== 503)).toEqual([]);

  test('the listeners answer: alive, not ready, and 503 with Retry-After', async () => {
    expect(await estuary.admin('GET', '/healthz')).toEqual({ status: 200, json: { status: 'ok' } });
    expect(await estuary.admin('GET', '/readyz')).toMatchObject({ status: 503, json: { message: 'not ready: store' } });
    const { status, headers } = await estuary.est('cacerts');
    expect([status, Number(headers['retry-after']) > 0]).toEqual([503, true]);
    await all503();
    await untilLogged(estuary.server, { msg: 'the server waits for its database, which does not answer' });
    await until('the time limit of the unit is extended', () =>
      Promise.resolve(readFileSync(programs.file('notified'), 'utf8').includes('EXTEND_TIMEOUT_USEC=')),
    );
    const doctor = await runAny(NODE, [SERVER, 'doctor', '--config', join(estuary.dir, 'est.toml')]);
    expect(doctor).toMatchObject({
      code: 1,
      output: expect.stringMatching(/^failed +store: .*the server waits/m) as string,
    });
  });

  test('a stop during the wait is clean', async () => {
    expect(await estuary.server.stop()).toEqual({ code: 0, signal: null });
    await estuary.restart();
  });

  test('the server works once the database answers', async () => {
    await relay.revive();
    const ready = () =>
      estuary.admin('GET', '/readyz').then(
        ({ status }) => status === 200,
        // The ports change hands.
        () => false,
      );
    await until('the node is ready', ready);
    expect(await enroll()).toBe(200);
  });

  test('while the server runs and at a reload, only what needs the database is 503, and no token is used', async () => {
    await until('a CRL', async () => (await published('crl/devices.crl')).status === 200);
    await relay.die();
    await until('the node notices', async () => (await estuary.admin('GET', '/readyz')).status === 503);
    const works = { csrattrs: 204, cacerts: 200, crl: 200, healthz: 200, cas: 200, ocsp: TRY_LATER };
    await all503();
    expect(await others()).toEqual(works);
    estuary.server.signal('SIGHUP');
    await untilLogged(estuary.server, { msg: 'reload failed; the old configuration stays in force' });
    await all503();
    expect(await others()).toEqual(works);
    await relay.revive();
    await until('the node is ready', async () => (await estuary.admin('GET', '/readyz')).status === 200);
    expect(Object.entries(await needing()).filter(([, status]) => status !== 200)).toEqual([]);
    expect(await others()).toEqual({ ...works, ocsp: expect.stringMatching(SUCCESSFUL) as string });
  });

  test('a refused login, and a database that does not exist, are exit code 1', async () => {
    await estuary.server.stop();
    for (const wrong of [url.replace(/\/\/[^@/]*@/, '//nobody-here@'), url.replace(/\/[^/]*$/, '/nowhere')]) {
      writeFileSync(join(estuary.dir, 'store.url'), wrong);
      const { code, output } = await runAny(NODE, [SERVER, '--config', join(estuary.dir, 'est.toml')]);
      expect([code, output]).toEqual([1, expect.stringContaining('could not start') as string]);
    }
  });
});
