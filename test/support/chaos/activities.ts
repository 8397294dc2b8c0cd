/** Enrollments that depend on other services that can fail: a KDC, gssproxy, a remote CA. */
import { makeKey, onTheWire, simpleCsr } from '../csr.ts';
import { REALM } from '../kdc.ts';
import { keep, token } from '../mixed-load/devices.ts';
import type { Activity } from '../mixed-load/load.ts';
import { initialToken } from '../negotiate.ts';
import type { ChaosSetting } from './setting.ts';
import { pause } from '../until.ts';

export const kerberosUser = ({ kdc, estuary }: ChaosSetting): Activity => ({
  name: 'kerberos',
  clients: 1,
  pause: 1000,
  begin: (load) => {
    const csr = onTheWire(simpleCsr(makeKey(), 'whatever'));
    return {
      async round() {
        const answer = await load.ask('kerberos', [200], async () => {
          const negotiate = await initialToken({ env: kdc.env, cache: await kdc.login('alice') });
          const reply = await estuary.enroll(csr, { headers: { Authorization: `Negotiate ${negotiate}` } });
          // While gssproxy is away nobody can say whose ticket it is.
          if (reply.status === 401) throw new Error('the ticket was refused');
          return reply;
        });
        if (answer?.status === 200) keep(load, answer, `alice@${REALM}`, false);
      },
    };
  },
});

export const throughDogtag: Activity = {
  name: 'dogtag',
  clients: 1,
  pause: 300,
  begin: (load) => {
    const key = makeKey();
    return {
      async round() {
        const name = load.name('remote');
        const password = await token(load, { client_id: name, ca: 'dogtag' });
        if (password === undefined) return;
        const csr = onTheWire(simpleCsr(key, name));
        const ask = () =>
          load.ask('dogtag', [200, 202], () => load.estuary.enroll(csr, { password, path: 'dogtag/simpleenroll' }));
        // 202: it was sent to the CA, and the server finds out what became of it.
        for (let tries = 0; tries < 240; tries++) {
          const answer = await ask();
          if (answer?.status === 200) keep(load, answer, name, true);
          if (answer?.status !== 202) return;
          await pause(500);
        }
        load.book.problem(`${name}: 202 for two minutes`);
      },
    };
  },
};
