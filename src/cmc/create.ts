/** Creates the CMC server from the configuration. */
import type { ClientTrust } from '../auth/mtls/client-trust.ts';
import type { OtpService } from '../auth/otp/otp-service.ts';
import type { CaRouter } from '../ca/router.ts';
import type { Config } from '../config/schema.ts';
import type { Enrollment } from '../enrollment/enrollment.ts';
import type { Logger } from '../log.ts';
import type { Store } from '../store/store.ts';
import { Authenticator } from './authenticate.ts';
import type { CmcParties } from './sender.ts';
import { PendingRequests } from './pending.ts';
import { Requests } from './requests.ts';
import type { CrlSource } from './retrieval.ts';
import { CertificateActions } from './revocation.ts';
import { CmcServer } from './server.ts';
import { SharedSecrets } from './shared-secrets.ts';
import { Signers } from './signers.ts';

interface CmcContext {
  readonly store: Store;
  readonly cas: Pick<CaRouter, 'issuers'>;
  readonly log: Logger;
  readonly enrollment: Enrollment;
  readonly otp: OtpService;
  /** The snapshot in force. */
  readonly trust: () => ClientTrust | undefined;
  readonly parties: () => CmcParties;
  readonly crls: CrlSource;
  readonly instance: string;
  readonly now: () => number;
}

export function createCmcServer(config: Pick<Config, 'otp' | 'est'>, context: CmcContext): CmcServer {
  const { store, enrollment, otp } = context;
  const retryAfter = config.est.retry_after;
  const secrets = new SharedSecrets({
    parties: context.parties,
    lockout: otp.lockout,
    tokenLength: config.otp.token_length,
    retryAfter,
  });
  const pending = new PendingRequests(store, enrollment);
  return new CmcServer({
    ...context,
    retryAfter,
    pending,
    authenticator: new Authenticator(new Signers(context), secrets, pending),
    requests: new Requests({ enrollment, store, clientIdBinding: config.otp.bind_client_id }),
    actions: new CertificateActions({ ...context, secrets }),
  });
}
