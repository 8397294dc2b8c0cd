/** Tells systemd that the service is up (`Type=notify`): nothing that depends on it starts before the listeners answer. */
import { execFile } from 'node:child_process';
import type { Environment } from '../config/load.ts';

/**
 * Resolves once the service manager knows, or could not be told; where none has asked, at once. Node.js has no datagram sockets of the Unix
 * domain, so systemd's own program sends the message.
 *
 * @param warn gets the reason why it could not be told
 */
export function notifyReady(env: Environment, warn: (reason: string) => void): Promise<void> {
  const { NOTIFY_SOCKET, PATH } = env;
  if (NOTIFY_SOCKET === undefined) return Promise.resolve();
  return new Promise((resolve) => {
    const options = { env: { NOTIFY_SOCKET, PATH }, timeout: 30_000 };
    execFile('systemd-notify', ['--ready', '--status=serving'], options, (error) => {
      if (error !== null) warn(`systemd-notify: ${error.message}`);
      resolve();
    });
  });
}
