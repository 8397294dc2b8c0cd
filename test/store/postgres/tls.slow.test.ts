import { createPrivateKey, createPublicKey } from 'node:crypto';
import { copyFileSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { PostgresServer, PostgresTls } from '../../../src/store/postgres/connection.ts';
import { connect } from '../../../src/store/postgres/connection.ts';
import { connector } from '../../../src/store/postgres/connection.ts';
import { encodePem } from '../../../src/pki/der/pem.ts';
import { EstuaryError } from '../../../src/errors.ts';
import { isRefusedLogin } from '../../../src/store/postgres/errors.ts';
import { makeCa } from '../../support/certificates.ts';
import { makeKey, onTheWire, simpleCsr } from '../../support/csr.ts';
import { Estuary, section } from '../../support/estuary.ts';
import { temporaryFolder } from '../../support/openssl.ts';
import { PostgresCluster, sharedPostgres } from '../../support/postgres.ts';
import { requires } from '../../support/requires.ts';
import { certify, newKey } from '../../support/rollover.ts';
import { withStoreIn } from '../../support/store-in-postgres.ts';

const CA = ['basicConstraints=critical,CA:TRUE', 'keyUsage=critical,keyCertSign,cRLSign'];
/** A role that has to show a certificate. */
const ROLE = 'node';

/** Both ways that a server goes to its database: the store's, and the lease's. */
const WAYS: Readonly<Record<string, (server: PostgresServer) => Promise<void>>> = {
  store: async (server) => (await connect(server, 'test')).end(),
  lease: async (server) => (await connector(server)()).end(),
};

describe.skipIf(!requires('postgres', 'openssl'))('TLS to PostgreSQL', () => {
  const folder = temporaryFolder();
  const pem = (name: string): string => readFileSync(folder.file(name), 'utf8');
  let cluster: PostgresCluster | undefined;
  /** A URL of the cluster that demands TLS, by the name of its certificate unless told. */
  const url = (host = 'localhost', user = 'estuary', query = ''): string =>
    `postgresql://${user}@${host}:${cluster?.port}/postgres${query}`;

  beforeAll(async () => {
    for (const name of ['ca', 'other-ca', 'server', 'client', 'foreign']) newKey(folder.path, name);
    certify(folder.path, 'ca', { subject: '/CN=Database CA', key: 'ca', extensions: CA });
    certify(folder.path, 'other-ca', { subject: '/CN=Database CA', key: 'other-ca', extensions: CA });
    const server = { subject: '/CN=database', key: 'server', by: 'ca', extensions: ['subjectAltName=DNS:localhost'] };
    certify(folder.path, 'server', server);
    const client = { subject: `/CN=${ROLE}`, extensions: ['extendedKeyUsage=clientAuth'] };
    certify(folder.path, 'client', { ...client, key: 'client', by: 'ca' });
    certify(folder.path, 'foreign', { ...client, key: 'foreign', by: 'other-ca' });
    cluster = await PostgresCluster.start({
      tls: { certificate: pem('server.pem'), privateKey: pem('server.key'), clientAnchors: pem('ca.pem') },
      hba: [`hostssl all ${ROLE} 127.0.0.1/32 cert`, 'hostssl all all 127.0.0.1/32 trust'],
    });
    await cluster.sql(`CREATE ROLE ${ROLE} LOGIN SUPERUSER`);
  });
  afterAll(async () => {
    await cluster?.stop();
    folder.remove();
  });

  const anchors = (): PostgresTls => ({ anchors: pem('ca.pem') });
  const shows = (name: string): PostgresTls => ({
    ...anchors(),
    certificate: pem(`${name}.pem`),
    private_key: pem(`${name}.key`),
  });

  it.each<[string, () => PostgresServer]>([
    ['the right CA and name', () => ({ url: url(), tls: anchors() })],
    [
      'the right CA, whatever the URL says',
      () => ({ url: url(undefined, undefined, '?sslmode=disable'), tls: anchors() }),
    ],
    ['a client certificate where one is demanded', () => ({ url: url('localhost', ROLE), tls: shows('client') })],
  ])('is spoken with %s', async (_, server) => {
    for (const way of Object.values(WAYS)) await way(server());
    const connection = await connect(server(), 'test');
    const text = 'SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()';
    expect((await connection.query({ name: 'encrypted', text, values: [] })).rows).toEqual([{ ssl: true }]);
    connection.end();
  });

  it('waits with an expired CA, which will be replaced, and not with another one', async () => {
    const privateKey = createPrivateKey(pem('ca.key'));
    const keys = { privateKey, publicKey: createPublicKey(privateKey) };
    const { der } = await makeCa('CN=Database CA', { keys, notAfter: Date.UTC(2026, 1, 1) });
    const isRefused = async (anchors: string): Promise<boolean> => {
      const error: unknown = await connect({ url: url(), tls: { anchors } }, 'test').catch((reason: unknown) => reason);
      expect(error).toBeInstanceOf(EstuaryError);
      return error instanceof EstuaryError && isRefusedLogin(error);
    };
    expect(await isRefused(encodePem('CERTIFICATE', der))).toBe(false);
    expect(await isRefused(pem('other-ca.pem'))).toBe(true);
  });

  it.each<[string, RegExp, () => PostgresServer]>([
    [
      'a certificate of another CA',
      /certificate|signature/,
      () => ({ url: url(), tls: { anchors: pem('other-ca.pem') } }),
    ],
    ['a certificate for another name', /altnames|does not match/i, () => ({ url: url('127.0.0.1'), tls: anchors() })],
    // What the system knows has not issued it.
    ...['require', 'verify-ca', 'verify-full'].map((mode): [string, RegExp, () => PostgresServer] => [
      `a certificate of a CA that the system does not know, with sslmode=${mode}`,
      /certificate/,
      () => ({ url: url(undefined, undefined, `?sslmode=${mode}`) }),
    ]),
    ['a server that demands TLS, without', /no encryption/, () => ({ url: url() })],
    [
      'a server that demands a client certificate, without',
      /certificate/,
      () => ({ url: url('localhost', ROLE), tls: anchors() }),
    ],
    [
      'a server that does not know the issuer of the client certificate',
      /./,
      () => ({ url: url('localhost', ROLE), tls: shows('foreign') }),
    ],
    [
      "a server that takes the client certificate for another's",
      /authentication failed/,
      () => ({ url: url('localhost', ROLE), tls: shows('server') }),
    ],
  ])('is refused with %s: 503, and the operator reads why', async (_, reason, server) => {
    for (const way of Object.values(WAYS))
      await expect(way(server())).rejects.toMatchObject({
        status: 503,
        code: 'STORE_UNAVAILABLE',
        detail: expect.stringMatching(reason) as string,
      });
  });

  it('never goes on in the clear where the server has no TLS', async () => {
    const plain = (await sharedPostgres()).url('postgres').replace('127.0.0.1', 'localhost');
    for (const way of Object.values(WAYS))
      await expect(way({ url: plain, tls: anchors() })).rejects.toMatchObject({
        code: 'STORE_UNAVAILABLE',
        detail: expect.stringMatching(/does not support SSL/) as string,
      });
  });

  it.each(['&sslmode=verify-full', '&sslmode=require', ''])(
    'sslrootcert in the URL names the anchors: %s',
    async (mode) => {
      const at = url('localhost', 'estuary', `?sslrootcert=${encodeURIComponent(folder.file('ca.pem'))}${mode}`);
      const estuary = await Estuary.start(withStoreIn({}, at, 'est-url'));
      try {
        const { token } = await estuary.otp();
        expect((await estuary.enroll(onTheWire(simpleCsr(makeKey())), { password: token })).status).toBe(200);
        const encrypted =
          "SELECT DISTINCT ssl FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE application_name LIKE 'estuary%'";
        expect(await cluster?.sql(encrypted)).toEqual([['t']]);
      } finally {
        await estuary.stop();
      }
    },
  );

  it('sslrootcert in the URL: a server of another CA is refused, and a missing file is named', async () => {
    const start = (file: string): Promise<Estuary> =>
      Estuary.start(
        withStoreIn(
          {},
          url('localhost', 'estuary', `?sslmode=verify-full&sslrootcert=${folder.file(file)}`),
          'est-url',
        ),
      );
    await expect(start('other-ca.pem')).rejects.toThrow(/certificate/);
    await expect(start('missing.pem')).rejects.toThrow(/store\.url: .*missing\.pem/);
  });

  it('[store.tls]: a server issues over it, with a client certificate', async () => {
    const estuary = await Estuary.start(
      withStoreIn(
        {
          configure(config, dir) {
            for (const name of ['ca.pem', 'client.pem', 'client.key']) copyFileSync(folder.file(name), join(dir, name));
            Object.assign(section(config, 'store', 'tls'), {
              trust_anchors: 'ca.pem',
              client_certificate: 'client.pem',
              client_key: 'client.key',
            });
          },
        },
        url('localhost', ROLE),
        'est-1',
      ),
    );
    try {
      const { token } = await estuary.otp();
      expect((await estuary.enroll(onTheWire(simpleCsr(makeKey())), { password: token })).status).toBe(200);
      const encrypted = `SELECT DISTINCT ssl, client_dn FROM pg_stat_ssl JOIN pg_stat_activity USING (pid)
        WHERE application_name LIKE 'estuary%'`;
      expect(await cluster?.sql(encrypted)).toEqual([['t', `/CN=${ROLE}`]]);
    } finally {
      await estuary.stop();
    }
  });
});
