/**
 * The configuration schema: keys, static types, defaults, bounds, and the text of docs/reference/configuration.md. `Config` is
 * what the service uses: checked, deeply frozen, with absolute paths, loaded secrets and all defaults; names are those
 * of the TOML.
 */
import { IsObject, type TObject, type TSchema } from 'typebox';
import { Check } from 'typebox/value';
import { DRIVERS } from '../ca/drivers.ts';
import { choice, integer, list, optional, type Static, table, variants } from './keys.ts';
import { admin } from './schema/admin.ts';
import { auth, gssapi, otp } from './schema/auth.ts';
import { labelKeys, labelText } from './schema/label.ts';
import { notifications } from './schema/notifications.ts';
import { est, server, tls } from './schema/server.ts';
import { audit, cmc, fleet, log, publication, requests, retention, serverkeygen, store } from './schema/services.ts';

const rate = (description: string) => optional(integer(1, 1000000, { description, defaultText: 'unlimited' }));

const limits = table('How many requests are taken. Connections have limits of their own in `[server]`.', {
  requests_per_second_per_address: rate(
    'How many requests a second each listener of each process takes from one address (for IPv6, one /64), with bursts of twice as many; beyond, 503 with Retry-After.',
  ),
  requests_per_second: rate(
    'How many requests a second each listener of each process takes in all, with bursts of twice as many; beyond, 503 with Retry-After.',
  ),
});

const ca = list(
  variants(
    'driver',
    DRIVERS.map(({ keys }) => keys),
    { description: 'One certificate authority.' },
  ),
  { description: 'The certificate authorities, one table each.', minItems: 1, live: true },
);

/** `[[label]]`: further labels of a CA. */
const label = list(
  table('A further label of a CA; nothing is taken over from the tables of the CA.', {
    name: labelText('The EST label: the path segment that routes a request here.'),
    ca: labelText('The label of the CA whose key signs; one with a key of ours.'),
    ...labelKeys,
  }),
  {
    description:
      'Further labels of the CAs (docs/guides/names.md): one key, serial numbers, CRL and OCSP, and for each label a separate profile and rules. A certificate of one label neither authenticates nor is renewed at another.',
    default: [],
    live: true,
  },
);

const ConfigSchema = table('The configuration file.', {
  profile: optional(
    choice(['niap'], {
      description:
        'Turns on the checks of a compliance profile: the server refuses to start on a weaker configuration.',
      defaultText: 'no profile',
    }),
  ),
  server,
  limits,
  est,
  tls,
  admin,
  otp,
  gssapi,
  auth,
  serverkeygen,
  cmc,
  publication,
  requests,
  store,
  audit,
  retention,
  fleet,
  log,
  ca,
  label,
  notifications,
});

export type Config = Static<typeof ConfigSchema>;

export type CaConfig = Config['ca'][number];
export type RequesterMethod = NonNullable<CaConfig['auth']['methods']>[number];
export type NotificationConfig = Config['notifications'][number];
export type ConfiguredRenewal = CaConfig['renewal'];
export type { ProfileConfig } from './schema/profile.ts';
export type CsrAttrsConfig = NonNullable<CaConfig['csrattrs']>;

/** The schema for the reader, the reference and the reload. */
export const configSchema: TObject = asTable(ConfigSchema);

function asTable(schema: TSchema): TObject {
  if (!IsObject(schema)) throw new TypeError('the configuration is a table');
  return schema;
}

/**
 * A value that was built from the schema, as a frozen `Config`.
 * @throws TypeError for another value (a programming error)
 */
export function asConfig(value: unknown): Config {
  if (!Check(ConfigSchema, value)) throw new TypeError('the value does not follow the schema of the configuration');
  return deepFreeze(value);
}

function deepFreeze<T>(value: T): T {
  if (typeof value === 'object' && value !== null && !Object.isFrozen(value))
    Object.values(Object.freeze(value)).forEach(deepFreeze);
  return value;
}
