/** A GSS-API client: prints its first token, and with WAIT_FOR_REPLY what it makes of the server's (see negotiate.ts). */
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import kerberos from 'kerberos';

const [service = '', flags = '', mechanism = '', count = '1'] = process.argv.slice(2);
// The package reads `flags`; its type declarations call it `gssFlag`.
const options = {
  flags: Number(flags),
  mechOID: mechanism === 'krb5' ? kerberos.GSS_MECH_OID_KRB5 : kerberos.GSS_MECH_OID_SPNEGO,
};

if (process.env['WAIT_FOR_REPLY'] === undefined) {
  for (let made = 0; made < Number(count); made++) {
    const client = await kerberos.initializeClient(service, options);
    console.log(await client.step(''));
  }
} else {
  const client = await kerberos.initializeClient(service, options);
  console.log(await client.step(''));
  const input = createInterface(process.stdin);
  const [reply] = (await once(input, 'line')) as [string];
  input.close();
  try {
    await client.step(reply);
    console.log(client.contextComplete ? 'complete' : 'incomplete');
  } catch (error) {
    console.log(`refused: ${String(error)}`);
  }
}
