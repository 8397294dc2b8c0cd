/** What a verifier of Kerberos tickets answers while its child process does not run. */
import { expect, test } from 'vitest';
import { KerberosVerifier } from '../../../src/auth/gssapi/kerberos-verifier.ts';
import { KeptLog } from '../../support/kept-log.ts';
import { REALM, SERVICE } from '../../support/kdc.ts';

test('without its process, tickets get 503, and clients a reason to go elsewhere', async () => {
  const config = { service_principal: SERVICE, gssproxy: true };
  const verifier = new KerberosVerifier({ config, environment: {}, log: new KeptLog() });
  expect(verifier.down).toBe('not started');
  expect(await verifier.missingCredentials()).toBe('not started');
  const ticket = { realm: REALM, components: ['HTTP', 'localhost'] };
  await expect(verifier.verify('', ticket)).rejects.toMatchObject({ code: 'GSSAPI_DOWN', detail: 'not started' });
});
