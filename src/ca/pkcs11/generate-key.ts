/** Generates a CA key inside a token. The token's library runs in its own process. */
import { type IsolatedLog, IsolatedProcess } from '../../process/isolated-process.ts';
import { isObject, startedModule } from '../../process/protocol.ts';
import { loggedIn } from './logins.ts';
import { type KeyGeneration, moduleEnvironment, type NewKeyNames } from './wire.ts';

/** Milliseconds; a token may take minutes for a CA's RSA key. */
const GENERATION_MS = 600_000;

/**
 * Generates a key pair that never leaves the token.
 * @param env the module's environment, which may name its configuration
 * @param onOutput receives what the module prints to stderr
 * @throws IsolatedError with a TokenFault code, also if the name is in use; EstuaryError if the module crashed or hung
 */
export async function generateKey(
  order: KeyGeneration,
  env: Readonly<Record<string, string | undefined>>,
  onOutput: (line: string) => void,
): Promise<NewKeyNames> {
  const process = new IsolatedProcess({
    module: startedModule('ca/pkcs11/generate-key-child'),
    code: 'PKCS11',
    subject: 'The hardware security module',
    env: moduleEnvironment(env),
    init: order,
    opened: loggedIn(order.access.pin),
    startTimeoutMs: 30_000,
    concurrency: 1,
    queueLimit: 0,
    retryAfter: 1,
    log: SILENT,
    onOutput,
    secret: order.access.pin,
  });
  await process.start();
  try {
    return readNames(await process.call('generate', undefined, { deadlineMs: GENERATION_MS }));
  } finally {
    await process.stop();
  }
}

const SILENT: IsolatedLog = { info: () => undefined, warn: () => undefined, error: () => undefined };

function readNames(value: unknown): NewKeyNames {
  const { label, id, leftOut } = isObject(value) ? value : {};
  if (typeof label === 'string' && id instanceof Uint8Array && Array.isArray(leftOut))
    return { label, id, leftOut: leftOut.map(String) };
  throw new TypeError('not the names of a key');
}
