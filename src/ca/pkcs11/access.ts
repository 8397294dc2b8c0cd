/** The token and the key that a table of the configuration names. */
import { type Finding, finding } from '../../config/problem.ts';
import type { Secret } from '../../config/secret.ts';
import { keyId, parsePkcs11Uri } from '../../pki/pkcs11-uri.ts';
import { type KeyReference, type TokenAccess, TokenFault } from './wire.ts';

interface TokenTable extends Omit<TokenAccess, 'pin'>, KeyReference {
  readonly uri?: string | undefined;
  readonly pin?: Secret | undefined;
}

export function tokenAccess({ uri, pin, ...keys }: TokenTable): TokenAccess & KeyReference {
  const parsed = uri === undefined ? {} : parsePkcs11Uri(uri);
  const parts = typeof parsed === 'string' ? {} : parsed;
  const { manufacturer, model, serial } = parts;
  return {
    module: keys.module,
    library_parameters: keys.library_parameters,
    token_label: keys.token_label ?? parts.token,
    slot: keys.slot ?? parts['slot-id'],
    ...{ manufacturer, model, serial },
    key_label: keys.key_label ?? parts.object,
    key_id: keys.key_id === undefined ? parts.id : keyId(keys.key_id),
    pin: pin?.reveal().toString('utf8'),
  };
}

export type Pkcs11Key =
  'module' | 'uri' | 'slot' | 'token_label' | 'pin' | 'key_label' | 'key_id' | 'max_sessions' | 'timeout';

/** The key of the table that a failure is about. @param code of the failure */
export function relatedKey(code: string, { uri, token_label, key_label }: Partial<TokenTable>): Pkcs11Key {
  const isNamed = code === TokenFault.SLOT || code === TokenFault.KEY || code === TokenFault.KEY_MISMATCH;
  if (uri !== undefined && isNamed) return 'uri';
  switch (code) {
    case TokenFault.PIN:
      return 'pin';
    case TokenFault.SLOT:
      return token_label === undefined ? 'slot' : 'token_label';
    case TokenFault.KEY:
    case TokenFault.KEY_MISMATCH:
      return key_label === undefined ? 'key_id' : 'key_label';
    case TokenFault.SESSION:
      return 'max_sessions';
    case 'PKCS11_TIMEOUT':
      return 'timeout';
    default:
      return 'module';
  }
}

/**
 * `uri`, or one key for the token and one for the private key.
 * @param names of the table for the token
 */
export function* namingFindings(
  table: TokenTable,
  key: string,
  names: readonly ['token_label', 'slot'] | readonly ['token_label'],
): Generator<Finding> {
  for (const group of [names, ['key_label', 'key_id'] as const]) {
    const given = group.filter((name) => table[name] !== undefined);
    const [first, other] = group;
    if (table.uri !== undefined)
      for (const name of given)
        yield finding(`${key}.uri`, `is given, and so is ${name} (one of the two)`, `${key}.${name}`);
    else if (given.length !== 1 && other === undefined) yield finding(`${key}.${first}`, 'is missing (or uri)');
    else if (given.length !== 1)
      yield finding(
        `${key}.${first}`,
        `${given.length === 0 ? 'is missing, and so is' : 'is given, and so is'} ${other} (one of the two)`,
        `${key}.${other}`,
      );
  }
}
