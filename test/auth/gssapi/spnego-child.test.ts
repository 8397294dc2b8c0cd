/** What the child process makes of the Kerberos library's answer, with a stand-in: MIT's names no client too early. */
import { expect, test, vi } from 'vitest';

const server = vi.hoisted(() => ({
  step: () => Promise.resolve(),
  contextComplete: true,
  username: 'alice@EXAMPLE.TEST',
  response: 'reply',
}));
const serve = vi.hoisted(() => vi.fn<typeof import('../../../src/process/serve.ts').serve>());
vi.mock('kerberos', () => ({ default: { initializeServer: () => Promise.resolve(server) } }));
vi.mock('../../../src/process/serve.ts', () => ({ serve }));

test('the name of a client counts only once the negotiation is complete', async () => {
  await import('../../../src/auth/gssapi/spnego-child.ts');
  const [service] = serve.mock.calls[0] ?? [];
  await service?.init({ service: 'HTTP@localhost' });
  const accept = (contextComplete: boolean): unknown => {
    server.contextComplete = contextComplete;
    return service?.methods['accept']?.({ token: 'AAAA' });
  };
  await expect(accept(true)).resolves.toEqual({ principal: 'alice@EXAMPLE.TEST', replyToken: 'reply' });
  await expect(accept(false)).rejects.toMatchObject({ code: 'REFUSED', message: 'the negotiation needs another leg' });
});
