/** The parsers that see bytes from outside: one line each. They are loaded when they are driven. */
import type { Target } from './target.ts';

export const TARGETS: Readonly<Record<string, () => Promise<{ readonly target: Target }>>> = {
  csr: () => import('./targets/csr.ts'),
  certificate: () => import('./targets/certificate.ts'),
  path: () => import('./targets/path.ts'),
  crl: () => import('./targets/crl.ts'),
  cms: () => import('./targets/cms.ts'),
  cmc: () => import('./targets/cmc.ts'),
  crmf: () => import('./targets/crmf.ts'),
  spnego: () => import('./targets/spnego.ts'),
  ocsp: () => import('./targets/ocsp.ts'),
  body: () => import('./targets/body.ts'),
  pem: () => import('./targets/pem.ts'),
  name: () => import('./targets/name.ts'),
  configuration: () => import('./targets/configuration.ts'),
  authorization: () => import('./targets/authorization.ts'),
  proxy: () => import('./targets/proxy.ts'),
  admin: () => import('./targets/admin.ts'),
  dogtag: () => import('./targets/dogtag.ts'),
  service: () => import('./targets/service.ts'),
};
