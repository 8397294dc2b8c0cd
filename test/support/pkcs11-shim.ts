/** A PKCS#11 module in front of SoftHSM2 that behaves like other people's: see pkcs11-shim.c. */
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { ROOT } from './root.ts';

/** Builds the module. @returns its path */
export function buildShim(hsm: { file(name: string): string }): string {
  const module = hsm.file('shim.so');
  const source = join(ROOT, 'test/support/pkcs11-shim.c');
  const flags = ['-shared', '-fPIC', '-I/usr/include/p11-kit-1', '-o', module, source, '-ldl', '-lpthread'];
  execFileSync('cc', flags, { timeout: 60_000, stdio: 'pipe' });
  return module;
}
