/** A TPM in software with its resource manager, and a token of tpm2-pkcs11 in it. */
import { execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdirSync, rmSync } from 'node:fs';
import { temporaryFolder } from './openssl.ts';
import { until } from './until.ts';

export interface SoftwareTpm {
  /** Environment that leads the module to this TPM. */
  readonly env: Readonly<Record<string, string>>;
  /** Restarts the TPM and its resource manager. */
  restart(): Promise<void>;
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
  const start = (command: string, ...args: string[]): (() => Promise<void>) => {
    const child = spawn(command, args, { env: all.env, stdio: 'ignore' });
    const ended = new Promise<void>((resolve) => child.once('exit', () => resolve()).once('error', () => resolve()));
    const end = (): Promise<void> => (child.kill(), ended);
    started.push(end);
    return end;
  };
  const startTpm = async (): Promise<(() => Promise<void>)[]> => {
    const control = ['--ctrl', `type=unixio,path=${tpm}.ctrl`, '--server', `type=unixio,path=${tpm}`];
    const end = start(
      'swtpm',
      'socket',
      '--tpm2',
      '--tpmstate',
      `dir=${state}`,
      ...control,
      '--flags',
      'startup-clear',
    );
    await until('the TPM', () => [tpm, `${tpm}.ctrl`].every((path) => existsSync(path)));
    return [start('tpm2-abrmd', '--session', '--allow-root', `--tcti=swtpm:path=${tpm}`), end];
  };
  try {
    for (const one of [state, store]) mkdirSync(one);
    start('dbus-daemon', '--session', '--nofork', `--address=unix:path=${bus}`);
    await until('the bus', () => existsSync(bus));
    let running = await startTpm();
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
    const restart = async (): Promise<void> => {
      // The TPM counts a disorderly end as a failed authorization.
      execFileSync('tpm2_shutdown', ['--clear'], all);
      for (const end of running) await end();
      for (const path of [tpm, `${tpm}.ctrl`]) rmSync(path, { force: true });
      running = await startTpm();
    };
    return { env, restart, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}
