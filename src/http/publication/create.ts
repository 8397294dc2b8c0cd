/** Creates the parts of `[publication]`: the listener, with CRLs and OCSP responses. */
import type { CaRouter } from '../../ca/router.ts';
import type { Config } from '../../config/schema.ts';
import { createPublicationListener, type PublicationListener } from './listener.ts';
import { requestRates } from '../rate-limits.ts';
import type { RequestCounts } from '../exchange.ts';
import type { Logger } from '../../log.ts';
import type { CertificateStore } from '../../store/certificate-store.ts';
import type { CrlPublisher } from '../../publication/crl-publisher.ts';
import { OcspResponder } from '../../publication/ocsp-responder.ts';

interface PublicationContext {
  readonly router: CaRouter;
  readonly crls: CrlPublisher;
  readonly store: CertificateStore;
  readonly log: Logger;
  readonly metrics: RequestCounts;
  readonly now: () => number;
}

interface Publication {
  /** The caller listens, which starts the signing of CRLs, and closes. */
  readonly app: PublicationListener;
}

/** Maximum validity of an OCSP response in seconds: relying parties may cache it that long. */
const MAX_OCSP_VALIDITY = 300;

/** undefined if disabled. */
export function createPublication(
  { publication, server, limits, est }: Pick<Config, 'publication' | 'server' | 'limits' | 'est'>,
  { router, crls, store, log, metrics, now }: PublicationContext,
): Publication | undefined {
  if (!publication.enabled) return undefined;
  for (const ca of router.issuers)
    // A remote CA may still be unknown.
    if (ca.driver.statusSigner !== undefined && ca.certificate.keyUsage?.includes('cRLSign') === false)
      log.warn(
        { ca: ca.label },
        'the CA certificate may not sign CRLs (keyUsage without cRLSign): relying parties reject its CRL',
      );
  const validity = Math.min(publication.crl_interval, MAX_OCSP_VALIDITY);
  const app = createPublicationListener({
    router,
    crls,
    ocsp: new OcspResponder({ store, validity, log, now }),
    log,
    metrics,
    rates: requestRates(limits),
    retryAfter: est.retry_after,
    headersTimeout: server.headers_timeout * 1000,
    requestTimeout: server.request_timeout * 1000,
    keepAliveTimeout: server.keep_alive_timeout * 1000,
    now,
  });
  return { app };
}
