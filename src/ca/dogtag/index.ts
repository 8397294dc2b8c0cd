/** `driver = "dogtag"`: a CA behind Dogtag PKI. */
import { choice, list, optional, path, seconds, type Static, table, text } from '../../config/keys.ts';
import { loadChain, loadOthers } from '../../config/material/ca.ts';
import {
  firstOf,
  type CaCertificates,
  type CaMaterial,
  type Certificates,
  type KeyPair,
} from '../../config/material/material.ts';
import type { MaterialReader } from '../../config/material/reader.ts';
import { urlCheck } from '../../config/schema/formats.ts';
import { caCertificate, remoteCaKeys } from '../../config/schema/label.ts';
import { isSameConfig } from '../../config/secret.ts';
import { type DriverDefinition, labeledLog, type DriverContext, type Predecessor } from '../driver.ts';
import { clientTls } from '../remote/client-tls.ts';
import { ChainKeeping } from '../remote/chain-keeping.ts';
import { fingerprints } from '../remote/create.ts';
import { RemoteChain } from './chain.ts';
import { CmcService } from './cmc.ts';
import { type AskedProfile, DogtagCa } from './dogtag-ca.ts';
import { Kra } from './kra.ts';
import { Replicas } from './replicas.ts';

const dogtagUrl = () =>
  text({
    description: 'The URL of one replica.',
    allowed: 'an https URL such as "https://pki1:8443"',
    check: urlCheck('https'),
  });

const dogtagKeys = table('A CA behind Dogtag PKI.', {
  ...remoteCaKeys,
  driver: choice(['dogtag'], { description: 'Where the CA is: in Dogtag PKI.' }),
  certificate: optional(caCertificate()),
  dogtag: table('A CA behind Dogtag PKI.', {
    urls: list(dogtagUrl(), { description: 'The replicas of one CA.', minItems: 1 }),
    trust_anchors: path({
      description: "PEM file with the CA certificates behind the replicas' TLS certificates.",
    }),
    client_certificate: path({ description: "PEM file with the agent's certificate." }),
    client_key: path({ description: "PEM file with the agent's private key." }),
    profile: text({
      description: 'The enrollment profile.',
      default: 'caServerCert',
      allowed: "a profile's name",
      pattern: /^[A-Za-z0-9._-]{1,128}$/,
    }),
    input_class: optional.text({
      description: "The class of the profile's input that takes the request; the profile is asked, unless given.",
      allowed: 'a class such as "certReqInputImpl"',
      pattern: /^[A-Za-z0-9]{1,128}$/,
    }),
    cmc_profile: text({
      description: 'The profile that CMC requests are forwarded to.',
      default: 'caFullCMCUserCert',
      allowed: "a profile's name",
      pattern: /^[A-Za-z0-9._-]{1,128}$/,
    }),
    kra_urls: list(dogtagUrl(), {
      description: 'The replicas of the key recovery authority where keys are archived; empty for none.',
      default: [],
    }),
    timeout: seconds(1, 600, {
      description: 'How long the CA may take for one operation, whatever number of replicas it needs.',
      default: 10,
    }),
    check_interval: seconds(1, 3600, {
      description: 'How often each replica is checked; one that is out of use, every two seconds at least.',
      default: 10,
    }),
    lost_after: seconds(1, 604800, {
      description:
        'How long the CA may not know a request that it has taken, while its directory works, before it counts as lost.',
      default: 600,
    }),
  }),
});

type DogtagCaTable = Static<typeof dogtagKeys>;

interface DogtagCaMaterial extends CaMaterial {
  readonly table: DogtagCaTable;
  readonly trustAnchors: Certificates;
  /** The agent's. */
  readonly client: KeyPair;
}

export const dogtagDriver: DriverDefinition<DogtagCaTable, DogtagCaMaterial> = {
  keys: dogtagKeys,
  name: 'dogtag',
  remote: 'Dogtag',
  dependency: 'dogtag',
  async load(reader, ca, key) {
    const { trust_anchors, client_certificate, client_key } = ca.dogtag;
    const at = `${key}.dogtag`;
    const trustAnchors = await reader.anchors(`${at}.trust_anchors`, trust_anchors);
    const effect = 'Dogtag does not accept it';
    const client = await reader.pair(
      `${at}.client_certificate`,
      client_certificate,
      `${at}.client_key`,
      client_key,
      effect,
    );
    const certificates = ca.certificate === undefined ? undefined : await loadPinned(reader, ca, key, ca.certificate);
    const others = await loadOthers(reader, ca, key);
    if (trustAnchors === undefined || client === undefined) return undefined;
    if (ca.certificate !== undefined && certificates === undefined) return undefined;
    const expiring = { agent: firstOf(client), dogtag_anchor: trustAnchors };
    return { table: ca, certificates, trustAnchors, client, expiring, ...others };
  },
  create: createDogtagCa,
  archivesKeys: ({ dogtag }) => dogtag.kra_urls.length > 0,
};

/** `certificate` and `chain`, which pin what the server says. */
async function loadPinned(
  reader: MaterialReader,
  { chain }: DogtagCaTable,
  key: string,
  file: string,
): Promise<CaCertificates | undefined> {
  const pinned = await reader.kept(
    `${key}.certificate`,
    file,
    ({ cas }) => cas,
    async () => {
      const certificates = await loadChain(reader, key, file, chain);
      return certificates && { certificates, privateKey: undefined };
    },
  );
  return pinned?.certificates;
}

/** What the driver uses of its table and files. */
type DogtagMaterial = Pick<DogtagCaMaterial, 'certificates' | 'trustAnchors' | 'client'> & {
  readonly table: Pick<DogtagCaTable, 'label' | 'dogtag'> & {
    readonly profile: Pick<DogtagCaTable['profile'], 'key_escrow'> & AskedProfile;
  };
};

/**
 * A CA behind Dogtag, not started, or the one before a reload if nothing changed for it. The server may be down at
 * start.
 * @throws EstuaryError 500 `CA_UNUSABLE` if the agent's key cannot sign
 */
export function createDogtagCa(
  material: DogtagMaterial,
  { retryAfter, log, makeMutex, store, now }: Pick<DriverContext, 'retryAfter' | 'log' | 'makeMutex' | 'store' | 'now'>,
  before?: Predecessor<DogtagCaMaterial>,
): DogtagCa {
  if (before?.driver instanceof DogtagCa && isSame(material, before.material)) return before.driver;
  const { table: config } = material;
  const { label, dogtag } = config;
  const keeping = new ChainKeeping({ label, store, anchors: material.trustAnchors, log: labeledLog(log, label), now });
  const chain = new RemoteChain(material.certificates, keeping);
  const timeout = dogtag.timeout * 1000;
  const common = {
    tls: clientTls(material),
    timeout,
    checkInterval: dogtag.check_interval * 1000,
    retryAfter,
    log: labeledLog(log, label),
  };
  const replicas: Replicas = new Replicas({ ...common, urls: dogtag.urls, subsystem: 'ca' }, () =>
    chain.refresh(replicas),
  );
  const cmc = new CmcService({
    replicas,
    agent: material.client,
    profile: dogtag.cmc_profile,
    retryAfter,
    chain,
    label,
    makeMutex,
    now: Date.now,
  });
  const archives = dogtag.kra_urls.length > 0 && config.profile.key_escrow !== false;
  const kra = archives
    ? new Kra(new Replicas({ ...common, urls: dogtag.kra_urls, subsystem: 'kra' }), Date.now)
    : undefined;
  return new DogtagCa({
    replicas,
    chain,
    cmc,
    kra,
    profile: dogtag.profile,
    asked: config.profile,
    inputClass: dogtag.input_class,
    lostAfter: dogtag.lost_after * 1000,
    timeout,
    retryAfter,
    now,
  });
}

/** Compares certificates only, since a private key belongs to its certificate. */
const isSame = (now: DogtagMaterial, before: DogtagMaterial): boolean => isSameConfig(factsOf(now), factsOf(before));

const factsOf = ({ table: { dogtag, profile }, certificates, trustAnchors, client }: DogtagMaterial): unknown[] => [
  dogtag,
  profile,
  certificates && fingerprints([certificates.certificate, ...certificates.issuers, ...certificates.rollover]),
  fingerprints(trustAnchors),
  fingerprints(client.certificates),
];
