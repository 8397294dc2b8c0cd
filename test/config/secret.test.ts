import { writeFileSync } from 'node:fs';
import { afterAll, describe, expect, test } from 'vitest';
import { Secret, secretFromFile } from '../../src/config/secret.ts';
import { temporaryFolder } from '../support/openssl.ts';

const folder = temporaryFolder();
afterAll(() => folder.remove());

describe('a file with the PIN of a token', () => {
  test.each([
    ['text', Buffer.from('1234'), '1234'],
    ['a line end', Buffer.from('1234\r\n'), '1234'],
    ['a byte order mark', Buffer.from('\uFEFF1234\n'), '1234'],
    ['letters beyond ASCII', Buffer.from('größe'), 'größe'],
    ['nothing: no login', Buffer.alloc(0), ''],
  ])('%s', async (_, bytes, pin) => {
    writeFileSync(folder.file('pin'), bytes);
    const secret = await secretFromFile('pin', 'pin', { folder: folder.file('.'), env: {} });
    expect(secret instanceof Secret && secret.reveal().toString()).toBe(pin);
  });

  test.each([
    ['UTF-16', Buffer.from('\uFEFF1234', 'utf16le')],
    ['Latin-1', Buffer.from('größe', 'latin1')],
    ['a NUL', Buffer.from('12\u000034')],
  ])('%s is refused before a login', async (_, bytes) => {
    writeFileSync(folder.file('pin'), bytes);
    const reason = await secretFromFile('pin', 'pin', { folder: folder.file('.'), env: {} });
    expect(reason).toBe('the file pin is not UTF-8 text');
  });
});
