/** OpenLDAP's server with a small directory of devices, over LDAP with StartTLS and over LDAPS. */
import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { writeFileSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { OID } from '../../src/pki/der/oids.ts';
import { encodePem } from '../../src/pki/der/pem.ts';
import { dns, extKeyUsage, ip, makeCa, makeClient, subjectAltName } from './certificates.ts';
import { temporaryFolder } from './openssl.ts';
import { accepts, freePorts } from './ports.ts';
import { findCommand } from './requires.ts';
import { killed, untilReady } from './spawned.ts';

export const PASSWORD = 'correct horse';
export const READER = { dn: 'cn=reader,dc=example', password: 'reads devices' };
/** Writes the files, and returns the keys of `[auth.ldap]`, for a server that searches as the reader. */
export function searchesAsReader(dir: string, { ca }: Pick<Slapd, 'ca'>, port: number) {
  writeFileSync(join(dir, 'directory-ca.pem'), ca);
  writeFileSync(join(dir, 'reader'), `${READER.password}\n`, { mode: 0o600 });
  return {
    url: `ldaps://localhost:${port}`,
    trust_anchors: 'directory-ca.pem',
    search_base: 'ou=devices,dc=example',
    bind_dn: READER.dn,
    bind_password_file: 'reader',
  };
}

export const GROUP = 'cn=enrollers,dc=example';
/** With a memberUid instead of a member. */
export const POSIX_GROUP = 'cn=posix,dc=example';

/** As in Active Directory: the primary group of `computer-1` has its objectSid, and no member for it. */
export const PRIMARY_GROUP = 'cn=Domain Computers,dc=example';

/** The objectSid S-1-5-21-1-2-3-RID (MS-DTYP §2.4.2.2). */
const sid = (rid: number): string => {
  const numbers = Buffer.alloc(20);
  for (const [index, number] of [21, 1, 2, 3, rid].entries()) numbers.writeUInt32LE(number, 4 * index);
  return Buffer.concat([Buffer.of(1, 5, 0, 0, 0, 0, 0, 5), numbers]).toString('base64');
};

/** Devices: uid, and whether the group has it. */
const DEVICES = {
  'device-1': true,
  'device-2': false,
  'O\'Brien, "x" (*)\\#ü': true,
} as const;

const base64 = (text: string): string => Buffer.from(text, 'utf8').toString('base64');
const dnOf = (uid: string): string =>
  `uid=${[...Buffer.from(uid, 'utf8')].map((octet) => `\\${octet.toString(16).padStart(2, '0')}`).join('')},ou=devices,dc=example`;

function entry(dn: string, uids: readonly string[], more: readonly string[] = []): string {
  const names = uids.map((uid) => `uid:: ${base64(uid)}\n`).join('');
  return (
    `dn:: ${base64(dn)}\nobjectClass: inetOrgPerson\ncn: Device\nsn: Device\n` +
    `${names}userPassword: ${PASSWORD}\n${more.map((line) => `${line}\n`).join('')}\n`
  );
}

const LDIF = `dn: dc=example
objectClass: dcObject
objectClass: organization
dc: example
o: Example

dn: ou=devices,dc=example
objectClass: organizationalUnit
ou: devices

dn: ${READER.dn}
objectClass: organizationalRole
objectClass: simpleSecurityObject
cn: reader
userPassword: ${READER.password}

${Object.keys(DEVICES)
  .map((uid) => entry(dnOf(uid), [uid], ['employeeNumber: 4711', 'l: Hall 1', 'l: Hall 2']))
  .join(
    '',
  )}${entry('cn=two names,ou=devices,dc=example', ['two-names', 'other-name'], [])}${entry('cn=odd,ou=devices,dc=example', ['odd'], [`title: ${'t'.repeat(256)}`, `ou: ${'o'.repeat(257)}`, `o:: ${base64('a\tb')}`])}${entry('cn=twin a,ou=devices,dc=example', ['twin-a'], ['mail: twin@example.com'])}${entry('cn=twin b,ou=devices,dc=example', ['twin-b'], ['mail: twin@example.com'])}${['a', 'b', 'c'].map((name) => entry(`cn=triplet ${name},ou=devices,dc=example`, [`triplet-${name}`], ['mail: triplet@example.com', `audio:: ${Buffer.of(0xff).toString('base64')}`])).join('')}dn: ou=elsewhere,dc=example
objectClass: referral
objectClass: extensibleObject
ou: elsewhere
ref: ldap://127.0.0.1:1/ou=elsewhere,dc=example

dn: cn=policy,dc=example
objectClass: device
objectClass: pwdPolicy
cn: policy
pwdAttribute: userPassword
pwdMustChange: TRUE

dn: ${GROUP}
objectClass: groupOfNames
cn: enrollers
${Object.entries(DEVICES)
  .filter(([, isMember]) => isMember)
  .map(([uid]) => `member:: ${base64(dnOf(uid))}\n`)
  .join('')}
${entry(dnOf('reset'), ['reset'], ['pwdReset: TRUE'])}${entry(dnOf('computer-1'), ['computer-1'], ['objectClass: account-with-sid', `objectSid:: ${sid(1104)}`, 'primaryGroupID: 515'])}dn: ${PRIMARY_GROUP}
objectClass: groupOfNames
objectClass: account-with-sid
cn: Domain Computers
objectSid:: ${sid(515)}
member: ${READER.dn}

dn: ${POSIX_GROUP}
objectClass: posixGroup
cn: posix
gidNumber: 100
memberUid: device-1

`;

export class Slapd {
  /** PEM of the CA that its certificate, for localhost, comes from. */
  readonly ca: string;
  readonly ports: { readonly ldap: number; readonly ldaps: number };
  readonly #child: ChildProcess;
  readonly #folder: ReturnType<typeof temporaryFolder>;

  private constructor(
    ca: string,
    ports: { readonly ldap: number; readonly ldaps: number },
    child: ChildProcess,
    folder: ReturnType<typeof temporaryFolder>,
  ) {
    this.ca = ca;
    this.ports = ports;
    this.#child = child;
    this.#folder = folder;
  }

  /** @param more names of further devices */
  static async start(more: readonly string[] = []): Promise<Slapd> {
    const folder = temporaryFolder();
    const issuer = await makeCa('CN=Directory CA');
    const server = await makeClient('CN=directory', issuer, {
      extensions: [extKeyUsage(OID.serverAuth), subjectAltName(dns('localhost'), ip('127.0.0.9'))],
    });
    const ca = encodePem('CERTIFICATE', issuer.der);
    writeFileSync(folder.file('cert.pem'), encodePem('CERTIFICATE', server.der));
    writeFileSync(folder.file('key.pem'), server.keys.privateKey.export({ format: 'pem', type: 'pkcs8' }), {
      mode: 0o600,
    });
    mkdirSync(folder.file('db'));
    writeFileSync(folder.file('data.ldif'), LDIF + more.map((uid) => entry(dnOf(uid), [uid])).join(''));
    writeFileSync(
      folder.file('slapd.conf'),
      `include /etc/ldap/schema/core.schema
include /etc/ldap/schema/cosine.schema
include /etc/ldap/schema/inetorgperson.schema
include /etc/ldap/schema/nis.schema
attributetype ( 1.2.840.113556.1.4.146 NAME 'objectSid' EQUALITY octetStringMatch SYNTAX 1.3.6.1.4.1.1466.115.121.1.40 )
attributetype ( 1.2.840.113556.1.4.98 NAME 'primaryGroupID' EQUALITY integerMatch SYNTAX 1.3.6.1.4.1.1466.115.121.1.27 )
objectclass ( 2.999.1 NAME 'account-with-sid' AUXILIARY MAY ( objectSid $ primaryGroupID ) )
modulepath /usr/lib/ldap
moduleload back_mdb
moduleload ppolicy
pidfile ${folder.file('slapd.pid')}
TLSCertificateFile ${folder.file('cert.pem')}
TLSCertificateKeyFile ${folder.file('key.pem')}
database mdb
suffix "dc=example"
directory ${folder.file('db')}
overlay ppolicy
ppolicy_default "cn=policy,dc=example"
access to attrs=userPassword by anonymous auth by * none
access to dn.exact="${GROUP}" by users read by * none
access to dn.exact="${PRIMARY_GROUP}" by users read by * none
access to dn.exact="${POSIX_GROUP}" by users read by * none
access to * by self read by dn.exact="${READER.dn}" read by * none
`,
    );
    const program = findCommand('slapd') ?? 'slapd';
    const configuration = ['-f', folder.file('slapd.conf')];
    execFileSync(findCommand('slapadd') ?? 'slapadd', [...configuration, '-l', folder.file('data.ldif')], {
      stdio: 'pipe',
    });
    const [ldap = 0, ldaps = 0] = await freePorts(2);
    const urls = `ldap://127.0.0.1:${ldap}/ ldaps://127.0.0.1:${ldaps}/`;
    const child = spawn(program, ['-d', '0', '-h', urls, ...configuration], { stdio: 'ignore' });
    const made = new Slapd(ca, { ldap, ldaps }, child, folder);
    await untilReady('slapd', async () => (await accepts(ldap)) && (await accepts(ldaps)));
    return made;
  }

  async stop(): Promise<void> {
    await killed(this.#child);
    this.#folder.remove();
  }
}
