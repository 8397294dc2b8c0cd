/**
 * The layers of src/ (docs/architecture.md): arrows run one way, and nothing imports in a circle.
 * A folder may import what stands below it, and the modules that know nothing of the house (errors, log, process …).
 */
const LAYERS = [
  ['main'],
  ['http', 'client'],
  ['notification'],
  ['cmc', 'publication', 'fleet'],
  ['administration'],
  ['enrollment'],
  ['ca', 'auth'],
  ['store'],
  ['audit', 'config', 'est-protocol'],
  ['pki'],
];
const BASE = [
  'process',
  'error-codes.ts',
  'errors.ts',
  'log.ts',
  'counted-repeats.ts',
  'request-context.ts',
  'dependency-calls.ts',
  'service-state-metrics.ts',
  'folders.ts',
  'version.ts',
  'ready-lines.ts',
  'retry-after.ts',
  'outgoing-proxy.ts',
  'https-client.ts',
  'proxy-url.ts',
];

/**
 * A driver of a CA is one folder, with its keys of the configuration. So the configuration is put together from the list
 * of the drivers; their folders import the builders of keys and the reader of files, and never the whole configuration.
 */
const REGISTRIES = '^src/ca/drivers\\.ts$';

const path = (names) => `^src/(?:${names.map((name) => name.replace('.', '\\.')).join('|')})(?:/|$)`;

const forbidden = [
  {
    name: 'no-circle',
    severity: 'error',
    comment: 'Two things that need each other are one, or want a third.',
    from: { path: '^(?:console/)?src/' },
    to: { circular: true },
  },
  {
    name: 'base-knows-nothing',
    severity: 'error',
    comment: 'errors, log, process … are for every layer, so they import none.',
    from: { path: path(BASE) },
    to: { path: path(LAYERS.flat()) },
  },
  {
    name: 'client-is-no-server',
    severity: 'error',
    comment:
      'The EST client is installed on devices: it takes the protocol, pki, the errors, Retry-After, and how files and TOML are read, and nothing of the server.',
    from: { path: '^src/client/' },
    to: {
      path: '^src/',
      pathNot:
        '^src/(client|est-protocol|pki)/|^src/(errors|error-codes|(?:outgoing-proxy|proxy-url)|retry-after)\\.ts$|^src/config/(content|nearest|problem|toml)\\.ts$',
    },
  },
  {
    name: 'registry-for-config',
    severity: 'error',
    comment: 'Below src/ca, only the configuration asks which drivers there are.',
    from: { path: path([...LAYERS.slice(7).flat(), ...BASE]), pathNot: '^src/config/' },
    to: { path: REGISTRIES },
  },
  {
    name: 'driver-stands-alone',
    severity: 'error',
    comment:
      'A driver uses src/ca/remote, the issuance of src/ca/local and tokens (src/ca/pkcs11), and no other driver.',
    from: { path: '^src/ca/(local|pkcs11|dogtag|est|acme|command)/' },
    to: { path: '^src/ca/(dogtag|est|acme|command)/', pathNot: '^src/ca/$1/' },
  },
  ...LAYERS.flatMap((folders, floor) =>
    folders.map((folder) => ({
      name: `below-${folder}`,
      severity: 'error',
      comment: `src/${folder} is imported by what stands above it, never by what stands below or beside it.`,
      from: { path: path([...LAYERS.slice(floor).flat(), ...BASE]), pathNot: path([folder]) },
      to: { path: path([folder]), pathNot: REGISTRIES },
    })),
  ),
];

/** The floors of the console, from the top; above them are the files of console/src. */
const FLOORS = ['pages', 'ui', 'shared', 'api'];
forbidden.push({
  name: 'console-outside',
  severity: 'error',
  comment: 'The files of console/src put the console together; no folder imports them.',
  from: { path: '^console/src/[^/]+/' },
  to: { path: '^console/src/[^/]+$' },
});
for (const [floor, folder] of FLOORS.entries())
  forbidden.push({
    name: `console-below-${folder}`,
    severity: 'error',
    comment: `console/src/${folder} is imported by what stands above it.`,
    from: { path: `^console/src/(?:${FLOORS.slice(floor + 1).join('|')})/` },
    to: { path: `^console/src/${folder}/` },
  });

module.exports = {
  forbidden,
  options: {
    doNotFollow: { path: 'node_modules' },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
  },
};
