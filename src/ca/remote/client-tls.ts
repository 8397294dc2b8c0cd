import type { ServiceMaterial } from '../../config/material/material.ts';
import type { ClientTls } from '../../https-client.ts';
import { pemOf } from '../../pki/x509/certificate.ts';

/** TLS settings from a configuration section with trust anchors and a client certificate. */
export const clientTls = ({ trustAnchors, client }: Partial<ServiceMaterial>): ClientTls => ({
  ...(trustAnchors === undefined ? {} : { ca: pemOf(trustAnchors) }),
  ...(client === undefined
    ? {}
    : { cert: pemOf(client.certificates), key: client.privateKey.export({ type: 'pkcs8', format: 'pem' }) }),
});
