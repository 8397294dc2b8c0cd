/** `driver = "pkcs11"`: a CA whose key is in a PKCS#11 token. */
import type { Problem } from '../../config/problem.ts';
import { choice, integer, optional, seconds, type Static, table } from '../../config/keys.ts';
import { loadOwnCa } from '../../config/material/ca.ts';
import type { OwnCaMaterial } from '../../config/material/material.ts';
import { caCertificate, caKeys, privateKeyInToken } from '../../config/schema/label.ts';
import { isSameConfig } from '../../config/secret.ts';
import { describe, EstuaryError } from '../../errors.ts';
import { isSlotId } from '../../pki/pkcs11-uri.ts';
import { IsolatedError } from '../../process/protocol.ts';
import {
  type CheckContext,
  type DriverDefinition,
  labeledLog,
  type DriverContext,
  type Predecessor,
  type Signer,
} from '../driver.ts';
import { absentSigner, createLocalCa, LocalCa, type LocalCaConfig, type LocalCaContext } from '../local/index.ts';
import { namingFindings, type Pkcs11Key, relatedKey, tokenAccess } from './access.ts';
import { forgetRejectedPins } from './logins.ts';
import { moduleOutput } from './module-output.ts';
import { Pkcs11Signer } from './pkcs11-signer.ts';

const pkcs11Keys = table('A CA whose key is in a PKCS#11 token.', {
  ...caKeys,
  driver: choice(['pkcs11'], { description: 'Where the CA key is: in a PKCS#11 token.' }),
  certificate: caCertificate(),
  pkcs11: table('A CA key in a PKCS#11 token (an HSM).', {
    ...privateKeyInToken,
    library_parameters: optional.text({
      description: "What the library wants to be initialized with, for those that read it from there, as NSS's does.",
      allowed: 'text',
      pattern: /^.+$/su,
    }),
    token_label: optional.text({
      description: 'The label of the token; or use `slot`.',
      allowed: 'text',
      pattern: /^.{1,32}$/su,
    }),
    slot: optional.text({
      description:
        'The slot ID of the token, an integer or a text such as "0x1"; or use `token_label`, which survives a renumbering.',
      allowed: 'a whole number of at most 64 bits',
      form: 'integer',
      check: (value) => (isSlotId(value) ? undefined : `"${value}" is not a slot ID`),
    }),
    max_sessions: integer(1, 256, {
      description: 'Sessions opened at the same time; each serves one signature.',
      default: 8,
    }),
    timeout: seconds(1, 600, {
      description: 'How long the token may take for one call before it counts as hung.',
      default: 10,
    }),
  }),
});

export type Pkcs11CaTable = Static<typeof pkcs11Keys>;

interface Pkcs11CaMaterial extends OwnCaMaterial {
  readonly table: Pkcs11CaTable;
}

export const pkcs11Driver: DriverDefinition<Pkcs11CaTable, Pkcs11CaMaterial> = {
  keys: pkcs11Keys,
  name: 'pkcs11',
  dependency: 'hsm',
  async load(reader, ca, key) {
    await reader.exists(`${key}.pkcs11.module`, ca.pkcs11.module, 'the path of a PKCS#11 library');
    const own = await loadOwnCa(reader, ca, key);
    return own && { table: ca, ...own };
  },
  checks: ({ pkcs11 }, key) => namingFindings(pkcs11, `${key}.pkcs11`, ['token_label', 'slot']),
  create: createPkcs11Ca,
  startProblems: tokenProblems,
  reloading: forgetRejectedPins,
  keyPlace: ({ label }) => `the key of CA ${label}, in its token`,
};

/** `env`: the module's environment, which may name its configuration. */
type Pkcs11Context = Pick<DriverContext, 'env' | 'retryAfter' | 'log'>;

/** An unusable token or key, with the related key of `[ca.pkcs11]`. */
class TokenProblem extends EstuaryError {
  readonly key: Pkcs11Key;
  /** As it is configured: a PIN is in `pin_file`, `pin_env` or a `uri`. */
  readonly named: string;
  readonly reason: string;

  constructor(label: string, key: Pkcs11Key, named: string, cause: Error) {
    super(500, 'CA_UNUSABLE', `ca "${label}": pkcs11.${named}: ${describe(cause)}`, { cause });
    this.name = 'TokenProblem';
    this.key = key;
    this.named = named;
    this.reason = describe(cause);
  }
}

/**
 * A local CA with a key in a token, not started. It issues once the token has shown that it has the certificate's key.
 * @param before its signer stays open if it has the same key in the same token
 * @throws EstuaryError 500 `CA_UNUSABLE` that names the label, the key and the problem
 */
export function createPkcs11Ca(
  material: Pkcs11CaMaterial,
  context: LocalCaContext & Pkcs11Context,
  before?: Predecessor<Pkcs11CaMaterial>,
): LocalCa {
  const { table: config } = material;
  const { publication, now } = context;
  if (material.fault !== undefined)
    return createLocalCa(config, material, absentSigner(config.label, material.certificates.certificate), context);
  const opened = before && openedSigner(material, before);
  if (opened !== undefined) return createLocalCa(config, material, opened, { publication, now });
  const signer = createSigner(config, { ...context, expectedSpki: material.certificates.certificate.spki });
  return createLocalCa(config, material, signer, { publication, now, start: () => signer.keepStarting() });
}

function openedSigner(
  { table: { pkcs11 }, certificates }: Pkcs11CaMaterial,
  { driver, material }: Predecessor<Pkcs11CaMaterial>,
): Signer | undefined {
  return driver instanceof LocalCa &&
    !(driver.signer instanceof Pkcs11Signer && !driver.signer.isOpen) &&
    isSameConfig(material.table.pkcs11, pkcs11) &&
    driver.certificate.spki.equals(certificates.certificate.spki)
    ? driver.signer
    : undefined;
}

type TokenSettings = Pick<LocalCaConfig, 'label'> & Pick<Pkcs11CaTable, 'pkcs11'>;

/** The running signer of a `[[ca]]` table. @throws TokenProblem that names the label, the key and the problem */
export async function openSigner(settings: TokenSettings, context: Pkcs11Context): Promise<Pkcs11Signer> {
  const signer = createSigner(settings, context);
  await startSigner(signer, settings);
  return signer;
}

function createSigner(
  settings: TokenSettings,
  { env, retryAfter, log, expectedSpki }: Pkcs11Context & { readonly expectedSpki?: Buffer },
): Pkcs11Signer {
  const { label, pkcs11 } = settings;
  const { max_sessions, timeout } = pkcs11;
  try {
    return new Pkcs11Signer({
      ...tokenAccess(pkcs11),
      max_sessions,
      timeout,
      env,
      retryAfter,
      expectedSpki,
      log: labeledLog(log, label),
      onOutput: moduleOutput(label, log),
    });
  } catch (error) {
    throw tokenProblem(error, settings);
  }
}

async function startSigner(signer: Pkcs11Signer, settings: TokenSettings): Promise<void> {
  try {
    await signer.start();
  } catch (error) {
    throw tokenProblem(error, settings);
  }
}

function tokenProblem(error: unknown, { label, pkcs11 }: TokenSettings): unknown {
  if (!(error instanceof IsolatedError) && !(error instanceof EstuaryError)) return error;
  const key = relatedKey(error.code, pkcs11);
  return new TokenProblem(label, key, key === 'pin' ? (pkcs11.pin?.key ?? 'pin_file') : key, error);
}

const ALLOWED = {
  module: "the path of the token's PKCS#11 library",
  uri: 'a token that the module shows and the private key that belongs to `certificate`',
  slot: 'the ID of a slot with a token',
  token_label: 'the label of a token that the module shows',
  pin: "the user's PIN of the token",
  key_label: 'the label of the private key that belongs to `certificate`',
  key_id: 'the CKA_ID of the private key that belongs to `certificate`',
  max_sessions: 'at most as many sessions as the token has left',
  timeout: 'the seconds that the token needs for one call',
} as const;

/** Opens the token, as a start would. */
async function tokenProblems(material: Pkcs11CaMaterial, key: string, context: CheckContext): Promise<Problem[]> {
  const expectedSpki = material.certificates.certificate.spki;
  try {
    const signer = createSigner(material.table, { ...context, expectedSpki });
    await startSigner(signer, material.table);
    await signer.close();
    return [];
  } catch (error) {
    if (!(error instanceof TokenProblem))
      return [{ key: `${key}.pkcs11.module`, message: `${describe(error)} (${ALLOWED.module})` }];
    return [{ key: `${key}.pkcs11.${error.named}`, message: `${error.reason} (${ALLOWED[error.key]})` }];
  }
}
