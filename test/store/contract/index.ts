/** The requirements on every driver of the store, by subject. */
import { auditStoreContract } from './audit.ts';
import { certificateStoreContract } from './certificates.ts';
import { cmcStoreContract } from './cmc.ts';
import { crlStoreContract } from './crl.ts';
import { deviceStoreContract } from './devices.ts';
import { holderStoreContract } from './holders.ts';
import { acmeAccountStoreContract } from './acme-accounts.ts';
import { intermediateStoreContract } from './intermediates.ts';
import { issuanceStoreContract } from './issuance.ts';
import { labelContract } from './labels.ts';
import { lockoutStoreContract } from './lockout.ts';
import { neighborContract } from './neighbors.ts';
import { waitingContract } from './waiting.ts';
import { otpStoreContract } from './otp.ts';
import { remoteRequestStoreContract } from './remote-requests.ts';
import { renewalStoreContract } from './renewals.ts';
import { requestStoreContract } from './requests.ts';
import { rescueStoreContract } from './rescues.ts';
import { retentionStoreContract } from './retention.ts';
import { sessionStoreContract } from './sessions.ts';
import { statisticsStoreContract } from './statistics.ts';
import { useStoreContract } from './uses.ts';
import type { NewDatabase } from './support.ts';

/** The whole contract of {@link Store}: a driver's test file calls it with how to make a database. */
export function storeContract(newDatabase: NewDatabase): void {
  auditStoreContract(newDatabase);
  certificateStoreContract(newDatabase);
  cmcStoreContract(newDatabase);
  crlStoreContract(newDatabase);
  deviceStoreContract(newDatabase);
  intermediateStoreContract(newDatabase);
  acmeAccountStoreContract(newDatabase);
  issuanceStoreContract(newDatabase);
  labelContract(newDatabase);
  lockoutStoreContract(newDatabase);
  neighborContract(newDatabase);
  waitingContract(newDatabase);
  otpStoreContract(newDatabase);
  remoteRequestStoreContract(newDatabase);
  renewalStoreContract(newDatabase);
  requestStoreContract(newDatabase);
  rescueStoreContract(newDatabase);
  retentionStoreContract(newDatabase);
  sessionStoreContract(newDatabase);
  statisticsStoreContract(newDatabase);
  useStoreContract(newDatabase);
  holderStoreContract(newDatabase);
}
