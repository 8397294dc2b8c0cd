/** Concurrent activities of administrators. */
import { X509Certificate } from 'node:crypto';
import { makeKey, onTheWire, simpleCsr } from '../csr.ts';
import type { Answer } from '../https.ts';
import { enroll, keep, token } from './devices.ts';
import type { Activity } from './load.ts';

export const revoking: Activity = {
  name: 'revoke',
  clients: 1,
  pause: 500,
  begin(load) {
    const key = makeKey();
    return {
      async round() {
        const device = await enroll(load, 'enroll', key);
        if (device === undefined) return;
        const serial = new X509Certificate(device.client.cert).serialNumber.toLowerCase();
        const path = `/admin/certificates/${serial}/revoke`;
        // 409: revoked already, by an attempt whose answer was lost.
        const wanted = load.faults ? [200, 409] : [200];
        const answer = await load.ask('revoke', wanted, () =>
          load.estuary.admin('POST', path, { reason: 'keyCompromise' }),
        );
        if (answer === undefined) return;
        load.book.revoked.add(serial);
        const csr = onTheWire(simpleCsr(key, device.name));
        await load.ask('renew a revoked one', [401], () =>
          load.estuary.enroll(csr, { client: device.client, path: 'simplereenroll' }),
        );
      },
    };
  },
};

export const approving: Activity = {
  name: 'approve',
  clients: 1,
  pause: 200,
  begin(load) {
    const key = makeKey();
    let rounds = 0;
    const idOf = async (name: string): Promise<string | undefined> => {
      const path = `/admin/requests?status=pending&requester=${name}`;
      const answer = await load.ask('look up a request', [200], () => load.estuary.admin('GET', path));
      return /"id":"([^"]+)"/.exec(JSON.stringify(answer?.json ?? {}))?.[1];
    };
    return {
      async round() {
        const name = load.name('queued');
        const password = await token(load, { client_id: name });
        if (password === undefined) return;
        const post = (): Promise<Answer> =>
          load.estuary.enroll(onTheWire(simpleCsr(key, name)), { password, path: 'lab/simpleenroll' });
        if ((await load.ask('queue', [202], post))?.status !== 202) return;
        const id = await idOf(name);
        if (id === undefined) {
          load.book.problem(`${name}: 202, and it is not in the queue`);
          return;
        }
        const rejected = ++rounds % 3 === 0;
        const [decision, body] = rejected ? ['reject', { reason: 'unknown' }] : ['approve', {}];
        const wanted = load.faults ? [200, 409] : [200];
        const decided = await load.ask(decision, wanted, () =>
          load.estuary.admin('POST', `/admin/requests/${id}/${decision}`, body),
        );
        if (decided === undefined) return;
        const answer = await load.ask('fetch', [rejected ? 403 : 200], post);
        if (answer?.status === 200) keep(load, answer, name, true);
      },
    };
  },
};

export const reloading: Activity = {
  name: 'reload',
  clients: 1,
  pause: 3000,
  begin(load) {
    let rounds = 0;
    return {
      async round() {
        const level = ++rounds % 2 === 0 ? 'info' : 'warn';
        load.estuary.reconfigure((config) => {
          config['log'] = { level };
        });
        load.estuary.server.signal('SIGHUP');
        const report = await load.ask('reload', [200], () => load.estuary.admin('POST', '/admin/reload'));
        const ready = await load.ask('look', [200], () => load.estuary.admin('GET', '/readyz'));
        if (!load.faults && report !== undefined && ready?.json['status'] !== 'ok')
          load.book.problem(`readyz: ${JSON.stringify(ready?.json)}`);
      },
    };
  },
};

export const looking: Activity = {
  name: 'look',
  clients: 1,
  pause: 300,
  begin(load) {
    const PATHS = [
      '/healthz',
      '/admin/certificates?limit=20',
      '/admin/otp?limit=20',
      '/admin/audit?limit=20',
      '/admin/cas',
    ];
    let rounds = 0;
    return {
      async round() {
        const path = PATHS[rounds++ % PATHS.length] ?? '/healthz';
        await load.ask('look', [200], () => load.estuary.admin('GET', path));
        await load.ask('cacerts', [200], () => load.estuary.est('cacerts'));
        await load.ask('csrattrs', [200, 204], () => load.estuary.est('csrattrs'));
      },
    };
  },
};
