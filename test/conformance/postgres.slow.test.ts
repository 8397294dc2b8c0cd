import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { section, Estuary } from '../support/estuary.ts';
import { makeKey, onTheWire, simpleCsr } from '../support/csr.ts';
import { type PostgresCluster, sharedPostgres } from '../support/postgres.ts';
import { requires } from '../support/requires.ts';
import { withStoreIn } from '../support/store-in-postgres.ts';

describe.skipIf(!requires('postgres'))('contract §12: nodes on one PostgreSQL', () => {
  let cluster: PostgresCluster;
  let url: string;
  const nodes: Estuary[] = [];
  beforeAll(async () => {
    cluster = await sharedPostgres();
    url = await cluster.createDatabase();
    const key = randomBytes(32);
    // The second has a process that writes, and workers.
    for (const workers of [1, 2]) {
      const configure = (config: Parameters<typeof section>[0]): void => {
        section(config, 'server')['workers'] = workers;
      };
      nodes.push(await Estuary.start(withStoreIn({ configure }, url, `node-${workers}`, key)));
    }
  });
  afterAll(async () => {
    for (const node of nodes) await node.stop();
    await cluster.dropDatabase(url);
  });

  test('a token made at one is used at the other, once over both; both list the certificate, and who issued it', async () => {
    const [one, other] = nodes;
    if (one === undefined || other === undefined) throw new Error('no nodes');
    const { token } = await one.otp();
    const csr = onTheWire(simpleCsr(makeKey()));
    expect((await other.enroll(csr, { password: token })).status).toBe(200);
    const again = onTheWire(simpleCsr(makeKey()));
    expect((await one.enroll(again, { password: token })).status).toBe(401);
    const { json } = await one.admin('GET', '/admin/certificates');
    expect(json['items']).toMatchObject([{ subject: 'CN=device-1' }]);
    const issued = await one.admin('GET', '/admin/audit?type=certificate.issued');
    expect(issued.json['items']).toMatchObject([{ node: 'node-2', type: 'certificate.issued' }]);
  });
});
