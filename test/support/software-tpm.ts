/** A TPM in software with its resource manager, and a token of tpm2-pkcs11 in it. */
import { execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdirSync } from 'node:fs';
import { temporaryFolder } from './openssl.ts';
import { until } from './until.ts';

export interface SoftwareTpm {
  /** Environment that leads the module to this TPM. */
  readonly env: Readonly<Record<string, string>>;
  stop(): Promise<void>;
}

export async function softwareTpm(token: { readonly label: string; readonly pin: string }): Promise<SoftwareTpm> {
  const folder = temporaryFolder();
  const started: (() => Promise<void>)[] = [];
  const stop = async (): Promise<void> => {
    for (const one of started.reverse()) await one();
    folder.remove();
  };
  const [state, store] = [folder.file('state'), folder.file('store')];
  const [tpm, bus] = [folder.file('tpm'), folder.file('bus')];
  const env = {
    DBUS_SESSION_BUS_ADDRESS: `unix:path=${bus}`,
    TPM2_PKCS11_STORE: store,
    TPM2_PKCS11_TCTI: 'tabrmd:bus_type=session',
    TPM2TOOLS_TCTI: 'tabrmd:bus_type=session',
  };
  const all = { env: { ...process.env, ...env }, stdio: 'pipe', timeout: 60_000 } as const;
  const start = (command: string, ...args: string[]): void => {
    const child = spawn(command, args, { env: all.env, stdio: 'ignore' });
    const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()).once('error', () => resolve()));
    started.push(() => (child.kill(), ended));
  };
  try {
    for (const one of [state, store]) mkdirSync(one);
    const control = ['--ctrl', `type=unixio,path=${tpm}.ctrl`, '--server', `type=unixio,path=${tpm}`];
    start('swtpm', 'socket', '--tpm2', '--tpmstate', `dir=${state}`, ...control, '--flags', 'startup-clear');
    start('dbus-daemon', '--session', '--nofork', `--address=unix:path=${bus}`);
    await until('the TPM and the bus', () => [tpm, `${tpm}.ctrl`, bus].every((path) => existsSync(path)));
    start('tpm2-abrmd', '--session', '--allow-root', `--tcti=swtpm:path=${tpm}`);
    await until('the resource manager', () => {
      try {
        execFileSync('tpm2_ptool', ['init', '--path', store], all);
        return true;
      } catch {
        return false;
      }
    });
    const pins = ['--sopin', 'so-pin-1234', '--userpin', token.pin];
    execFileSync('tpm2_ptool', ['addtoken', '--pid', '1', '--label', token.label, ...pins, '--path', store], all);
    return { env, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}
