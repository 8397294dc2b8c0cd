/** What the server and its Kerberos child process accept from each other. */
import { expect, test } from 'vitest';
import { readAcceptArgs, readAccepted, readStartArgs } from '../../../src/auth/gssapi/spnego-protocol.ts';

test('a message without its text is rejected', () => {
  for (const value of [undefined, null, 'text', {}, { token: '', service: '', principal: '' }, { token: 1 }]) {
    expect(() => readStartArgs(value)).toThrow('service is missing');
    expect(() => readAcceptArgs(value)).toThrow('token is missing');
    expect(() => readAccepted(value)).toThrow('principal is missing');
  }
  expect(readStartArgs({ service: 'HTTP@a' })).toEqual({ service: 'HTTP@a' });
  expect(readAcceptArgs({ token: 'YQ==' })).toEqual({ token: 'YQ==' });
});

test('a reply token is a text or absent', () => {
  const read = (replyToken: unknown): unknown => readAccepted({ principal: 'a@B', replyToken }).replyToken;
  expect(['YQ==', '', null, undefined, 7].map(read)).toEqual(['YQ==', null, null, null, null]);
});
