/** Looks for the key of a connection in its token, before OpenSSL's engine does, which tells little of what is wrong. */
import { ClientError } from '../client-error.ts';
import type { ClientContext } from '../context.ts';
import type { ClientIdentity } from '../http/connection.ts';
import { idOfKeyUri } from './key-uri.ts';

/** @throws ClientError `KEY_UNUSABLE`: the token is not there, refuses the PIN, or does not have the key */
export async function requireTokenKey(identity: ClientIdentity | undefined, context: ClientContext): Promise<void> {
  const key = identity?.privateKey;
  if (key === undefined || typeof key === 'string') return;
  const id = idOfKeyUri(key.uri);
  if (id !== undefined && (await context.token(key.token).list()).has(id)) return;
  throw new ClientError(
    'local',
    'KEY_UNUSABLE',
    `the token "${key.token.label}" does not have the key ${key.uri}; estuary client enroll --force makes another one`,
  );
}
