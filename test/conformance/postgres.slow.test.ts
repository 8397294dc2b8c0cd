import { randomBytes, X509Certificate } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { runAny } from '../support/command.ts';
import { caSection, section, Estuary } from '../support/estuary.ts';
import { makeKey, onTheWire, simpleCsr } from '../support/csr.ts';
import { type PostgresCluster, sharedPostgres } from '../support/postgres.ts';
import { requires } from '../support/requires.ts';
import { NODE, SERVER } from '../support/server-process.ts';
import { withStoreIn } from '../support/store-in-postgres.ts';

describe.skipIf(!requires('postgres'))('nodes on one PostgreSQL', () => {
  let cluster: PostgresCluster;
  let url: string;
  const nodes: Estuary[] = [];
  beforeAll(async () => {
    cluster = await sharedPostgres();
    url = await cluster.createDatabase();
    const key = randomBytes(32);
    for (const name of ['node-1', 'node-2']) nodes.push(await Estuary.start(withStoreIn({}, url, name, key)));
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

  test('a reload of one node does not change the other', async () => {
    const [one, other] = nodes;
    if (one === undefined || other === undefined) throw new Error('no nodes');
    const days = async (node: Estuary): Promise<number> => {
      const { cert } = await node.enrolled(makeKey());
      const { validFrom, validTo } = new X509Certificate(cert);
      return Math.round((Date.parse(validTo) - Date.parse(validFrom)) / 86_400_000);
    };
    const before = await days(one);
    other.reconfigure((config) => (section(caSection(config), 'profile')['validity_days'] = 5));
    const { status, json } = await other.admin('POST', '/admin/reload');
    expect([status, json['changed'], json['needs_restart']]).toEqual([200, ['ca[devices].profile.validity_days'], []]);
    expect([await days(one), await days(other), await days(other)]).toEqual([before, 5, 5]);
  });

  test('`backup` refuses, and says what to do', async () => {
    const [one] = nodes;
    if (one === undefined) throw new Error('no nodes');
    const to = join(one.dir, 'backup');
    const args = ['backup', '--to', to, '--config', join(one.dir, 'est.toml')];
    const { code, output } = await runAny(NODE, [SERVER, ...args]);
    expect(code).toBe(1);
    expect(output).toMatch(
      /store\.driver is "postgres": back up and restore the database with PostgreSQL's tools: .*pg_dump/,
    );
    expect(existsSync(to)).toBe(false);
  });
});
