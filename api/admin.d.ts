/** The admin API as types, made of its OpenAPI description: `npm run docs:api`. */

export interface paths {
    "/healthz": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Whether the process is alive
         * @description Whether the process is alive.
         */
        get: operations["getHealthz"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/readyz": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Whether the store and every CA are usable
         * @description Whether the store and every CA are usable.
         */
        get: operations["getReadyz"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/metrics": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Counters and gauges for Prometheus
         * @description Counters and gauges for Prometheus.
         */
        get: operations["getMetrics"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/otp": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The tokens, without the tokens
         * @description With `Accept: text/csv` the whole selection as a table.
         */
        get: operations["getOtp"];
        put?: never;
        /**
         * Make a one-time password
         * @description Make a one-time password.
         */
        post: operations["postOtp"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/otp/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * One token, without the token
         * @description One token, without the token.
         */
        get: operations["getOtpById"];
        put?: never;
        post?: never;
        /**
         * Revoke a token: it is dead at once
         * @description Revoke a token: it is dead at once.
         */
        delete: operations["deleteOtpById"];
        options?: never;
        head?: never;
        /**
         * Change when a token ends
         * @description One that has expired lives again; one that was revoked does not.
         */
        patch: operations["patchOtpById"];
        trace?: never;
    };
    "/admin/otp/bulk": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Make many one-time passwords
         * @description NDJSON or CSV (`client_id,max_uses,expires_at,ca`), at most 10,000 rows and 16 MiB, answered row by row in the same format: the token’s record with its token, or `{row, code, message}`. Each row stands alone. A dry run measures the configured hash: the header `Estimated-Seconds` says how long the call would take.
         */
        post: operations["postOtpBulk"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/certificates": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The certificates that were issued
         * @description A label that is no longer configured still finds the certificates of its CA. With `Accept: text/csv` the whole selection as a table.
         */
        get: operations["getCertificates"];
        put?: never;
        /**
         * Take in a certificate that the store does not know, so that it can be revoked
         * @description Only one that this CA signed. Its record names the administrator as `requester`, `import` as `method`, and this call as `request_id`.
         */
        post: operations["postCertificates"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/certificates/{serial}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * One certificate, with its PEM
         * @description One certificate, with its PEM.
         */
        get: operations["getCertificatesBySerial"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/certificates/{serial}/chain": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The certificates above a certificate
         * @description The certificates above a certificate.
         */
        get: operations["getCertificatesBySerialChain"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/certificates/{serial}/revoke": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Revoke a certificate: it authenticates nobody from now on
         * @description Only `certificateHold` can be reversed, and another call can give a held certificate a final reason. The body may be left out.
         */
        post: operations["postCertificatesBySerialRevoke"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/certificates/{serial}/release": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * End the hold of a certificate: it is valid again
         * @description Only for a certificate that was revoked with the reason `certificateHold`.
         */
        post: operations["postCertificatesBySerialRelease"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/renewals": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The replacement campaigns
         * @description The replacement campaigns.
         */
        get: operations["getRenewals"];
        put?: never;
        /**
         * Start a replacement campaign
         * @description `filter` has the filters of `GET /admin/certificates`, at least one in addition to `status`. The suggested windows of the matching certificates move to the time between now and `by`, evenly spread.
         */
        post: operations["postRenewals"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/renewals/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * One campaign, and how far it is
         * @description One campaign, and how far it is.
         */
        get: operations["getRenewalsById"];
        put?: never;
        post?: never;
        /**
         * End a campaign
         * @description Certificates that are not replaced have their own window again.
         */
        delete: operations["deleteRenewalsById"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/certificates/revoke": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Revoke the valid certificates that filters find
         * @description `filter` has the filters of `GET /admin/certificates`, at least one beside `status`; without `status` those that are valid. First with `dry_run`, then with the `count` that it told: where there are more or fewer by then, 409 and nothing is revoked. The oldest first, at most 10000 in a call.
         */
        post: operations["postCertificatesRevoke"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/requests": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the queued requests
         * @description With `Accept: text/csv`, the whole selection as a table.
         */
        get: operations["getRequests"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/requests/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get one request with its CSR
         * @description Get one request with its CSR.
         */
        get: operations["getRequestsById"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/requests/{id}/approve": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Approve a request: the next poll gets the certificate
         * @description Where `[ca] approvals` requires several administrators, it stays pending until that many different ones have approved it. The same one twice: 409. A certificate without an entry in `admin.clients`: 403.
         */
        post: operations["postRequestsByIdApprove"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/requests/{id}/reject": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Reject a request: polls get 403 with the reason
         * @description Reject a request: polls get 403 with the reason.
         */
        post: operations["postRequestsByIdReject"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/requests/{id}/check": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Check what an approval of a request would lead to, without effect
         * @description Runs the checks that follow an approval, up to the reservation. 409 `VERDICT_UNKNOWN`: they depend on what the requester presents at its next poll. 409 `REQUEST_DECIDED` or `DECIDED_AT_CA`: the request cannot be decided here.
         */
        get: operations["getRequestsByIdCheck"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/check": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * What would become of a request, and nothing does
         * @description The same checks as of a request to simpleenroll, up to the reservation: nothing is stored or signed, no password is used or looked for, and an external service is asked with `dry_run`. Whether the CSR is linked to a connection is not judged.
         */
        post: operations["postCheck"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/devices": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The devices that are registered
         * @description With `Accept: text/csv` the whole selection as a table that can be sent back.
         */
        get: operations["getDevices"];
        put?: never;
        /**
         * Register a device, or many
         * @description NDJSON and CSV (columns `id ca enabled not_after note`, `match.NAME`, `attributes.NAME`) of at most 10,000 rows and 16 MiB are answered 200, row by row in the same format: the device, or `{row, code, message}`.
         */
        post: operations["postDevices"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/devices/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * One device, with its certificates, tokens, requests and last events
         * @description One device, with its certificates, tokens, requests and last events.
         */
        get: operations["getDevicesById"];
        put?: never;
        post?: never;
        /**
         * Forget a device; its certificates do not pass to a later one of its id
         * @description Forget a device; its certificates do not pass to a later one of its id.
         */
        delete: operations["deleteDevicesById"];
        options?: never;
        head?: never;
        /**
         * Change a device: disabled, it gets no certificate from now on
         * @description `match` and `attributes` are replaced as they are given; null takes `ca`, `match`, `not_after` and `note` away.
         */
        patch: operations["patchDevicesById"];
        trace?: never;
    };
    "/admin/cas": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The configured CAs, with their further labels
         * @description The configured CAs, with their further labels.
         */
        get: operations["getCas"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/cas/{label}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * One CA
         * @description One CA.
         */
        get: operations["getCasByLabel"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/cas/{label}/revocation": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The CRL and the OCSP responder of a CA
         * @description Of a further label those of its CA.
         */
        get: operations["getCasByLabelRevocation"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/cas/{label}/crl": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Sign a CRL now
         * @description The new CRL has all revocations until now. Of a further label, the CA signs its CRL.
         */
        post: operations["postCasByLabelCrl"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/lockouts": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Who is locked out
         * @description With `Accept: text/csv` all of them as a table.
         */
        get: operations["getLockouts"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/lockouts/{key}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * End a lockout
         * @description End a lockout.
         */
        delete: operations["deleteLockoutsByKey"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/audit": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The audit records
         * @description With `Accept: text/csv` the whole selection as a table.
         */
        get: operations["getAudit"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/reload": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Read the configuration again and bring it into force, wholly or not at all
         * @description Read the configuration again and bring it into force, wholly or not at all.
         */
        post: operations["postReload"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/overview": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The state of the service on one page
         * @description Each part is there for whom it is: a part beyond the caller's roles is absent.
         */
        get: operations["getOverview"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/statistics": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Issuance, renewals and refusals over time
         * @description Counters of whole hours, kept with the audit records and longer than these. An interval that has begun counts as far as it has come; at most 1000 hours or 400 days.
         */
        get: operations["getStatistics"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/events": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Stream the audit records
         * @description Server-sent events of the type `audit`, one for each audit record of any node; the id is its `seq`. `admin` and `auditor` get whole records. `ra` gets records about certificates, requests, tokens, devices, and the authentication of requesters. `operator` gets records about the service. Both get them without `detail`, addresses and hashes. `Last-Event-ID` continues after a record, unless more than 1000 records were missed. A comment comes every 15 seconds. The stream ends with the session, the token or the role with which it was opened.
         */
        get: operations["getEvents"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/history": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Everything about one device, requester or request
         * @description Exactly one of the three parameters. A deleted device is found, too, but without its events. The events of a requester come from the newest 2000 records whose subject contains its name.
         */
        get: operations["getHistory"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/configuration": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The configuration in force, without its secrets
         * @description What the file would change of it, `POST /admin/reload?dry_run=true` says.
         */
        get: operations["getConfiguration"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/session": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Who is calling, and what the caller may do
         * @description Who is calling, and what the caller may do.
         */
        get: operations["getSession"];
        put?: never;
        /**
         * Sign in with a bearer token or a client certificate
         * @description For browsers. The answer sets a cookie that stands for what the call was authenticated with, until it is signed out, was not used for `admin.sessions.idle_timeout`, or `admin.sessions.lifetime` has passed. What the caller may do is what the configuration says at each call. A session that was begun on a connection with a client certificate is good on such ones only. Each signing in has a cookie of its own; the session of a cookie that came with the call ends.
         */
        post: operations["postSession"];
        /**
         * Sign out
         * @description Ends the session that the call came with; its cookie is worth nothing from then on.
         */
        delete: operations["deleteSession"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/openapi.json": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * This description
         * @description This description.
         */
        get: operations["getOpenapiJson"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
}
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        /** @description What every failure is answered with. */
        Error: {
            statusCode: number;
            /** @description The reason phrase of the status. */
            error: string;
            /** @description Stable; for programs. */
            code: string;
            /** @description One sentence; for people. */
            message: string;
        };
        /** @description The token to make. */
        NewToken: {
            /** @description Whom the token is for; no control characters. */
            client_id: string;
            /** @description How many certificates; otp.max_uses when absent. */
            max_uses?: number;
            /**
             * Format: date-time
             * @description In the future, at most ten years ahead; now + otp.default_ttl when absent.
             */
            expires_at?: string;
            /** @description A label: the token then works for that CA only. */
            ca?: string;
        };
        /** @description The new token. */
        CreatedToken: {
            id: string;
            /** @description The one-time password. This answer is the only place that ever shows it. */
            token: string;
            client_id: string;
            /** Format: date-time */
            created_at: string;
            /** Format: date-time */
            expires_at: string;
            max_uses: number;
        };
        /** @description A token, without the token. */
        Token: {
            id: string;
            client_id: string;
            ca: string | null;
            /** Format: date-time */
            created_at: string;
            /** Format: date-time */
            expires_at: string;
            max_uses: number;
            /** @description How many are taken. */
            uses: number;
            /** @enum {string} */
            status: "active" | "consumed" | "expired" | "revoked";
        };
        /** @description What is to change. */
        ChangedToken: {
            /**
             * Format: date-time
             * @description In the future, at most ten years ahead.
             */
            expires_at: string;
        };
        /** @description An issued certificate. */
        Certificate: {
            /** @description Lower-case hex. */
            serial: string;
            /** @description The CA's label. */
            ca: string;
            /** @description RFC 4514. */
            subject: string;
            /** @description `DNS:a`, `IP:1.2.3.4`, `email:…`, `URI:…` */
            sans: string[];
            /** Format: date-time */
            not_before: string;
            /** Format: date-time */
            not_after: string;
            /** @enum {string} */
            status: "valid" | "revoked" | "expired";
            revoked_at: string | null;
            reason: string | null;
            /** @description Who asked for it. */
            requester: string;
            /** @description How they authenticated. */
            method: string;
            request_id: string;
            /** @description Lower-case hex. */
            fingerprint_sha256: string;
            device: string | null;
            /** @description Where it was asked for, if not at the CA's own label. */
            label?: string;
        };
        /** @description A certificate from a backup, or from before a migration. */
        CertificateImport: {
            /** @description One certificate. */
            pem: string;
            /** @description The label of the CA that signed it, or the further label that it is to be of. */
            ca: string;
        };
        /** @description An issued certificate, with the certificate. */
        CertificateDetails: {
            /** @description Lower-case hex. */
            serial: string;
            /** @description The CA's label. */
            ca: string;
            /** @description RFC 4514. */
            subject: string;
            /** @description `DNS:a`, `IP:1.2.3.4`, `email:…`, `URI:…` */
            sans: string[];
            /** Format: date-time */
            not_before: string;
            /** Format: date-time */
            not_after: string;
            /** @enum {string} */
            status: "valid" | "revoked" | "expired";
            revoked_at: string | null;
            reason: string | null;
            /** @description Who asked for it. */
            requester: string;
            /** @description How they authenticated. */
            method: string;
            request_id: string;
            /** @description Lower-case hex. */
            fingerprint_sha256: string;
            device: string | null;
            /** @description Where it was asked for, if not at the CA's own label. */
            label?: string;
            archived_key_id: string | null;
            /** @description Empty where a restored store knows the certificate from the audit log alone. */
            pem: string;
        };
        /** @description What a certificate stands under. */
        CertificateChain: {
            /** @description PEM: whose key signed it first, up to the root, as far as this server has them; empty where its CA is no longer configured. */
            chain: string[];
        };
        Revocation: {
            /**
             * @description An RFC 5280 CRLReason name; `unspecified` unless given.
             * @enum {string}
             */
            reason?: "unspecified" | "keyCompromise" | "cACompromise" | "affiliationChanged" | "superseded" | "cessationOfOperation" | "certificateHold" | "privilegeWithdrawn" | "aACompromise";
            /**
             * Format: date-time
             * @description Since when the key is thought to be compromised or the certificate wrong; not in the future.
             */
            invalidity_date?: string;
        };
        /** @description What is to be replaced, and by when. */
        RenewalStart: {
            filter: {
                /** @description A CA's label. */
                ca?: string;
                /** @description A further label of a CA: what was asked for there. */
                label?: string;
                /** @description A part of the subject; upper and lower case alike. */
                subject?: string;
                /** @description A part of one of the subjectAltNames, as records have them (`DNS:a`); upper and lower case alike. */
                san?: string;
                /** @description The whole serial number, hex. */
                serial?: string;
                /** @description Who asked for it, as records have it. */
                requester?: string;
                /** @description A device's id. */
                device?: string;
                /** @enum {string} */
                status?: "valid" | "revoked" | "expired";
                /**
                 * Format: date-time
                 * @description Certificates that were issued after this time.
                 */
                issued_after?: string;
                /**
                 * Format: date-time
                 * @description Certificates whose not_after is before this time.
                 */
                expires_before?: string;
            };
            /**
             * Format: date-time
             * @description In the future.
             */
            by: string;
            reason?: string;
            explanation_url?: string;
        };
        /** @description A replacement campaign. */
        Renewal: {
            id: string;
            /** @description As it was given. */
            filter: {
                [key: string]: unknown;
            };
            /**
             * Format: date-time
             * @description Certificates that were issued later are not meant.
             */
            starts_at: string;
            /**
             * Format: date-time
             * @description Until when they are to be replaced.
             */
            by: string;
            created_by: string;
            reason: string | null;
            explanation_url: string | null;
        };
        /** @description A replacement campaign, and how far it is. */
        RenewalProgress: {
            id: string;
            /** @description As it was given. */
            filter: {
                [key: string]: unknown;
            };
            /**
             * Format: date-time
             * @description Certificates that were issued later are not meant.
             */
            starts_at: string;
            /**
             * Format: date-time
             * @description Until when they are to be replaced.
             */
            by: string;
            created_by: string;
            reason: string | null;
            explanation_url: string | null;
            /** @description Certificates that are meant and neither revoked nor expired without a replacement. */
            total: number;
            /** @description Their holder has a newer certificate with the same names, or for the same device. */
            replaced: number;
            /** @description Not replaced yet, and it is not time. */
            waiting: number;
            /** @description Not replaced yet: the last attempt was rejected or failed. */
            failed: number;
            /** @description Not replaced when `by` had passed. */
            overdue: number;
            /** @description The first 100 that are overdue. */
            overdue_certificates: components["schemas"]["Certificate"][];
        };
        /** @description Why, and how many. */
        BulkRevocation: {
            filter: {
                /** @description A CA's label. */
                ca?: string;
                /** @description A further label of a CA: what was asked for there. */
                label?: string;
                /** @description A part of the subject; upper and lower case alike. */
                subject?: string;
                /** @description A part of one of the subjectAltNames, as records have them (`DNS:a`); upper and lower case alike. */
                san?: string;
                /** @description The whole serial number, hex. */
                serial?: string;
                /** @description Who asked for it, as records have it. */
                requester?: string;
                /** @description A device's id. */
                device?: string;
                /** @enum {string} */
                status?: "valid" | "revoked" | "expired";
                /**
                 * Format: date-time
                 * @description Certificates that were issued after this time.
                 */
                issued_after?: string;
                /**
                 * Format: date-time
                 * @description Certificates whose not_after is before this time.
                 */
                expires_before?: string;
            };
            /**
             * @description An RFC 5280 CRLReason name; `unspecified` unless given.
             * @enum {string}
             */
            reason?: "unspecified" | "keyCompromise" | "cACompromise" | "affiliationChanged" | "superseded" | "cessationOfOperation" | "certificateHold" | "privilegeWithdrawn" | "aACompromise";
            /**
             * Format: date-time
             * @description Since when the key is thought to be compromised or the certificate wrong; not in the future.
             */
            invalidity_date?: string;
            /** @description true: counts, and revokes none. */
            dry_run?: boolean;
            /** @description How many certificates are meant, as a dry run has told. Needed unless `dry_run` is true. */
            count?: number;
        };
        /** @description What was done. */
        BulkRevocationResult: {
            /** @description How many certificates the filters found. */
            count: number;
            /** @description How many were revoked; at most 10000 in a call. */
            revoked: number;
            /** @description How many are left: the `count` of the next call. */
            remaining: number;
        };
        /** @description A queued request. */
        Request: {
            /** @description Also the request_id of its certificate and of its audit records. */
            id: string;
            /** @description The CA's label. */
            ca: string;
            /** @description `simpleenroll`, `simplereenroll`, … */
            operation: string;
            /** @description RFC 4514. */
            subject: string;
            /** @description `DNS:a`, `IP:1.2.3.4`, `email:…`, `URI:…` */
            sans: string[];
            /** @description The type of the key to certify: `ec:P-256`, `rsa:2048`, `ed25519`, … */
            key_type: string;
            /** @description The requester. */
            requester: string;
            /** @description How the requester authenticated. */
            method: string;
            /** @enum {string} */
            status: "pending" | "approved" | "issued" | "rejected" | "failed" | "expired";
            /** Format: date-time */
            created_at: string;
            decided_at: string | null;
            /** @description The administrators who have approved it so far, then the one who rejected it, if any. */
            decided_by: string[];
            reason: string | null;
            serial: string | null;
            device: string | null;
            requester_issuer: string | null;
            /** @description The subjectAltNames of that certificate. */
            requester_sans: string[];
        };
        /** @description A queued request, with its CSR. */
        RequestDetails: {
            /** @description Also the request_id of its certificate and of its audit records. */
            id: string;
            /** @description The CA's label. */
            ca: string;
            /** @description `simpleenroll`, `simplereenroll`, … */
            operation: string;
            /** @description RFC 4514. */
            subject: string;
            /** @description `DNS:a`, `IP:1.2.3.4`, `email:…`, `URI:…` */
            sans: string[];
            /** @description The type of the key to certify: `ec:P-256`, `rsa:2048`, `ed25519`, … */
            key_type: string;
            /** @description The requester. */
            requester: string;
            /** @description How the requester authenticated. */
            method: string;
            /** @enum {string} */
            status: "pending" | "approved" | "issued" | "rejected" | "failed" | "expired";
            /** Format: date-time */
            created_at: string;
            decided_at: string | null;
            /** @description The administrators who have approved it so far, then the one who rejected it, if any. */
            decided_by: string[];
            reason: string | null;
            serial: string | null;
            device: string | null;
            requester_issuer: string | null;
            /** @description The subjectAltNames of that certificate. */
            requester_sans: string[];
            spki_sha256: string | null;
            ca_reference: string | null;
            /** @description The queued request, PEM: a PKCS#10 (`CERTIFICATE REQUEST`), or a CRMF CertReqMsg of a CMC message (`CRMF REQUEST`). */
            csr: string;
        };
        /** @description Why. */
        Rejection: {
            /** @description The client gets this text. No control characters. */
            reason: string;
        };
        /** @description What would happen. */
        RequestCheck: {
            /**
             * @description `queue`: it would wait for an administrator, or for the people of the CA behind.
             * @enum {string}
             */
            verdict: "issue" | "queue" | "refuse";
            /** @description Of a refusal: the code of the error. */
            code?: string;
            /** @description Of a refusal: what the client would read. */
            message?: string;
            /** @description RFC 4514: the certificate's; of a refusal the request's. */
            subject: string;
            /** @description Likewise its subjectAltNames. */
            sans: string[];
            not_after: string | null;
            approvals: {
                /** @description Administrators who have approved the request. */
                given: number;
                /** @description Administrators who must approve the request. */
                needed: number;
            };
        };
        /** @description A request to simpleenroll. */
        CheckQuestion: {
            /** @description A CA's label. */
            ca: string;
            /** @description A PKCS #10, PEM. */
            csr: string;
            /** @description Whom to take for the sender: one of these. */
            as: {
                /** @description Whoever has a one-time password that was made for it. */
                client_id?: string;
                /** @description A Kerberos principal with its realm. */
                principal?: string;
                /** @description PEM: the certificate that is presented, and those between it and a trust anchor behind it. */
                certificate?: string;
                /** @description The id of a registered device, however it authenticates. */
                device?: string;
            };
        };
        /** @description What would happen. */
        CheckAnswer: {
            /**
             * @description `queue`: it would wait for an administrator, or for the people of the CA behind.
             * @enum {string}
             */
            verdict: "issue" | "queue" | "refuse";
            /** @description Of a refusal: the code of the error. */
            code?: string;
            /** @description Of a refusal: what the client would read. */
            message?: string;
            /** @description RFC 4514: the certificate's; of a refusal the request's. */
            subject: string;
            /** @description Likewise its subjectAltNames. */
            sans: string[];
            not_after: string | null;
        };
        /** @description The device to register. */
        NewDevice: {
            /** @description Whom a token is made for (client_id), or a principal; no control characters. */
            id: string;
            ca?: string | null;
            match?: {
                /** @description RFC 4514 name of the issuer: the subject of exactly one configured trust anchor or issuer certificate. Stored as `issuer_spki_sha256`. */
                issuer?: string;
                /** @description SHA-256 of the issuer's SubjectPublicKeyInfo, hex. */
                issuer_spki_sha256?: string;
                /** @description The attribute serialNumber of its subject. */
                serial_number?: string;
                /** @description The attribute CN of its subject. */
                common_name?: string;
                /** @description One of its names: `DNS:a`, `IP:1.2.3.4`, `email:…`, `URI:…`. */
                san?: string;
                /** @description SHA-256 of the certificate or its ECDSA twin, hex. */
                fingerprint_sha256?: string;
            } | null;
            /** @description Texts by name, for the names in its certificates. */
            attributes?: {
                [key: string]: string;
            };
            /** @description true when absent. */
            enabled?: boolean;
            not_after?: string | null;
            note?: string | null;
        };
        /** @description A registered device. */
        Device: {
            id: string;
            ca: string | null;
            match: {
                /** @description SHA-256 of the issuer's SubjectPublicKeyInfo, hex. */
                issuer_spki_sha256?: string;
                /** @description The attribute serialNumber of its subject. */
                serial_number?: string;
                /** @description The attribute CN of its subject. */
                common_name?: string;
                /** @description One of its names: `DNS:a`, `IP:1.2.3.4`, `email:…`, `URI:…`. */
                san?: string;
                /** @description SHA-256 of the certificate or its ECDSA twin, hex. */
                fingerprint_sha256?: string;
            } | null;
            /** @description Texts by name, for the names in its certificates. */
            attributes: {
                [key: string]: string;
            };
            enabled: boolean;
            not_after: string | null;
            note: string | null;
            /** Format: date-time */
            created_at: string;
            /** Format: date-time */
            changed_at: string;
        };
        /** @description An audit record, as far as the roles of the caller show it. */
        ShownAuditRecord: {
            seq: number;
            /** Format: date-time */
            time: string;
            /** @description The node that wrote it. */
            node?: string;
            /** @enum {string} */
            type: "service.start" | "service.stop" | "config.reload" | "auth.mtls" | "auth.otp" | "auth.gssapi" | "auth.ldap" | "auth.jwt" | "auth.cmc" | "auth.admin" | "lockout.started" | "lockout.cleared" | "otp.created" | "otp.changed" | "otp.used" | "otp.returned" | "otp.revoked" | "request.received" | "request.queued" | "request.approved" | "request.rejected" | "request.expired" | "certificate.issued" | "certificate.denied" | "certificate.failed" | "certificate.revoked" | "certificate.held" | "certificate.released" | "certificate.accepted" | "certificate.imported" | "renewal.started" | "renewal.ended" | "renewal.overdue" | "device.created" | "device.changed" | "device.deleted" | "key.generated" | "key.archived" | "ca.signature" | "crl.issued" | "admin.access" | "audit.recovered" | "audit.rotated" | "audit.archived" | "audit.anchored" | "audit.checkpoint" | "store.purged" | "store.restored" | "store.accepted" | "store.behind";
            /** @enum {string} */
            outcome: "success" | "failure";
            /** @description Who. */
            subject?: string;
            /** @description How the requester authenticated (`mtls`, `otp`, `gssapi`, `ldap`, `jwt`, `cmc`), or the administrator (`mtls`, `bearer`). */
            method?: string;
            /** @description The issuer of the requester's or administrator's certificate. */
            requester_issuer?: string;
            /** @description The subjectAltNames of the requester's certificate. */
            requester_sans?: string[];
            /** @description The client's network address. */
            address?: string;
            /** @description A label. */
            ca?: string;
            /** @description Of a certificate: where it was asked for, if not at the label of its CA. */
            label?: string;
            /** @description Of a certificate: the issued or revoked one, of a client the presented one. */
            serial?: string;
            /** @description Of the issued or revoked certificate. */
            certificate_subject?: string;
            /** @description Of the issued or revoked certificate. */
            certificate_sans?: string[];
            /** @description Of the issued or revoked certificate. */
            certificate_not_after?: string;
            /** @description Of the revoked certificate: an RFC 5280 CRLReason name. */
            revocation_reason?: string;
            /** @description Of the revoked certificate, if it was given. */
            invalidity_date?: string;
            /** @description The same in all records of a request. */
            request_id?: string;
            /** @description Of an issued certificate: the operation. Of `admin.access`: the call. */
            operation?: string;
            /** @description Of an issued certificate: its owner, if it is not `subject`. */
            requester?: string;
            /** @description The ID of the registered device. */
            device?: string;
            /** @description The key of the device's entry: a later device with the same ID has another one. */
            device_key?: string;
            /** @description Of an issued certificate: whether the label issues to registered devices only. */
            device_required?: boolean;
            /** @description The new value, if the device was enabled or disabled. */
            device_enabled?: boolean;
            /** @description The ID of the token. */
            token?: string;
            /** @description The new expiry date of the token. */
            token_expires_at?: string;
            /** @description Why a request was rejected or expired. */
            reason?: string;
            /** @description Of an issued CRL. */
            crl_number?: number;
            /** @description For people. Programs use the other fields. */
            detail?: string;
            /** @description Records that left the store for an archive. */
            archived?: {
                /** @description The `seq` of the first. */
                first: number;
                /** @description The `seq` of the last. */
                last: number;
                /** @description The hash of the last. */
                hash: string;
            };
            /** @description The end of the chain, signed. */
            checkpoint?: {
                /** @description The `seq` of the record that was the last. */
                seq: number;
                /** @description Its hash. */
                hash: string;
                /** @description Base64, by the key of `audit.checkpoint_key`. */
                signature: string;
            };
            /** @description The ends of other nodes' chains. */
            anchors?: {
                /** @description Whose chain it is. */
                node: string;
                /** @description The `seq` of the record that was its last. */
                seq: number;
                /** @description Its hash. */
                hash: string;
            }[];
            /** @description The last record that the store had when this transaction began; absent within it. */
            stored?: number;
            /** @description The hash of the record before. */
            prev_hash?: string;
            /** @description SHA-256, hex. */
            hash?: string;
        };
        /** @description A registered device, with its latest 100 certificates, tokens, requests and audit records; the newest first. */
        DeviceDetails: {
            id: string;
            ca: string | null;
            match: {
                /** @description SHA-256 of the issuer's SubjectPublicKeyInfo, hex. */
                issuer_spki_sha256?: string;
                /** @description The attribute serialNumber of its subject. */
                serial_number?: string;
                /** @description The attribute CN of its subject. */
                common_name?: string;
                /** @description One of its names: `DNS:a`, `IP:1.2.3.4`, `email:…`, `URI:…`. */
                san?: string;
                /** @description SHA-256 of the certificate or its ECDSA twin, hex. */
                fingerprint_sha256?: string;
            } | null;
            /** @description Texts by name, for the names in its certificates. */
            attributes: {
                [key: string]: string;
            };
            enabled: boolean;
            not_after: string | null;
            note: string | null;
            /** Format: date-time */
            created_at: string;
            /** Format: date-time */
            changed_at: string;
            certificates: components["schemas"]["Certificate"][];
            /** @description Made for its id. */
            tokens: components["schemas"]["Token"][];
            requests: components["schemas"]["Request"][];
            /** @description Audit records about the device; `ra` gets them as `GET /admin/events` shows them. */
            events: components["schemas"]["ShownAuditRecord"][];
        };
        /** @description What is to change; what is absent stays. */
        ChangedDevice: {
            ca?: string | null;
            match?: {
                /** @description RFC 4514 name of the issuer: the subject of exactly one configured trust anchor or issuer certificate. Stored as `issuer_spki_sha256`. */
                issuer?: string;
                /** @description SHA-256 of the issuer's SubjectPublicKeyInfo, hex. */
                issuer_spki_sha256?: string;
                /** @description The attribute serialNumber of its subject. */
                serial_number?: string;
                /** @description The attribute CN of its subject. */
                common_name?: string;
                /** @description One of its names: `DNS:a`, `IP:1.2.3.4`, `email:…`, `URI:…`. */
                san?: string;
                /** @description SHA-256 of the certificate or its ECDSA twin, hex. */
                fingerprint_sha256?: string;
            } | null;
            /** @description Texts by name, for the names in its certificates. */
            attributes?: {
                [key: string]: string;
            };
            /** @description true when absent. */
            enabled?: boolean;
            not_after?: string | null;
            note?: string | null;
        };
        /** @description A configured CA, or a further label of one. */
        Ca: {
            label: string;
            /** @description Of a further label: the CA whose key signs. */
            ca?: string;
            /** @description Serves requests without a label. */
            default: boolean;
            /** @description `file`, `pkcs11`, `dogtag`, `est`, `acme` or `command`. */
            driver: string;
            subject: string | null;
            not_after: string | null;
            days_left: number | null;
            /** @enum {string} */
            health: "ok" | "degraded" | "down";
            certificate: string | null;
            /** @description PEM certificates as cacerts answers them: the issuing CA first, up to the root, then those of rollovers. */
            chain: string[];
        };
        /** @description CRL and OCSP of a CA. */
        CaRevocation: {
            /** @description The label of the CA whose key signs. */
            ca: string;
            published_by: ("estuary" | "ca") | null;
            /** @description Where this server publishes, as certificates say. */
            urls: {
                crl: string[];
                ocsp: string[];
            };
            crl: {
                number: number;
                /** Format: date-time */
                this_update: string;
                /** Format: date-time */
                next_update: string;
                bytes: number;
                /** @description Certificates that it names. */
                entries: number;
                /**
                 * @description `overdue`: a newer one should have been signed by now; `expired`: its nextUpdate has passed, and nobody takes it any more.
                 * @enum {string}
                 */
                state: "current" | "overdue" | "expired";
            } | null;
            ocsp: {
                /**
                 * @description Whose key signs the responses now.
                 * @enum {string}
                 */
                signed_by: "ca" | "responder";
                responder: {
                    /** @description RFC 4514. */
                    subject: string;
                    serial: string;
                    /** Format: date-time */
                    not_after: string;
                    /** @description Whole days until not_after; negative after it. */
                    days_left: number;
                } | null;
            } | null;
        };
        /** @description A lockout in force. */
        Lockout: {
            /** @description `address:192.0.2.7`, `username:device-1`, … */
            key: string;
            /** @enum {string} */
            scope: "address" | "username" | "identification";
            failures: number;
            /** Format: date-time */
            locked_until: string;
        };
        /** @description A record as in the audit file; what does not apply is absent. */
        AuditRecord: {
            seq: number;
            /** Format: date-time */
            time: string;
            /** @description The node that wrote it. */
            node?: string;
            /** @enum {string} */
            type: "service.start" | "service.stop" | "config.reload" | "auth.mtls" | "auth.otp" | "auth.gssapi" | "auth.ldap" | "auth.jwt" | "auth.cmc" | "auth.admin" | "lockout.started" | "lockout.cleared" | "otp.created" | "otp.changed" | "otp.used" | "otp.returned" | "otp.revoked" | "request.received" | "request.queued" | "request.approved" | "request.rejected" | "request.expired" | "certificate.issued" | "certificate.denied" | "certificate.failed" | "certificate.revoked" | "certificate.held" | "certificate.released" | "certificate.accepted" | "certificate.imported" | "renewal.started" | "renewal.ended" | "renewal.overdue" | "device.created" | "device.changed" | "device.deleted" | "key.generated" | "key.archived" | "ca.signature" | "crl.issued" | "admin.access" | "audit.recovered" | "audit.rotated" | "audit.archived" | "audit.anchored" | "audit.checkpoint" | "store.purged" | "store.restored" | "store.accepted" | "store.behind";
            /** @enum {string} */
            outcome: "success" | "failure";
            /** @description Who. */
            subject?: string;
            /** @description How the requester authenticated (`mtls`, `otp`, `gssapi`, `ldap`, `jwt`, `cmc`), or the administrator (`mtls`, `bearer`). */
            method?: string;
            /** @description The issuer of the requester's or administrator's certificate. */
            requester_issuer?: string;
            /** @description The subjectAltNames of the requester's certificate. */
            requester_sans?: string[];
            /** @description The client's network address. */
            address?: string;
            /** @description A label. */
            ca?: string;
            /** @description Of a certificate: where it was asked for, if not at the label of its CA. */
            label?: string;
            /** @description Of a certificate: the issued or revoked one, of a client the presented one. */
            serial?: string;
            /** @description Of the issued or revoked certificate. */
            certificate_subject?: string;
            /** @description Of the issued or revoked certificate. */
            certificate_sans?: string[];
            /** @description Of the issued or revoked certificate. */
            certificate_not_after?: string;
            /** @description Of the revoked certificate: an RFC 5280 CRLReason name. */
            revocation_reason?: string;
            /** @description Of the revoked certificate, if it was given. */
            invalidity_date?: string;
            /** @description The same in all records of a request. */
            request_id?: string;
            /** @description Of an issued certificate: the operation. Of `admin.access`: the call. */
            operation?: string;
            /** @description Of an issued certificate: its owner, if it is not `subject`. */
            requester?: string;
            /** @description The ID of the registered device. */
            device?: string;
            /** @description The key of the device's entry: a later device with the same ID has another one. */
            device_key?: string;
            /** @description Of an issued certificate: whether the label issues to registered devices only. */
            device_required?: boolean;
            /** @description The new value, if the device was enabled or disabled. */
            device_enabled?: boolean;
            /** @description The ID of the token. */
            token?: string;
            /** @description The new expiry date of the token. */
            token_expires_at?: string;
            /** @description Why a request was rejected or expired. */
            reason?: string;
            /** @description Of an issued CRL. */
            crl_number?: number;
            /** @description For people. Programs use the other fields. */
            detail?: string;
            /** @description Records that left the store for an archive. */
            archived?: {
                /** @description The `seq` of the first. */
                first: number;
                /** @description The `seq` of the last. */
                last: number;
                /** @description The hash of the last. */
                hash: string;
            };
            /** @description The end of the chain, signed. */
            checkpoint?: {
                /** @description The `seq` of the record that was the last. */
                seq: number;
                /** @description Its hash. */
                hash: string;
                /** @description Base64, by the key of `audit.checkpoint_key`. */
                signature: string;
            };
            /** @description The ends of other nodes' chains. */
            anchors?: {
                /** @description Whose chain it is. */
                node: string;
                /** @description The `seq` of the record that was its last. */
                seq: number;
                /** @description Its hash. */
                hash: string;
            }[];
            /** @description The last record that the store had when this transaction began; absent within it. */
            stored?: number;
            /** @description The hash of the record before. */
            prev_hash: string;
            /** @description SHA-256, hex. */
            hash: string;
        };
        /** @description What a reload has changed, or would change. */
        ReloadReport: {
            /** @description Nothing has changed. */
            dry_run: boolean;
            /** @description Changed keys that apply at once, such as `ca[devices].profile.validity_days`. */
            changed: string[];
            /** @description Changed keys that stay as they were until the next start, such as `ca[devices].profile.validity_days`. */
            needs_restart: string[];
            /** @description What is in force afterwards. */
            certificates: {
                /** @description `tls`, `ca`, `client_anchor` …, as in the metrics. */
                use: string;
                ca: string | null;
                subject: string;
                serial: string;
                /** Format: date-time */
                not_after: string;
                /** @description It was not in force before. */
                new: boolean;
            }[];
            /** @description Settings that are allowed and unsafe. */
            warnings: {
                key: string;
                message: string;
            }[];
        };
        /** @description The state of the service. */
        Overview: {
            /**
             * Format: date-time
             * @description Of which this is told.
             */
            time: string;
            version: string;
            /** @description At most ten seconds old. For `ra` and `auditor`. */
            certificates?: {
                /** @description Neither expired nor revoked. */
                valid: number;
                ending: {
                    days: number;
                    /** @description Valid certificates that expire within this number of days; shorter periods are included. */
                    count: number;
                }[];
            };
            /** @description What waits for a decision, by CA. For `ra` and `auditor`. */
            requests?: {
                pending: {
                    ca: string;
                    count: number;
                }[];
            };
            /** @description Keys that are locked out. For `operator`. */
            lockouts?: number;
            /** @description Of the service and what it needs. For `operator`. */
            health?: {
                store: {
                    /** @enum {string} */
                    health: "ok" | "degraded" | "down";
                    /** @description Why it is not ok. */
                    detail?: string;
                };
                cas: {
                    label: string;
                    /** @enum {string} */
                    health: "ok" | "degraded" | "down";
                    /** @description Why it is not ok. */
                    detail?: string;
                    not_after: string | null;
                    days_left: number | null;
                }[];
                dependencies: {
                    /** @enum {string} */
                    name: "hsm" | "dogtag" | "est" | "acme" | "command" | "gssapi";
                    ca: string | null;
                    up: boolean;
                }[];
                /** @description The servers that share the store, by name; one that is dead goes from here when another one has noticed. */
                nodes: {
                    /** @description `store.node_name`, as audit records have it. */
                    name: string;
                    /** @description What the machine calls itself. */
                    host: string;
                    /** @description false: it has not said so for 20 seconds, and the others close what it left open. */
                    alive: boolean;
                    lease_age: number | null;
                    /** @description It does what one of them does for all, such as signing CRLs. */
                    on_duty: boolean;
                }[];
                reload: {
                    /** Format: date-time */
                    at: string;
                    ok: boolean;
                } | null;
                /** @description Those that the service itself needs; first those that end first. */
                certificates: {
                    /** @description `tls`, `ca`, `client_anchor` …, as in the metrics. */
                    use: string;
                    ca: string | null;
                    subject: string;
                    serial: string;
                    /** Format: date-time */
                    not_after: string;
                    /** @description Whole days until not_after; negative after it. */
                    days_left: number;
                }[];
            };
        };
        StatisticsItem: {
            /**
             * Format: date-time
             * @description When the interval begins, UTC.
             */
            time: string;
            /** @description Certificates issued, but for renewals. */
            issued: number;
            /** @description Certificates issued by simplereenroll. */
            renewed: number;
            /** @description Requests of authenticated clients that were refused. */
            refused: number;
            /** @description Requests that the CA, or something of ours, failed. */
            failed: number;
            /** @description Requests that were queued for approval. */
            queued: number;
            /** @description Certificates revoked. */
            revoked: number;
            /** @description Refused credentials of clients and administrators. */
            unauthenticated: number;
        };
        /** @description What happened, over time. */
        Statistics: {
            /** @enum {string} */
            interval: "hour" | "day";
            /**
             * Format: date-time
             * @description When the first interval begins.
             */
            since: string;
            /**
             * Format: date-time
             * @description When the last one ends.
             */
            until: string;
            /** @description One for each interval, also where nothing happened; the oldest first. */
            items: components["schemas"]["StatisticsItem"][];
        };
        /** @description The latest 100 of each kind, the newest first. */
        History: {
            certificates: components["schemas"]["Certificate"][];
            /** @description Created for that name, or used for the request. */
            tokens: components["schemas"]["Token"][];
            /** @description Queued requests. */
            requests: components["schemas"]["Request"][];
            /** @description Audit records; `ra` gets them as `GET /admin/events` shows them. */
            events: components["schemas"]["ShownAuditRecord"][];
        };
        ConfigurationKey: {
            /** @description Such as `ca[devices].profile.validity_days`. */
            key: string;
            /** @description A text, a number, true or false, or a list; `[secret]` for a secret. */
            value: unknown;
            /** @description A reload applies a change; otherwise the next start does. */
            live: boolean;
        };
        /** @description What is in force. */
        Configuration: {
            /** @description Every key that has a value, its default where nobody gave one, in the order of the reference. */
            keys: components["schemas"]["ConfigurationKey"][];
            reload: {
                /** Format: date-time */
                at: string;
                /** @description false: what is in force is not what the file says. */
                ok: boolean;
            } | null;
        };
        /** @description The caller. */
        Session: {
            /** @description The administrator's name: as configured, else the token's description or the certificate's subject. The audit log shows it. */
            subject: string;
            /**
             * @description What it has proved, or had when it signed in.
             * @enum {string}
             */
            method: "bearer" | "mtls";
            /** @description What the caller may do. */
            roles: ("admin" | "ra" | "auditor" | "operator")[];
            /** @description What the caller may do at which labels. */
            grants: {
                roles: ("admin" | "ra" | "auditor" | "operator")[];
                labels: string[] | null;
            }[];
            not_after: string | null;
            /** @description Of a caller who has signed in. */
            session?: {
                /**
                 * Format: date-time
                 * @description When it was signed in.
                 */
                created_at: string;
                /**
                 * Format: date-time
                 * @description When it has to sign in again.
                 */
                ends_at: string;
                /** @description Seconds without a call after which it has to as well. */
                idle_timeout: number;
            };
        };
    };
    responses: never;
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type $defs = Record<string, never>;
export interface operations {
    getHealthz: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Alive. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {string} */
                        status: "ok";
                    };
                };
            };
        };
    };
    getReadyz: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The service is usable. `parts` names `store`, `ca:` with the label of each CA, and with PostgreSQL `clock`. After a failed reload it also names `reload`, until a reload succeeds. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        /** @enum {string} */
                        status: "ok" | "degraded";
                        parts: {
                            [key: string]: "ok" | "degraded" | "down";
                        };
                    };
                };
            };
            /** @description The message names the parts that are down. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        statusCode: number;
                        /** @description The reason phrase of the status. */
                        error: string;
                        /** @description Stable; for programs. */
                        code: string;
                        /** @description One sentence; for people. */
                        message: string;
                    };
                };
            };
        };
    };
    getMetrics: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Prometheus' text format 0.0.4. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/plain": string;
                };
            };
            /** @description A parameter or the body is malformed; the message names the field. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description No valid admin credentials; with WWW-Authenticate: Bearer. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call needs a role that the caller does not have, or a browser sends it for a page of another site. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description Something of ours failed; the log says what. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The store or the audit log cannot be written or read for now. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    getOtp: {
        parameters: {
            query?: {
                /** @description The whole client_id. */
                client_id?: string;
                status?: "active" | "consumed" | "expired" | "revoked";
                /** @description Oldest first unless `desc`. */
                order?: "asc" | "desc";
                /** @description How many items one answer holds at most. */
                limit?: number;
                /** @description next_cursor of the answer before; absent for the first. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description In the order in which they were made. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        items: components["schemas"]["Token"][];
                        next_cursor: string | null;
                    };
                    "text/csv": unknown;
                };
            };
            /** @description A parameter or the body is malformed; the message names the field. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description No valid admin credentials; with WWW-Authenticate: Bearer. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call needs a role that the caller does not have, or a browser sends it for a page of another site. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description Something of ours failed; the log says what. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The store or the audit log cannot be written or read for now. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    postOtp: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** @description The token to make. */
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewToken"];
            };
        };
        responses: {
            /** @description The new token. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CreatedToken"];
                };
            };
            /** @description A parameter or the body is malformed; the message names the field. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description No valid admin credentials; with WWW-Authenticate: Bearer. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call needs a role that the caller does not have, or a browser sends it for a page of another site. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The state of things forbids it. */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The body is larger than server.body_limit, or has too many rows. */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The body is not application/json, or of another type that the call takes. */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description Something of ours failed; the log says what. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The store or the audit log cannot be written or read for now. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    getOtpById: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A token, without the token. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Token"];
                };
            };
            /** @description A parameter or the body is malformed; the message names the field. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description No valid admin credentials; with WWW-Authenticate: Bearer. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call needs a role that the caller does not have, or a browser sends it for a page of another site. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description There is no such thing. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description Something of ours failed; the log says what. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The store or the audit log cannot be written or read for now. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    deleteOtpById: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Dead, or was already. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description A parameter or the body is malformed; the message names the field. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description No valid admin credentials; with WWW-Authenticate: Bearer. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call needs a role that the caller does not have, or a browser sends it for a page of another site. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description There is no such thing. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description Something of ours failed; the log says what. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The store or the audit log cannot be written or read for now. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    patchOtpById: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        /** @description What is to change. */
        requestBody: {
            content: {
                "application/json": components["schemas"]["ChangedToken"];
            };
        };
        responses: {
            /** @description A token, without the token. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Token"];
                };
            };
            /** @description A parameter or the body is malformed; the message names the field. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description No valid admin credentials; with WWW-Authenticate: Bearer. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call needs a role that the caller does not have, or a browser sends it for a page of another site. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description There is no such thing. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The state of things forbids it. */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The body is larger than server.body_limit, or has too many rows. */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The body is not application/json, or of another type that the call takes. */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description Something of ours failed; the log says what. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The store or the audit log cannot be written or read for now. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    postOtpBulk: {
        parameters: {
            query?: {
                /** @description Checks every row and answers it as far as it is known. Nothing changes. */
                dry_run?: "true" | "false";
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/x-ndjson": unknown;
                "text/csv": unknown;
            };
        };
        responses: {
            /** @description An answer to each row; the only ones that ever show the tokens. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/x-ndjson": unknown;
                    "text/csv": unknown;
                };
            };
            /** @description A parameter or the body is malformed; the message names the field. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description No valid admin credentials; with WWW-Authenticate: Bearer. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call needs a role that the caller does not have, or a browser sends it for a page of another site. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The state of things forbids it. */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The body is larger than server.body_limit, or has too many rows. */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The body is not application/json, or of another type that the call takes. */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description Something of ours failed; the log says what. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The store or the audit log cannot be written or read for now. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    getCertificates: {
        parameters: {
            query?: {
                /** @description A CA's label. */
                ca?: string;
                /** @description A further label of a CA: what was asked for there. */
                label?: string;
                /** @description A part of the subject; upper and lower case alike. */
                subject?: string;
                /** @description A part of one of the subjectAltNames, as records have them (`DNS:a`); upper and lower case alike. */
                san?: string;
                /** @description The whole serial number, hex. */
                serial?: string;
                /** @description Who asked for it, as records have it. */
                requester?: string;
                /** @description A device's id. */
                device?: string;
                status?: "valid" | "revoked" | "expired";
                /** @description Certificates that were issued after this time. */
                issued_after?: string;
                /** @description Certificates whose not_after is before this time. */
                expires_before?: string;
                /** @description Oldest first unless `desc`. */
                order?: "asc" | "desc";
                /** @description How many items one answer holds at most. */
                limit?: number;
                /** @description next_cursor of the answer before; absent for the first. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description In the order of their issue. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        items: components["schemas"]["Certificate"][];
                        next_cursor: string | null;
                    };
                    "text/csv": unknown;
                };
            };
            /** @description A parameter or the body is malformed; the message names the field. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description No valid admin credentials; with WWW-Authenticate: Bearer. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call needs a role that the caller does not have, or a browser sends it for a page of another site. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description Something of ours failed; the log says what. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The store or the audit log cannot be written or read for now. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    postCertificates: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** @description A certificate from a backup, or from before a migration. */
        requestBody: {
            content: {
                "application/json": components["schemas"]["CertificateImport"];
            };
        };
        responses: {
            /** @description An issued certificate, with the certificate. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CertificateDetails"];
                };
            };
            /** @description A parameter or the body is malformed; the message names the field. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description No valid admin credentials; with WWW-Authenticate: Bearer. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call needs a role that the caller does not have, or a browser sends it for a page of another site. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The state of things forbids it. */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The body is larger than server.body_limit, or has too many rows. */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The body is not application/json, or of another type that the call takes. */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description Something of ours failed; the log says what. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The store or the audit log cannot be written or read for now. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    getCertificatesBySerial: {
        parameters: {
            query?: {
                /** @description A CA's label. */
                ca?: string;
            };
            header?: never;
            path: {
                /** @description Hex. */
                serial: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description An issued certificate, with the certificate. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CertificateDetails"];
                };
            };
            /** @description A parameter or the body is malformed; the message names the field. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description No valid admin credentials; with WWW-Authenticate: Bearer. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call needs a role that the caller does not have, or a browser sends it for a page of another site. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description There is no such thing. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description Something of ours failed; the log says what. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The store or the audit log cannot be written or read for now. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    getCertificatesBySerialChain: {
        parameters: {
            query?: {
                /** @description A CA's label. */
                ca?: string;
            };
            header?: never;
            path: {
                /** @description Hex. */
                serial: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description What a certificate stands under. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CertificateChain"];
                };
            };
            /** @description A parameter or the body is malformed; the message names the field. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description No valid admin credentials; with WWW-Authenticate: Bearer. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call needs a role that the caller does not have, or a browser sends it for a page of another site. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description There is no such thing. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description Something of ours failed; the log says what. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The store or the audit log cannot be written or read for now. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    postCertificatesBySerialRevoke: {
        parameters: {
            query?: {
                /** @description A CA's label. */
                ca?: string;
            };
            header?: never;
            path: {
                /** @description Hex. */
                serial: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["Revocation"];
            };
        };
        responses: {
            /** @description An issued certificate. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Certificate"];
                };
            };
            /** @description A parameter or the body is malformed; the message names the field. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description No valid admin credentials; with WWW-Authenticate: Bearer. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call needs a role that the caller does not have, or a browser sends it for a page of another site. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description There is no such thing. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The state of things forbids it. */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The body is larger than server.body_limit, or has too many rows. */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The body is not application/json, or of another type that the call takes. */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description Something of ours failed; the log says what. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The store or the audit log cannot be written or read for now. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    postCertificatesBySerialRelease: {
        parameters: {
            query?: {
                /** @description A CA's label. */
                ca?: string;
            };
            header?: never;
            path: {
                /** @description Hex. */
                serial: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description An issued certificate. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Certificate"];
                };
            };
            /** @description A parameter or the body is malformed; the message names the field. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description No valid admin credentials; with WWW-Authenticate: Bearer. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call needs a role that the caller does not have, or a browser sends it for a page of another site. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description There is no such thing. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The state of things forbids it. */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description Something of ours failed; the log says what. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The store or the audit log cannot be written or read for now. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    getRenewals: {
        parameters: {
            query?: {
                /** @description Oldest first unless `desc`. */
                order?: "asc" | "desc";
                /** @description How many items one answer holds at most. */
                limit?: number;
                /** @description next_cursor of the answer before; absent for the first. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description In the order of their start. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        items: components["schemas"]["Renewal"][];
                        next_cursor: string | null;
                    };
                };
            };
            /** @description A parameter or the body is malformed; the message names the field. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description No valid admin credentials; with WWW-Authenticate: Bearer. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call needs a role that the caller does not have, or a browser sends it for a page of another site. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description Something of ours failed; the log says what. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The store or the audit log cannot be written or read for now. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    postRenewals: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** @description What is to be replaced, and by when. */
        requestBody: {
            content: {
                "application/json": components["schemas"]["RenewalStart"];
            };
        };
        responses: {
            /** @description A replacement campaign. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Renewal"];
                };
            };
            /** @description A parameter or the body is malformed; the message names the field. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description No valid admin credentials; with WWW-Authenticate: Bearer. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call needs a role that the caller does not have, or a browser sends it for a page of another site. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The body is larger than server.body_limit, or has too many rows. */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The body is not application/json, or of another type that the call takes. */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description Something of ours failed; the log says what. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The store or the audit log cannot be written or read for now. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    getRenewalsById: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A replacement campaign, and how far it is. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RenewalProgress"];
                };
            };
            /** @description A parameter or the body is malformed; the message names the field. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description No valid admin credentials; with WWW-Authenticate: Bearer. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call needs a role that the caller does not have, or a browser sends it for a page of another site. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description There is no such thing. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description Something of ours failed; the log says what. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The store or the audit log cannot be written or read for now. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    deleteRenewalsById: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Ended. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description A parameter or the body is malformed; the message names the field. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description No valid admin credentials; with WWW-Authenticate: Bearer. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call needs a role that the caller does not have, or a browser sends it for a page of another site. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description There is no such thing. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description Something of ours failed; the log says what. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The store or the audit log cannot be written or read for now. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    postCertificatesRevoke: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** @description Why, and how many. */
        requestBody: {
            content: {
                "application/json": components["schemas"]["BulkRevocation"];
            };
        };
        responses: {
            /** @description What was done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["BulkRevocationResult"];
                };
            };
            /** @description A parameter or the body is malformed; the message names the field. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description No valid admin credentials; with WWW-Authenticate: Bearer. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call needs a role that the caller does not have, or a browser sends it for a page of another site. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The state of things forbids it. */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The body is larger than server.body_limit, or has too many rows. */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The body is not application/json, or of another type that the call takes. */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description Something of ours failed; the log says what. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The store or the audit log cannot be written or read for now. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    getRequests: {
        parameters: {
            query?: {
                status?: "pending" | "approved" | "issued" | "rejected" | "failed" | "expired";
                /** @description A CA's label. */
                ca?: string;
                /** @description The requester, as in records. */
                requester?: string;
                /** @description A device's id. */
                device?: string;
                /** @description Oldest first unless `desc`. */
                order?: "asc" | "desc";
                /** @description How many items one answer holds at most. */
                limit?: number;
                /** @description next_cursor of the answer before; absent for the first. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The oldest first. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        items: components["schemas"]["Request"][];
                        next_cursor: string | null;
                    };
                    "text/csv": unknown;
                };
            };
            /** @description A parameter or the body is malformed; the message names the field. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description No valid admin credentials; with WWW-Authenticate: Bearer. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call needs a role that the caller does not have, or a browser sends it for a page of another site. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description Something of ours failed; the log says what. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The store or the audit log cannot be written or read for now. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    getRequestsById: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A queued request, with its CSR. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RequestDetails"];
                };
            };
            /** @description A parameter or the body is malformed; the message names the field. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description No valid admin credentials; with WWW-Authenticate: Bearer. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call needs a role that the caller does not have, or a browser sends it for a page of another site. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description There is no such thing. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description Something of ours failed; the log says what. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The store or the audit log cannot be written or read for now. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    postRequestsByIdApprove: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        /** @description Optional. */
        requestBody: {
            content: {
                "application/json": Record<string, never>;
            };
        };
        responses: {
            /** @description A queued request, with its CSR. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RequestDetails"];
                };
            };
            /** @description A parameter or the body is malformed; the message names the field. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description No valid admin credentials; with WWW-Authenticate: Bearer. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call needs a role that the caller does not have, or a browser sends it for a page of another site. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description There is no such thing. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The state of things forbids it. */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The body is larger than server.body_limit, or has too many rows. */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The body is not application/json, or of another type that the call takes. */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description Something of ours failed; the log says what. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The store or the audit log cannot be written or read for now. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    postRequestsByIdReject: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        /** @description Why. */
        requestBody: {
            content: {
                "application/json": components["schemas"]["Rejection"];
            };
        };
        responses: {
            /** @description A queued request, with its CSR. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RequestDetails"];
                };
            };
            /** @description A parameter or the body is malformed; the message names the field. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description No valid admin credentials; with WWW-Authenticate: Bearer. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call needs a role that the caller does not have, or a browser sends it for a page of another site. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description There is no such thing. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The state of things forbids it. */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The body is larger than server.body_limit, or has too many rows. */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The body is not application/json, or of another type that the call takes. */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description Something of ours failed; the log says what. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The store or the audit log cannot be written or read for now. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    getRequestsByIdCheck: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description What would happen. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RequestCheck"];
                };
            };
            /** @description A parameter or the body is malformed; the message names the field. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description No valid admin credentials; with WWW-Authenticate: Bearer. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call needs a role that the caller does not have, or a browser sends it for a page of another site. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description There is no such thing. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The state of things forbids it. */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description Something of ours failed; the log says what. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The store or the audit log cannot be written or read for now. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    postCheck: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** @description A request to simpleenroll. */
        requestBody: {
            content: {
                "application/json": components["schemas"]["CheckQuestion"];
            };
        };
        responses: {
            /** @description What would happen. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CheckAnswer"];
                };
            };
            /** @description A parameter or the body is malformed; the message names the field. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description No valid admin credentials; with WWW-Authenticate: Bearer. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call needs a role that the caller does not have, or a browser sends it for a page of another site. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The body is larger than server.body_limit, or has too many rows. */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The body is not application/json, or of another type that the call takes. */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description Something of ours failed; the log says what. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The store or the audit log cannot be written or read for now. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    getDevices: {
        parameters: {
            query?: {
                /** @description The whole id. */
                id?: string;
                /** @description Devices that are limited to this label. */
                ca?: string;
                /** @description Devices that are enabled, or are not. */
                enabled?: "true" | "false";
                /** @description Oldest first unless `desc`. */
                order?: "asc" | "desc";
                /** @description How many items one answer holds at most. */
                limit?: number;
                /** @description next_cursor of the answer before; absent for the first. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description In the order in which they were registered. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        items: components["schemas"]["Device"][];
                        next_cursor: string | null;
                    };
                    "text/csv": unknown;
                };
            };
            /** @description A parameter or the body is malformed; the message names the field. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description No valid admin credentials; with WWW-Authenticate: Bearer. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call needs a role that the caller does not have, or a browser sends it for a page of another site. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description Something of ours failed; the log says what. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The store or the audit log cannot be written or read for now. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    postDevices: {
        parameters: {
            query?: {
                /** @description `upsert` changes a known device: only the given fields. In CSV, an absent column or an empty cell is not given. In JSON and NDJSON, `match` and `attributes` are replaced as a whole, and null clears a field. */
                mode?: "create" | "upsert";
                /** @description Checks every row and answers it as far as it is known. Nothing changes. */
                dry_run?: "true" | "false";
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                "application/json": components["schemas"]["NewDevice"];
                "application/x-ndjson": unknown;
                "text/csv": unknown;
            };
        };
        responses: {
            /** @description Changed; or an answer to each row; or the result of a dry run. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Device"];
                    "application/x-ndjson": unknown;
                    "text/csv": unknown;
                };
            };
            /** @description A registered device. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Device"];
                };
            };
            /** @description A parameter or the body is malformed; the message names the field. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description No valid admin credentials; with WWW-Authenticate: Bearer. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call needs a role that the caller does not have, or a browser sends it for a page of another site. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The state of things forbids it. */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The body is larger than server.body_limit, or has too many rows. */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The body is not application/json, or of another type that the call takes. */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description Something of ours failed; the log says what. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The store or the audit log cannot be written or read for now. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    getDevicesById: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Percent-encoded. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A registered device, with its latest 100 certificates, tokens, requests and audit records; the newest first. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DeviceDetails"];
                };
            };
            /** @description A parameter or the body is malformed; the message names the field. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description No valid admin credentials; with WWW-Authenticate: Bearer. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call needs a role that the caller does not have, or a browser sends it for a page of another site. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description There is no such thing. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description Something of ours failed; the log says what. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The store or the audit log cannot be written or read for now. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    deleteDevicesById: {
        parameters: {
            query?: {
                /** @description Revokes its certificates too. */
                revoke?: "true" | "false";
            };
            header?: never;
            path: {
                /** @description Percent-encoded. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Forgotten. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description A parameter or the body is malformed; the message names the field. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description No valid admin credentials; with WWW-Authenticate: Bearer. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call needs a role that the caller does not have, or a browser sends it for a page of another site. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description There is no such thing. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description Something of ours failed; the log says what. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The store or the audit log cannot be written or read for now. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    patchDevicesById: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Percent-encoded. */
                id: string;
            };
            cookie?: never;
        };
        /** @description What is to change; what is absent stays. */
        requestBody: {
            content: {
                "application/json": components["schemas"]["ChangedDevice"];
            };
        };
        responses: {
            /** @description A registered device. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Device"];
                };
            };
            /** @description A parameter or the body is malformed; the message names the field. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description No valid admin credentials; with WWW-Authenticate: Bearer. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call needs a role that the caller does not have, or a browser sends it for a page of another site. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description There is no such thing. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The body is larger than server.body_limit, or has too many rows. */
            413: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The body is not application/json, or of another type that the call takes. */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description Something of ours failed; the log says what. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The store or the audit log cannot be written or read for now. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    getCas: {
        parameters: {
            query?: {
                /** @description Oldest first unless `desc`. */
                order?: "asc" | "desc";
                /** @description How many items one answer holds at most. */
                limit?: number;
                /** @description next_cursor of the answer before; absent for the first. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description In the order of the configuration, further labels after their CA; `desc`: the other way round. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        items: components["schemas"]["Ca"][];
                        next_cursor: string | null;
                    };
                };
            };
            /** @description A parameter or the body is malformed; the message names the field. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description No valid admin credentials; with WWW-Authenticate: Bearer. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call needs a role that the caller does not have, or a browser sends it for a page of another site. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description Something of ours failed; the log says what. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The store or the audit log cannot be written or read for now. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    getCasByLabel: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                label: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description A configured CA, or a further label of one. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Ca"];
                };
            };
            /** @description A parameter or the body is malformed; the message names the field. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description No valid admin credentials; with WWW-Authenticate: Bearer. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call needs a role that the caller does not have, or a browser sends it for a page of another site. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description There is no such thing. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description Something of ours failed; the log says what. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The store or the audit log cannot be written or read for now. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    getCasByLabelRevocation: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                label: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description CRL and OCSP of a CA. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CaRevocation"];
                };
            };
            /** @description A parameter or the body is malformed; the message names the field. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description No valid admin credentials; with WWW-Authenticate: Bearer. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call needs a role that the caller does not have, or a browser sends it for a page of another site. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description There is no such thing. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description Something of ours failed; the log says what. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The store or the audit log cannot be written or read for now. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    postCasByLabelCrl: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                label: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description CRL and OCSP of a CA. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CaRevocation"];
                };
            };
            /** @description A parameter or the body is malformed; the message names the field. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description No valid admin credentials; with WWW-Authenticate: Bearer. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call needs a role that the caller does not have, or a browser sends it for a page of another site. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description There is no such thing. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The state of things forbids it. */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description Something of ours failed; the log says what. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The store or the audit log cannot be written or read for now. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    getLockouts: {
        parameters: {
            query?: {
                /** @description Oldest first unless `desc`. */
                order?: "asc" | "desc";
                /** @description How many items one answer holds at most. */
                limit?: number;
                /** @description next_cursor of the answer before; absent for the first. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The lockouts in force; first those that end first. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        items: components["schemas"]["Lockout"][];
                        next_cursor: string | null;
                    };
                    "text/csv": unknown;
                };
            };
            /** @description A parameter or the body is malformed; the message names the field. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description No valid admin credentials; with WWW-Authenticate: Bearer. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call needs a role that the caller does not have, or a browser sends it for a page of another site. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description Something of ours failed; the log says what. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The store or the audit log cannot be written or read for now. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    deleteLockoutsByKey: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description As the list shows it, percent-encoded. */
                key: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Ended. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description A parameter or the body is malformed; the message names the field. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description No valid admin credentials; with WWW-Authenticate: Bearer. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call needs a role that the caller does not have, or a browser sends it for a page of another site. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description There is no such thing. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description Something of ours failed; the log says what. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The store or the audit log cannot be written or read for now. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    getAudit: {
        parameters: {
            query?: {
                /** @description Records of this time and later. */
                since?: string;
                /** @description Records of this time and before. */
                until?: string;
                type?: "service.start" | "service.stop" | "config.reload" | "auth.mtls" | "auth.otp" | "auth.gssapi" | "auth.ldap" | "auth.jwt" | "auth.cmc" | "auth.admin" | "lockout.started" | "lockout.cleared" | "otp.created" | "otp.changed" | "otp.used" | "otp.returned" | "otp.revoked" | "request.received" | "request.queued" | "request.approved" | "request.rejected" | "request.expired" | "certificate.issued" | "certificate.denied" | "certificate.failed" | "certificate.revoked" | "certificate.held" | "certificate.released" | "certificate.accepted" | "certificate.imported" | "renewal.started" | "renewal.ended" | "renewal.overdue" | "device.created" | "device.changed" | "device.deleted" | "key.generated" | "key.archived" | "ca.signature" | "crl.issued" | "admin.access" | "audit.recovered" | "audit.rotated" | "audit.archived" | "audit.anchored" | "audit.checkpoint" | "store.purged" | "store.restored" | "store.accepted" | "store.behind";
                /** @description A part of the subject, who it was; upper and lower case alike. */
                subject?: string;
                /** @description A label. */
                ca?: string;
                /** @description The whole serial number, hex. */
                serial?: string;
                /** @description That of a request. */
                request_id?: string;
                /** @description Oldest first unless `desc`. */
                order?: "asc" | "desc";
                /** @description How many items one answer holds at most. */
                limit?: number;
                /** @description next_cursor of the answer before; absent for the first. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description In the order of the chain. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        items: components["schemas"]["AuditRecord"][];
                        next_cursor: string | null;
                    };
                    "text/csv": unknown;
                };
            };
            /** @description A parameter or the body is malformed; the message names the field. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description No valid admin credentials; with WWW-Authenticate: Bearer. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call needs a role that the caller does not have, or a browser sends it for a page of another site. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description Something of ours failed; the log says what. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The store or the audit log cannot be written or read for now. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    postReload: {
        parameters: {
            query?: {
                /** @description Says what would change, and changes nothing. */
                dry_run?: "true" | "false";
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description What a reload has changed, or would change. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ReloadReport"];
                };
            };
            /** @description A parameter or the body is malformed; the message names the field. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description No valid admin credentials; with WWW-Authenticate: Bearer. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call needs a role that the caller does not have, or a browser sends it for a page of another site. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The state of things forbids it. */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description Something of ours failed; the log says what. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The store or the audit log cannot be written or read for now. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    getOverview: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The state of the service. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Overview"];
                };
            };
            /** @description A parameter or the body is malformed; the message names the field. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description No valid admin credentials; with WWW-Authenticate: Bearer. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call needs a role that the caller does not have, or a browser sends it for a page of another site. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description Something of ours failed; the log says what. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The store or the audit log cannot be written or read for now. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    getStatistics: {
        parameters: {
            query?: {
                /** @description The interval of this time and later; a day ago, or with `day` 30 days. */
                since?: string;
                /** @description The interval of this time and before; now unless given. */
                until?: string;
                /** @description `hour` unless given; days are those of UTC. */
                interval?: "hour" | "day";
                /** @description A label. */
                ca?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description What happened, over time. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Statistics"];
                };
            };
            /** @description A parameter or the body is malformed; the message names the field. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description No valid admin credentials; with WWW-Authenticate: Bearer. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call needs a role that the caller does not have, or a browser sends it for a page of another site. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description Something of ours failed; the log says what. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The store or the audit log cannot be written or read for now. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    getEvents: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Continues until one side ends it. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "text/event-stream": string;
                };
            };
            /** @description A parameter or the body is malformed; the message names the field. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description No valid admin credentials; with WWW-Authenticate: Bearer. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call needs a role that the caller does not have, or a browser sends it for a page of another site. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description Something of ours failed; the log says what. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The store or the audit log cannot be written or read for now. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    getHistory: {
        parameters: {
            query?: {
                /** @description The id of a device. */
                device?: string;
                /** @description Who asked, as certificates, requests and audit records name it. */
                requester?: string;
                /** @description That of a request. */
                request_id?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The latest 100 of each kind, the newest first. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["History"];
                };
            };
            /** @description A parameter or the body is malformed; the message names the field. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description No valid admin credentials; with WWW-Authenticate: Bearer. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call needs a role that the caller does not have, or a browser sends it for a page of another site. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description Something of ours failed; the log says what. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The store or the audit log cannot be written or read for now. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    getConfiguration: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description What is in force. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Configuration"];
                };
            };
            /** @description A parameter or the body is malformed; the message names the field. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description No valid admin credentials; with WWW-Authenticate: Bearer. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call needs a role that the caller does not have, or a browser sends it for a page of another site. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description Something of ours failed; the log says what. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The store or the audit log cannot be written or read for now. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    getSession: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The caller. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Session"];
                };
            };
            /** @description A parameter or the body is malformed; the message names the field. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description No valid admin credentials; with WWW-Authenticate: Bearer. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call needs a role that the caller does not have, or a browser sends it for a page of another site. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description Something of ours failed; the log says what. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The store or the audit log cannot be written or read for now. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    postSession: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The caller. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Session"];
                };
            };
            /** @description A parameter or the body is malformed; the message names the field. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description No valid admin credentials; with WWW-Authenticate: Bearer. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call needs a role that the caller does not have, or a browser sends it for a page of another site. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description Something of ours failed; the log says what. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The store or the audit log cannot be written or read for now. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    deleteSession: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Signed out. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description A parameter or the body is malformed; the message names the field. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description No valid admin credentials; with WWW-Authenticate: Bearer. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call needs a role that the caller does not have, or a browser sends it for a page of another site. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description There is no such thing. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description Something of ours failed; the log says what. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The store or the audit log cannot be written or read for now. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
    getOpenapiJson: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description OpenAPI 3.1. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        [key: string]: unknown;
                    };
                };
            };
            /** @description A parameter or the body is malformed; the message names the field. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description No valid admin credentials; with WWW-Authenticate: Bearer. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call needs a role that the caller does not have, or a browser sends it for a page of another site. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description Something of ours failed; the log says what. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The store or the audit log cannot be written or read for now. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
        };
    };
}
