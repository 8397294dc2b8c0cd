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
         * Check whether the process is alive
         * @description Check whether the process is alive.
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
         * Check whether this node should get requests
         * @description Check whether this node should get requests.
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
         * Get the metrics for Prometheus
         * @description Get the metrics for Prometheus.
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
         * List the one-time passwords, without their secrets
         * @description With `Accept: text/csv`, the whole selection as a table.
         */
        get: operations["getOtp"];
        put?: never;
        /**
         * Create a one-time password
         * @description Create a one-time password.
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
         * Get one one-time password, without its secret
         * @description Get one one-time password, without its secret.
         */
        get: operations["getOtpById"];
        put?: never;
        post?: never;
        /**
         * Revoke a one-time password
         * @description Revoke a one-time password.
         */
        delete: operations["deleteOtpById"];
        options?: never;
        head?: never;
        /**
         * Change the expiry date of a one-time password
         * @description An expired password becomes valid again; a revoked one does not.
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
         * Create many one-time passwords
         * @description NDJSON or CSV (`client_id,max_uses,expires_at,ca`), at most 10,000 rows and 16 MiB. The response has one result per row in the same format: the token’s record with its token, or `{row, code, message}`. Rows are independent. A dry run measures the configured hash, and the header `Estimated-Seconds` says how long the call would take.
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
         * List the issued certificates
         * @description A label that is no longer configured still finds the certificates of its CA. With `Accept: text/csv`, the whole selection as a table.
         */
        get: operations["getCertificates"];
        put?: never;
        /**
         * Import a certificate that is missing from the store, so that it can be revoked
         * @description This CA must have signed it. The record has the administrator as `requester`, `import` as `method`, and the ID of this call as `request_id`.
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
         * Get one certificate with its PEM
         * @description Get one certificate with its PEM.
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
         * Get the chain of a certificate
         * @description Get the chain of a certificate.
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
    "/admin/fleet": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the holders of certificates
         * @description A page may have fewer items than its limit. With `Accept: text/csv`, the whole selection as a table.
         */
        get: operations["getFleet"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/fleet/summary": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Count the holders by state
         * @description The counts are at most a minute old.
         */
        get: operations["getFleetSummary"];
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
         * Revoke a certificate; it no longer authenticates
         * @description Only `certificateHold` can be reversed, and another call can give a held certificate a final reason. The body is optional.
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
         * Revoke the valid certificates that match filters
         * @description `filter` has the filters of `GET /admin/certificates`, at least one in addition to `status`; without `status`, valid certificates match. Call it first with `dry_run`, then with the `count` that it returned. If another number matches by then, the response is 409 and nothing is revoked. The oldest are revoked first, at most 10000 per call.
         */
        post: operations["postCertificatesRevoke"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/certificates/{serial}/rescue": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Let a certificate authenticate one more renewal although it has expired
         * @description For simplereenroll only. Neither its expiry nor the validity of its issuers counts. A second call replaces the time.
         */
        post: operations["postCertificatesBySerialRescue"];
        /**
         * End the pass of a certificate for one more renewal, or the repeats of that renewal
         * @description End the pass of a certificate for one more renewal, or the repeats of that renewal.
         */
        delete: operations["deleteCertificatesBySerialRescue"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/cas/{label}/rollover": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Find out whether a former key of a CA can be retired
         * @description One entry for the key of the CA and for each in `renewal_issuers`.
         */
        get: operations["getCasByLabelRollover"];
        put?: never;
        post?: never;
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
         * List the replacement campaigns
         * @description List the replacement campaigns.
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
         * Get a campaign and its progress
         * @description Get a campaign and its progress.
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
    "/admin/notifications": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the receivers of notifications, and how the delivery to them is
         * @description List the receivers of notifications, and how the delivery to them is.
         */
        get: operations["getNotifications"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/notifications/{name}/test": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Send a sample to a receiver of notifications
         * @description Send a sample to a receiver of notifications.
         */
        post: operations["postNotificationsByNameTest"];
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
         * Approve a request; the next poll gets the certificate
         * @description Where `[ca] approvals` requires several administrators, it stays pending until that many different administrators have approved it. A second approval by the same one: 409. A certificate without an entry in `admin.clients`: 403.
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
         * Reject a request; polls get 403 with the reason
         * @description Reject a request; polls get 403 with the reason.
         */
        post: operations["postRequestsByIdReject"];
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
         * Check what would happen to a request, without effect
         * @description Runs the checks of simpleenroll up to the reservation. Nothing is stored or signed, no password is used or looked up, and an external service is called with `dry_run`. The channel binding of the CSR is not checked.
         */
        post: operations["postCheck"];
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
    "/admin/devices": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the registered devices
         * @description With `Accept: text/csv`, the whole selection as a table that can be imported again.
         */
        get: operations["getDevices"];
        put?: never;
        /**
         * Register one or more devices
         * @description For NDJSON or CSV (columns `id ca enabled not_after note`, `match.NAME`, `attributes.NAME`) of at most 10,000 rows and 16 MiB, the response is 200 with one result per row in the same format: the device, or `{row, code, message}`.
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
         * Get one device with its certificates, tokens, requests and latest events
         * @description Get one device with its certificates, tokens, requests and latest events.
         */
        get: operations["getDevicesById"];
        put?: never;
        post?: never;
        /**
         * Delete a device; its certificates do not pass to a later device with the same ID
         * @description Delete a device; its certificates do not pass to a later device with the same ID.
         */
        delete: operations["deleteDevicesById"];
        options?: never;
        head?: never;
        /**
         * Change a device; a disabled device gets no certificates
         * @description `match` and `attributes` are replaced as a whole. null removes `ca`, `match`, `not_after` or `note`.
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
         * List the configured CAs and their further labels
         * @description List the configured CAs and their further labels.
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
         * Get one CA
         * @description Get one CA.
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
         * Get the CRL and the OCSP responder of a CA
         * @description For a further label: those of its CA.
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
         * List the lockouts
         * @description With `Accept: text/csv`, all of them as a table.
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
         * List the audit records
         * @description With `Accept: text/csv`, the whole selection as a table.
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
         * Reload the configuration, completely or not at all
         * @description Reload the configuration, completely or not at all.
         */
        post: operations["postReload"];
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
         * Get the configuration in force, without its secrets
         * @description `POST /admin/reload?dry_run=true` reports what the file would change.
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
    "/admin/overview": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get the state of the service
         * @description Parts that the roles of the caller do not include are absent.
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
         * Get issuance, renewals and rejections over time
         * @description Counters per hour. The store keeps them longer than the audit records. The current interval is incomplete; at most 1000 hours or 400 days.
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
         * @description Server-sent events of the type `audit`, one for each audit record of any node; the id is its `seq`. `admin` and `auditor` get whole records. `ra` gets records about certificates, requests, tokens, devices, and the authentication of requesters. `operator` gets records about the service. Both get them without `detail`, addresses and hashes. `Last-Event-ID` continues after a record, unless more than 1000 records were missed. An event `alive` without data comes every 15 seconds. The stream ends with the session, the token or the role with which it was opened.
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
         * Get everything about one device, requester or request
         * @description Exactly one of the three parameters. A deleted device, and an ID that exists at several labels, is found without its events. The events of a requester come from the newest 2000 records whose subject contains its name.
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
    "/admin/session": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get the caller and its roles
         * @description Get the caller and its roles.
         */
        get: operations["getSession"];
        put?: never;
        /**
         * Sign in with a bearer token or a client certificate
         * @description For browsers. The response sets a cookie that stands for the credential of the call until the caller signs out, the session is idle for `admin.sessions.idle_timeout`, or `admin.sessions.lifetime` has passed. The roles are those that the configuration gives at the time of each call. A session started with a client certificate needs a connection with that certificate. Each sign-in creates a new cookie, and ends the session of the cookie that came with the call.
         */
        post: operations["postSession"];
        /**
         * Sign out
         * @description Ends the session of the call. Its cookie becomes invalid.
         */
        delete: operations["deleteSession"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/admin/service": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Get the EST address and the labels
         * @description Get the EST address and the labels.
         */
        get: operations["getService"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/auth/oidc/login": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Sign in to the console at the OpenID provider
         * @description Sign in to the console at the OpenID provider.
         */
        get: operations["getAuthOidcLogin"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/auth/oidc/callback": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The answer of the OpenID provider: begins a session
         * @description The answer of the OpenID provider: begins a session.
         */
        get: operations["getAuthOidcCallback"];
        put?: never;
        post?: never;
        delete?: never;
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
         * Get this description
         * @description Get this description.
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
        /** @description The body of every error response. */
        Error: {
            statusCode: number;
            /** @description The reason phrase of the status. */
            error: string;
            /** @description A stable code for programs. */
            code: string;
            /** @description One sentence for people. */
            message: string;
        };
        /** @description The token to create. */
        NewToken: {
            /** @description The client that the token is for; no control characters. */
            client_id: string;
            /** @description The number of certificates; otp.max_uses if absent. */
            max_uses?: number;
            /**
             * Format: date-time
             * @description In the future, at most ten years ahead; now + otp.default_ttl if absent.
             */
            expires_at?: string;
            /** @description A label: the token works only at that CA. */
            ca?: string;
        };
        /** @description The new token. */
        CreatedToken: {
            id: string;
            /** @description The one-time password. No other response shows it. */
            token: string;
            client_id: string;
            /** Format: date-time */
            created_at: string;
            /** Format: date-time */
            expires_at: string;
            max_uses: number;
        };
        /** @description A one-time password, without its secret. */
        Token: {
            id: string;
            client_id: string;
            ca: string | null;
            /** Format: date-time */
            created_at: string;
            /** Format: date-time */
            expires_at: string;
            max_uses: number;
            /** @description The number of uses so far. */
            uses: number;
            /** @enum {string} */
            status: "active" | "consumed" | "expired" | "revoked";
        };
        /** @description The fields to change. */
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
            /** @description `DNS:a`, `IP:1.2.3.4`, `email:…`, `URI:…`, `upn:…` (docs/guides/names.md) */
            sans: string[];
            /** Format: date-time */
            not_before: string;
            /** Format: date-time */
            not_after: string;
            /** @enum {string} */
            status: "valid" | "revoked" | "expired";
            revoked_at: string | null;
            reason: string | null;
            /** @description The requester. */
            requester: string;
            /** @description How the requester authenticated. */
            method: string;
            request_id: string;
            /** @description Lower-case hex. */
            fingerprint_sha256: string;
            device: string | null;
            rescue_until: string | null;
            /** @description The label of the request, if it is not the label of the CA. */
            label?: string;
        };
        /** @description A certificate from a backup, or from before a migration. */
        CertificateImport: {
            /** @description One certificate. */
            pem: string;
            /** @description The label of the CA that signed it, or the further label that it will belong to. */
            ca: string;
        };
        /** @description What a certificate contains. */
        CertificateContent: {
            /** @description Lower-case hex. */
            serial: string;
            /** @description RFC 4514. */
            subject: string;
            /** @description RFC 4514. */
            issuer: string;
            /** Format: date-time */
            not_after: string;
            /** @description `ec:P-256`, `rsa:2048`, `ed25519`, … */
            key_type: string;
            /** @description SHA-256 of the SubjectPublicKeyInfo, hex. */
            spki_sha256: string;
            /** @description `ecdsaWithSHA256`, … */
            signature_algorithm: string;
            extensions: {
                /** @description Its name in RFC 5280, or its OID. */
                name: string;
                /** @description As encoded. */
                critical: boolean;
                /** @description For people; hex if unknown. */
                values: string[];
            }[];
        };
        /** @description An issued certificate, with its PEM. */
        CertificateDetails: {
            /** @description Lower-case hex. */
            serial: string;
            /** @description The CA's label. */
            ca: string;
            /** @description RFC 4514. */
            subject: string;
            /** @description `DNS:a`, `IP:1.2.3.4`, `email:…`, `URI:…`, `upn:…` (docs/guides/names.md) */
            sans: string[];
            /** Format: date-time */
            not_before: string;
            /** Format: date-time */
            not_after: string;
            /** @enum {string} */
            status: "valid" | "revoked" | "expired";
            revoked_at: string | null;
            reason: string | null;
            /** @description The requester. */
            requester: string;
            /** @description How the requester authenticated. */
            method: string;
            request_id: string;
            /** @description Lower-case hex. */
            fingerprint_sha256: string;
            device: string | null;
            rescue_until: string | null;
            /** @description The label of the request, if it is not the label of the CA. */
            label?: string;
            archived_key_id: string | null;
            /** @description Empty if a restored store knows the certificate only from the audit log. */
            pem: string;
            content: components["schemas"]["CertificateContent"] | null;
        };
        /** @description The chain of a certificate. */
        CertificateChain: {
            /** @description PEM certificates from its issuer to the root, if this server has them. Empty if its CA is no longer configured. */
            chain: string[];
            contents: components["schemas"]["CertificateContent"][];
        };
        /** @description A set of names at a label, with its device, if it has one. Absent facts are null. */
        Holder: {
            /** @enum {string} */
            state: "expired" | "failing" | "waiting" | "stuck" | "late" | "due" | "never" | "ok";
            /**
             * Format: date-time
             * @description Since when it is in this state.
             */
            since: string;
            ca: string | null;
            subject: string | null;
            sans: string[] | null;
            device: string | null;
            serial: string | null;
            not_after: string | null;
            window_end: string | null;
            last_used_at: string | null;
            first_used_at: string | null;
            renewal_info_at: string | null;
            tls_version: ("TLSv1.2" | "TLSv1.3") | null;
            last_code: string | null;
            last_message: string | null;
            last_failed_at: string | null;
        };
        /** @description How many holders are in which state. */
        FleetSummary: {
            /** Format: date-time */
            as_of: string;
            /** @description Counts by label. */
            labels: {
                [key: string]: {
                    expired: number;
                    failing: number;
                    waiting: number;
                    stuck: number;
                    late: number;
                    due: number;
                    never: number;
                    ok: number;
                };
            };
            /** @description Valid holders whose newest certificate expires within that many days. */
            expiring: {
                1: number;
                7: number;
                /** @description Includes those of fewer days. */
                30: number;
            };
        };
        Revocation: {
            /**
             * @description An RFC 5280 CRLReason name; default `unspecified`.
             * @enum {string}
             */
            reason?: "unspecified" | "keyCompromise" | "cACompromise" | "affiliationChanged" | "superseded" | "cessationOfOperation" | "certificateHold" | "privilegeWithdrawn" | "aACompromise";
            /**
             * Format: date-time
             * @description The time since which the key may be compromised or the certificate is invalid; not in the future.
             */
            invalidity_date?: string;
        };
        /** @description The filters, the reason and the expected number. */
        BulkRevocation: {
            filter: {
                /** @description A CA's label. */
                ca?: string;
                /** @description A further label of a CA: certificates requested there. */
                label?: string;
                /** @description A part of the subject; case-insensitive. */
                subject?: string;
                /** @description A part of one of the subjectAltNames, as in records (`DNS:a`); case-insensitive. */
                san?: string;
                /** @description The complete serial number, hex. */
                serial?: string;
                /** @description SHA-256 of the certificate, 64 hex digits, with or without colons. */
                fingerprint_sha256?: string;
                /** @description The requester, as in records. */
                requester?: string;
                /** @description The ID of a device. */
                device?: string;
                /** @description The key of a device's entry, which distinguishes devices with one ID. */
                device_key?: string;
                /** @enum {string} */
                status?: "valid" | "revoked" | "expired";
                /**
                 * Format: date-time
                 * @description Certificates issued after this time.
                 */
                issued_after?: string;
                /**
                 * Format: date-time
                 * @description Certificates that expire before this time.
                 */
                expires_before?: string;
            };
            /**
             * @description An RFC 5280 CRLReason name; default `unspecified`.
             * @enum {string}
             */
            reason?: "unspecified" | "keyCompromise" | "cACompromise" | "affiliationChanged" | "superseded" | "cessationOfOperation" | "certificateHold" | "privilegeWithdrawn" | "aACompromise";
            /**
             * Format: date-time
             * @description The time since which the key may be compromised or the certificate is invalid; not in the future.
             */
            invalidity_date?: string;
            /** @description true: count, and revoke nothing. */
            dry_run?: boolean;
            /** @description The number of certificates from a dry run. Required unless `dry_run` is true. */
            count?: number;
        };
        /** @description The result. */
        BulkRevocationResult: {
            /** @description The number of certificates that match the filters. */
            count: number;
            /** @description The number of revoked certificates; at most 10000 per call. */
            revoked: number;
            /** @description The number of certificates left: the `count` of the next call. */
            remaining: number;
        };
        /** @description How long the certificate may be used for one more renewal. */
        Rescue: {
            /** @description From now on, or from its expiry on if it has not expired. */
            for_seconds: number;
            /** @description For the audit log. */
            reason?: string;
        };
        /** @description Which keys issued the certificates of a label, and who still needs each. */
        Rollover: {
            label: string;
            issuers: {
                /** @description RFC 4514. */
                subject: string;
                key_sha256: string | null;
                not_after: string | null;
                /** @description Whether it issues now. */
                current: boolean;
                /** @description Holders with a valid certificate of this key that have used no newer certificate. */
                holders: number;
                /** @description Of these, how many cacerts gave the current CA certificate (at least). */
                informed: number;
                latest_expiry: string | null;
                /** @description Whether nobody needs it, and it does not issue now. */
                can_be_retired: boolean;
                /** @description The first hundred holders. */
                in_the_way: components["schemas"]["Holder"][];
            }[];
        };
        /** @description The certificates to replace, and the deadline. */
        RenewalStart: {
            filter: {
                /** @description A CA's label. */
                ca?: string;
                /** @description A further label of a CA: certificates requested there. */
                label?: string;
                /** @description A part of the subject; case-insensitive. */
                subject?: string;
                /** @description A part of one of the subjectAltNames, as in records (`DNS:a`); case-insensitive. */
                san?: string;
                /** @description The complete serial number, hex. */
                serial?: string;
                /** @description SHA-256 of the certificate, 64 hex digits, with or without colons. */
                fingerprint_sha256?: string;
                /** @description The requester, as in records. */
                requester?: string;
                /** @description The ID of a device. */
                device?: string;
                /** @description The key of a device's entry, which distinguishes devices with one ID. */
                device_key?: string;
                /** @enum {string} */
                status?: "valid" | "revoked" | "expired";
                /**
                 * Format: date-time
                 * @description Certificates issued after this time.
                 */
                issued_after?: string;
                /**
                 * Format: date-time
                 * @description Certificates that expire before this time.
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
        /** @description A replacement campaign and its progress. */
        RenewalProgress: {
            id: string;
            /** @description The filters of the campaign. */
            filter: {
                [key: string]: unknown;
            };
            /**
             * Format: date-time
             * @description The campaign ignores certificates issued later.
             */
            starts_at: string;
            /**
             * Format: date-time
             * @description The deadline.
             */
            by: string;
            created_by: string;
            reason: string | null;
            explanation_url: string | null;
            /** @description Matching certificates that are neither revoked nor expired without a replacement. */
            total: number;
            /** @description Certificates with a later one of the same holder, or one that was issued in their renewal. */
            replaced: number;
            /** @description Certificates that are not replaced and not due. */
            waiting: number;
            /** @description Certificates that are not replaced, and whose renewal was rejected since the start. */
            failed: number;
            /** @description Certificates that are not replaced after `by`. */
            overdue: number;
            /** @description The first 100. */
            waiting_certificates: components["schemas"]["Certificate"][];
            /** @description The first 100. */
            failed_certificates: components["schemas"]["Certificate"][];
            /** @description The first 100. */
            overdue_certificates: components["schemas"]["Certificate"][];
        };
        /** @description A replacement campaign. */
        Renewal: {
            id: string;
            /** @description The filters of the campaign. */
            filter: {
                [key: string]: unknown;
            };
            /**
             * Format: date-time
             * @description The campaign ignores certificates issued later.
             */
            starts_at: string;
            /**
             * Format: date-time
             * @description The deadline.
             */
            by: string;
            created_by: string;
            reason: string | null;
            explanation_url: string | null;
        };
        /** @description A receiver of notifications. */
        NotificationReceiver: {
            name: string;
            /** @enum {string} */
            kind: "webhook" | "smtp";
            /** @description The server of a webhook, or the recipients of mail. */
            destination: string;
            events: ("certificate.expiring" | "certificate.issued" | "certificate.revoked" | "request.queued" | "request.decided" | "authentication.locked" | "ca.expiring" | "crl.overdue" | "client_crl.expired" | "ca.unavailable" | "upstream.unavailable" | "renewal.overdue" | "holder.expired" | "holder.failing" | "holder.stuck" | "holder.late")[] | null;
            labels: string[] | null;
            /**
             * @description `standby`: another node delivers, and knows of its attempts.
             * @enum {string}
             */
            state: "ok" | "failing" | "standby";
            /** @description Failed attempts in succession. */
            failures: number;
            problem: string | null;
            delivered_at: string | null;
            /** @description Audit records after the last one that is done. */
            behind: number;
        };
        /** @description The receiver accepted the sample. */
        NotificationTest: {
            name: string;
            /** @enum {boolean} */
            delivered: true;
        };
        /** @description A queued request. */
        Request: {
            /** @description Also the request_id of its certificate and audit records. */
            id: string;
            /** @description The CA's label. */
            ca: string;
            /** @description `simpleenroll`, `simplereenroll`, … */
            operation: string;
            /** @description RFC 4514. */
            subject: string;
            /** @description `DNS:a`, `IP:1.2.3.4`, `email:…`, `URI:…`, `upn:…` (docs/guides/names.md) */
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
            /** @description Also the request_id of its certificate and audit records. */
            id: string;
            /** @description The CA's label. */
            ca: string;
            /** @description `simpleenroll`, `simplereenroll`, … */
            operation: string;
            /** @description RFC 4514. */
            subject: string;
            /** @description `DNS:a`, `IP:1.2.3.4`, `email:…`, `URI:…`, `upn:…` (docs/guides/names.md) */
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
        /** @description A request to simpleenroll. */
        CheckQuestion: {
            /** @description A CA's label. */
            ca: string;
            /** @description A PKCS #10, PEM. */
            csr: string;
            /** @description The assumed requester: exactly one of these. */
            as: {
                /** @description The client_id of a one-time password. */
                client_id?: string;
                /** @description A Kerberos principal with its realm. */
                principal?: string;
                /** @description PEM: the client certificate, then its intermediate certificates. */
                certificate?: string;
                /** @description The ID of a registered device, with any method of authentication. */
                device?: string;
            };
        };
        /** @description What would happen. */
        CheckAnswer: {
            /**
             * @description `queue`: the request would wait for an administrator, or for an agent of the remote CA.
             * @enum {string}
             */
            verdict: "issue" | "queue" | "refuse";
            /** @description For `refuse`: the code of the error. */
            code?: string;
            /** @description For `refuse`: the text that the client would get. */
            message?: string;
            /** @description RFC 4514: the subject of the certificate; for `refuse`, the subject of the request. */
            subject: string;
            /** @description The subjectAltNames, likewise. */
            sans: string[];
            not_after: string | null;
        };
        /** @description What would happen. */
        RequestCheck: {
            /**
             * @description `queue`: the request would wait for an administrator, or for an agent of the remote CA.
             * @enum {string}
             */
            verdict: "issue" | "queue" | "refuse";
            /** @description For `refuse`: the code of the error. */
            code?: string;
            /** @description For `refuse`: the text that the client would get. */
            message?: string;
            /** @description RFC 4514: the subject of the certificate; for `refuse`, the subject of the request. */
            subject: string;
            /** @description The subjectAltNames, likewise. */
            sans: string[];
            not_after: string | null;
            approvals: {
                /** @description Administrators who have approved the request. */
                given: number;
                /** @description Administrators who must approve the request. */
                needed: number;
            };
        };
        /** @description The device to register. */
        NewDevice: {
            /** @description The client_id of its tokens, or a principal; no control characters. */
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
                /** @description One of its names: `DNS:a`, `IP:1.2.3.4`, `email:…`, `URI:…`, `hardware_module:OID:HEX` (docs/guides/names.md). */
                san?: string;
                /** @description SHA-256 of the certificate or its ECDSA twin, hex. */
                fingerprint_sha256?: string;
            } | null;
            /** @description Values by name, for the names in its certificates. */
            attributes?: {
                [key: string]: string;
            };
            /** @description true if absent. */
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
                /** @description One of its names: `DNS:a`, `IP:1.2.3.4`, `email:…`, `URI:…`, `hardware_module:OID:HEX` (docs/guides/names.md). */
                san?: string;
                /** @description SHA-256 of the certificate or its ECDSA twin, hex. */
                fingerprint_sha256?: string;
            } | null;
            /** @description Values by name, for the names in its certificates. */
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
        /** @description A registered device, with what is known of its certificates. */
        ListedDevice: {
            id: string;
            ca: string | null;
            match: {
                /** @description SHA-256 of the issuer's SubjectPublicKeyInfo, hex. */
                issuer_spki_sha256?: string;
                /** @description The attribute serialNumber of its subject. */
                serial_number?: string;
                /** @description The attribute CN of its subject. */
                common_name?: string;
                /** @description One of its names: `DNS:a`, `IP:1.2.3.4`, `email:…`, `URI:…`, `hardware_module:OID:HEX` (docs/guides/names.md). */
                san?: string;
                /** @description SHA-256 of the certificate or its ECDSA twin, hex. */
                fingerprint_sha256?: string;
            } | null;
            /** @description Values by name, for the names in its certificates. */
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
            certificate_not_after: string | null;
            last_used_at: string | null;
        };
        /** @description An audit record, with the fields that the roles of the caller may see. */
        ShownAuditRecord: {
            seq: number;
            /** Format: date-time */
            time: string;
            /** @description The node that wrote the record. */
            node?: string;
            /** @enum {string} */
            type: "service.start" | "service.stop" | "config.reload" | "auth.mtls" | "auth.otp" | "auth.gssapi" | "auth.ldap" | "auth.jwt" | "auth.cmc" | "auth.admin" | "lockout.started" | "lockout.cleared" | "otp.created" | "otp.changed" | "otp.used" | "otp.returned" | "otp.revoked" | "request.received" | "request.queued" | "request.approved" | "request.rejected" | "request.expired" | "certificate.issued" | "certificate.denied" | "certificate.failed" | "certificate.revoked" | "certificate.held" | "certificate.released" | "certificate.rescued" | "certificate.rescue_ended" | "certificate.accepted" | "certificate.imported" | "renewal.started" | "renewal.ended" | "renewal.overdue" | "holder.expired" | "holder.failing" | "holder.stuck" | "holder.late" | "certificate.expiring" | "ca.expiring" | "crl.overdue" | "client_crl.expired" | "ca.unavailable" | "upstream.unavailable" | "notification.failed" | "device.created" | "device.changed" | "device.deleted" | "key.generated" | "key.archived" | "ca.signature" | "crl.issued" | "admin.access" | "audit.recovered" | "audit.rotated" | "audit.archived" | "audit.anchored" | "audit.checkpoint" | "store.purged" | "store.restored" | "store.accepted" | "store.behind";
            /** @enum {string} */
            outcome: "success" | "failure";
            /** @description Who. */
            subject?: string;
            /** @description How the requester authenticated (`mtls`, `otp`, `gssapi`, `ldap`, `jwt`, `cmc`), or the administrator (`mtls`, `bearer`, `oidc`). */
            method?: string;
            /** @description The issuer of the requester's or administrator's certificate. */
            requester_issuer?: string;
            /** @description The subjectAltNames of the requester's certificate. */
            requester_sans?: string[];
            /** @description The client's network address. */
            address?: string;
            /** @description A label. */
            ca?: string;
            /** @description Of a certificate: the label of the request, if it is not the label of the CA. */
            label?: string;
            /** @description The serial number of the issued or revoked certificate, or of the one that the client presented. */
            serial?: string;
            /** @description Of the issued or revoked certificate. */
            certificate_subject?: string;
            /** @description Of the issued or revoked certificate. */
            certificate_sans?: string[];
            /** @description Of the issued or revoked certificate. */
            certificate_not_after?: string;
            /** @description Of an issued certificate whose CA certified other names: those that were authorized, in DER. */
            authorized_names?: string;
            /** @description Of the revoked certificate: an RFC 5280 CRLReason name. */
            revocation_reason?: string;
            /** @description Of the revoked certificate, if it was given. */
            invalidity_date?: string;
            /** @description The end of a pass for one more renewal. */
            rescue_until?: string;
            /** @description The same in all records of a request. */
            request_id?: string;
            /** @description Of an issued certificate or a rejected request: the operation. Of `admin.access`: the call. */
            operation?: string;
            /** @description Of a rejected request: whether it is for the names of the requester's certificate. */
            renewal?: boolean;
            /** @description Of an issued certificate: its owner, if that is not `subject`. */
            requester?: string;
            /** @description The ID of the registered device. */
            device?: string;
            /** @description The key of the device's entry. A later device with the same ID has another key. */
            device_key?: string;
            /** @description Of an issued certificate: whether the label issues to registered devices only. */
            device_required?: boolean;
            /** @description The new value, if the device was enabled or disabled. */
            device_enabled?: boolean;
            /** @description The ID of the token. */
            token?: string;
            /** @description The new expiry date of the token. */
            token_expires_at?: string;
            /** @description Why a request or a credential was rejected, or a request expired. */
            reason?: string;
            /** @description Of an issued CRL. */
            crl_number?: number;
            /** @description Of a certificate or CA that expires: the reached number of days before its expiry. */
            days?: number;
            /** @description Of `holder.*`: the holder, as in `GET /admin/fleet`. */
            holder?: {
                [key: string]: unknown;
            };
            /** @description Of `holder.*`: how many holders entered the state, instead of single records. */
            count?: number;
            /** @description Text for people. Programs use the other fields. */
            detail?: string;
            /** @description Records that were moved from the store to an archive. */
            archived?: {
                /** @description The `seq` of the first. */
                first: number;
                /** @description The `seq` of the last. */
                last: number;
                /** @description The hash of the last. */
                hash: string;
            };
            /** @description A signed checkpoint: the end of the chain. */
            checkpoint?: {
                /** @description The `seq` of the last record. */
                seq: number;
                /** @description Its hash. */
                hash: string;
                /** @description The signature in base64, made with `audit.checkpoint_key`. */
                signature: string;
            };
            /** @description The ends of the chains of other nodes. */
            anchors?: {
                /** @description The node that the chain belongs to. */
                node: string;
                /** @description The `seq` of the last record of that chain. */
                seq: number;
                /** @description Its hash. */
                hash: string;
            }[];
            /** @description The last record in the store when this transaction began. Absent in later records of the transaction. */
            stored?: number;
            /** @description The hash of the previous record. */
            prev_hash?: string;
            /** @description SHA-256, hex. */
            hash?: string;
        };
        /** @description A registered device, with its latest 100 certificates, tokens, requests and audit records, the newest first. */
        DeviceDetails: {
            /** @description As `device_key` in audit records. Another device with this ID has another key. */
            key: string;
            id: string;
            ca: string | null;
            match: {
                /** @description SHA-256 of the issuer's SubjectPublicKeyInfo, hex. */
                issuer_spki_sha256?: string;
                /** @description The attribute serialNumber of its subject. */
                serial_number?: string;
                /** @description The attribute CN of its subject. */
                common_name?: string;
                /** @description One of its names: `DNS:a`, `IP:1.2.3.4`, `email:…`, `URI:…`, `hardware_module:OID:HEX` (docs/guides/names.md). */
                san?: string;
                /** @description SHA-256 of the certificate or its ECDSA twin, hex. */
                fingerprint_sha256?: string;
            } | null;
            /** @description Values by name, for the names in its certificates. */
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
            certificate_not_after: string | null;
            last_used_at: string | null;
            certificates: components["schemas"]["Certificate"][];
            /** @description One-time passwords created for that name, or used for the request. */
            tokens: components["schemas"]["Token"][];
            /** @description Queued requests. */
            requests: components["schemas"]["Request"][];
            /** @description Audit records. `ra` gets the fields that `GET /admin/events` shows. */
            events: components["schemas"]["ShownAuditRecord"][];
        };
        /** @description The fields to change. Absent fields stay unchanged. */
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
                /** @description One of its names: `DNS:a`, `IP:1.2.3.4`, `email:…`, `URI:…`, `hardware_module:OID:HEX` (docs/guides/names.md). */
                san?: string;
                /** @description SHA-256 of the certificate or its ECDSA twin, hex. */
                fingerprint_sha256?: string;
            } | null;
            /** @description Values by name, for the names in its certificates. */
            attributes?: {
                [key: string]: string;
            };
            /** @description true if absent. */
            enabled?: boolean;
            not_after?: string | null;
            note?: string | null;
        };
        /** @description A configured CA, or a further label of one. */
        Ca: {
            label: string;
            /** @description For a further label: the CA whose key signs. */
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
            /** @description PEM certificates as in the cacerts response: from the issuing CA to the root, then rollover certificates. */
            chain: string[];
        };
        /** @description A CA, with what the certificates of its chain contain. */
        CaDetails: {
            label: string;
            /** @description For a further label: the CA whose key signs. */
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
            /** @description PEM certificates as in the cacerts response: from the issuing CA to the root, then rollover certificates. */
            chain: string[];
            contents: components["schemas"]["CertificateContent"][];
        };
        /** @description CRL and OCSP of a CA. */
        CaRevocation: {
            /** @description The label of the CA whose key signs. */
            ca: string;
            published_by: ("estuary" | "ca") | null;
            /** @description The address of the publication listener, as in certificates. */
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
                /** @description The number of certificates in the CRL. */
                entries: number;
                /**
                 * @description `overdue`: a newer CRL is due. `expired`: its nextUpdate has passed, so relying parties reject it.
                 * @enum {string}
                 */
                state: "current" | "overdue" | "expired";
            } | null;
            ocsp: {
                /**
                 * @description The key that signs the responses now.
                 * @enum {string}
                 */
                signed_by: "ca" | "responder";
                responder: {
                    /** @description RFC 4514. */
                    subject: string;
                    serial: string;
                    /** Format: date-time */
                    not_after: string;
                    /** @description Whole days until not_after; negative after expiry. */
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
        /** @description A record as in the audit file. Fields that do not apply are absent. */
        AuditRecord: {
            seq: number;
            /** Format: date-time */
            time: string;
            /** @description The node that wrote the record. */
            node?: string;
            /** @enum {string} */
            type: "service.start" | "service.stop" | "config.reload" | "auth.mtls" | "auth.otp" | "auth.gssapi" | "auth.ldap" | "auth.jwt" | "auth.cmc" | "auth.admin" | "lockout.started" | "lockout.cleared" | "otp.created" | "otp.changed" | "otp.used" | "otp.returned" | "otp.revoked" | "request.received" | "request.queued" | "request.approved" | "request.rejected" | "request.expired" | "certificate.issued" | "certificate.denied" | "certificate.failed" | "certificate.revoked" | "certificate.held" | "certificate.released" | "certificate.rescued" | "certificate.rescue_ended" | "certificate.accepted" | "certificate.imported" | "renewal.started" | "renewal.ended" | "renewal.overdue" | "holder.expired" | "holder.failing" | "holder.stuck" | "holder.late" | "certificate.expiring" | "ca.expiring" | "crl.overdue" | "client_crl.expired" | "ca.unavailable" | "upstream.unavailable" | "notification.failed" | "device.created" | "device.changed" | "device.deleted" | "key.generated" | "key.archived" | "ca.signature" | "crl.issued" | "admin.access" | "audit.recovered" | "audit.rotated" | "audit.archived" | "audit.anchored" | "audit.checkpoint" | "store.purged" | "store.restored" | "store.accepted" | "store.behind";
            /** @enum {string} */
            outcome: "success" | "failure";
            /** @description Who. */
            subject?: string;
            /** @description How the requester authenticated (`mtls`, `otp`, `gssapi`, `ldap`, `jwt`, `cmc`), or the administrator (`mtls`, `bearer`, `oidc`). */
            method?: string;
            /** @description The issuer of the requester's or administrator's certificate. */
            requester_issuer?: string;
            /** @description The subjectAltNames of the requester's certificate. */
            requester_sans?: string[];
            /** @description The client's network address. */
            address?: string;
            /** @description A label. */
            ca?: string;
            /** @description Of a certificate: the label of the request, if it is not the label of the CA. */
            label?: string;
            /** @description The serial number of the issued or revoked certificate, or of the one that the client presented. */
            serial?: string;
            /** @description Of the issued or revoked certificate. */
            certificate_subject?: string;
            /** @description Of the issued or revoked certificate. */
            certificate_sans?: string[];
            /** @description Of the issued or revoked certificate. */
            certificate_not_after?: string;
            /** @description Of an issued certificate whose CA certified other names: those that were authorized, in DER. */
            authorized_names?: string;
            /** @description Of the revoked certificate: an RFC 5280 CRLReason name. */
            revocation_reason?: string;
            /** @description Of the revoked certificate, if it was given. */
            invalidity_date?: string;
            /** @description The end of a pass for one more renewal. */
            rescue_until?: string;
            /** @description The same in all records of a request. */
            request_id?: string;
            /** @description Of an issued certificate or a rejected request: the operation. Of `admin.access`: the call. */
            operation?: string;
            /** @description Of a rejected request: whether it is for the names of the requester's certificate. */
            renewal?: boolean;
            /** @description Of an issued certificate: its owner, if that is not `subject`. */
            requester?: string;
            /** @description The ID of the registered device. */
            device?: string;
            /** @description The key of the device's entry. A later device with the same ID has another key. */
            device_key?: string;
            /** @description Of an issued certificate: whether the label issues to registered devices only. */
            device_required?: boolean;
            /** @description The new value, if the device was enabled or disabled. */
            device_enabled?: boolean;
            /** @description The ID of the token. */
            token?: string;
            /** @description The new expiry date of the token. */
            token_expires_at?: string;
            /** @description Why a request or a credential was rejected, or a request expired. */
            reason?: string;
            /** @description Of an issued CRL. */
            crl_number?: number;
            /** @description Of a certificate or CA that expires: the reached number of days before its expiry. */
            days?: number;
            /** @description Of `holder.*`: the holder, as in `GET /admin/fleet`. */
            holder?: {
                [key: string]: unknown;
            };
            /** @description Of `holder.*`: how many holders entered the state, instead of single records. */
            count?: number;
            /** @description Text for people. Programs use the other fields. */
            detail?: string;
            /** @description Records that were moved from the store to an archive. */
            archived?: {
                /** @description The `seq` of the first. */
                first: number;
                /** @description The `seq` of the last. */
                last: number;
                /** @description The hash of the last. */
                hash: string;
            };
            /** @description A signed checkpoint: the end of the chain. */
            checkpoint?: {
                /** @description The `seq` of the last record. */
                seq: number;
                /** @description Its hash. */
                hash: string;
                /** @description The signature in base64, made with `audit.checkpoint_key`. */
                signature: string;
            };
            /** @description The ends of the chains of other nodes. */
            anchors?: {
                /** @description The node that the chain belongs to. */
                node: string;
                /** @description The `seq` of the last record of that chain. */
                seq: number;
                /** @description Its hash. */
                hash: string;
            }[];
            /** @description The last record in the store when this transaction began. Absent in later records of the transaction. */
            stored?: number;
            /** @description The hash of the previous record. */
            prev_hash: string;
            /** @description SHA-256, hex. */
            hash: string;
        };
        /** @description The changes of a reload, or of a dry run. */
        ReloadReport: {
            /** @description Nothing has changed. */
            dry_run: boolean;
            /** @description Changed keys that take effect immediately, such as `ca[devices].profile.validity_days`. */
            changed: string[];
            /** @description Changed keys that take effect at the next start, such as `ca[devices].profile.validity_days`. */
            needs_restart: string[];
            /** @description The certificates in force afterwards. */
            certificates: {
                /** @description `tls`, `ca`, `client_anchor` …, as in the metrics. */
                use: string;
                ca: string | null;
                subject: string;
                serial: string;
                /** Format: date-time */
                not_after: string;
                /** @description true: it was not in force before. */
                new: boolean;
            }[];
            /** @description Allowed but unsafe settings. */
            warnings: {
                key: string;
                message: string;
            }[];
            /** @description Files and certificates that cannot be used. They affect only what needs them. */
            faults: {
                key: string;
                message: string;
            }[];
        };
        ConfigurationKey: {
            /** @description Such as `ca[devices].profile.validity_days`. */
            key: string;
            /** @description A string, number, boolean or list; `[secret]` for a secret. */
            value: unknown;
            /** @description true: a reload applies a change; false: the next start does. */
            live: boolean;
        };
        /** @description The configuration in force. */
        Configuration: {
            /** @description Every key with its value or default, in the order of the reference. */
            keys: components["schemas"]["ConfigurationKey"][];
            reload: {
                /** Format: date-time */
                at: string;
                /** @description false: the configuration in force differs from the file. */
                ok: boolean;
            } | null;
        };
        /** @description The state of the service. */
        Overview: {
            /**
             * Format: date-time
             * @description The time of this report.
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
            /** @description The number of pending requests, by CA. For `ra` and `auditor`. */
            requests?: {
                pending: {
                    ca: string;
                    count: number;
                }[];
            };
            /** @description Error responses to devices, and rejected credentials of administrators, of the last 24 hours; by code. */
            rejections: {
                /**
                 * Format: date-time
                 * @description A whole hour.
                 */
                since: string;
                total: number;
                /** @description The most frequent first. */
                codes: {
                    /** @description docs/reference/errors.md. */
                    code: string;
                    count: number;
                    /** @description The type of most of its audit records. */
                    audit_type: string;
                }[];
            };
            /** @description The number of lockouts in force. For `operator`. */
            lockouts?: number;
            /** @description The health of the service and its dependencies. For `operator`. */
            health?: {
                store: {
                    /** @enum {string} */
                    health: "ok" | "degraded" | "down";
                    /** @description The reason if it is not ok. */
                    detail?: string;
                };
                cas: {
                    label: string;
                    /** @enum {string} */
                    health: "ok" | "degraded" | "down";
                    /** @description The reason if it is not ok. */
                    detail?: string;
                    not_after: string | null;
                    days_left: number | null;
                }[];
                dependencies: {
                    /** @description As in `estuary_dependency_up`. */
                    name: string;
                    ca: string | null;
                    up: boolean;
                }[];
                /** @description Files that cannot be used, and CRLs that are missing or have expired. */
                faults: {
                    key: string;
                    message: string;
                }[];
                /** @description The nodes that share the store, by name. A dead node disappears when another node notices it. */
                nodes: {
                    /** @description `store.node_name`, as in audit records. */
                    name: string;
                    /** @description The host name of the machine. */
                    host: string;
                    /** @description false: it has not renewed its lease for 20 seconds, so the other nodes close what it left open. */
                    alive: boolean;
                    lease_age: number | null;
                    /** @description true: this node does the work that one node does for all, such as signing CRLs. */
                    on_duty: boolean;
                }[];
                reload: {
                    /** Format: date-time */
                    at: string;
                    ok: boolean;
                } | null;
                /** @description The certificates that the service needs, the earliest expiry first. */
                certificates: {
                    /** @description `tls`, `ca`, `client_anchor` …, as in the metrics. */
                    use: string;
                    ca: string | null;
                    subject: string;
                    serial: string;
                    /** Format: date-time */
                    not_after: string;
                    /** @description Whole days until not_after; negative after expiry. */
                    days_left: number;
                }[];
            };
        };
        StatisticsItem: {
            /**
             * Format: date-time
             * @description The start of the interval, UTC.
             */
            time: string;
            /** @description Certificates issued, without renewals. */
            issued: number;
            /** @description Certificates issued by simplereenroll. */
            renewed: number;
            /** @description Rejected requests of authenticated clients. */
            refused: number;
            /** @description Requests that failed in the CA or in this server. */
            failed: number;
            /** @description Requests queued for approval. */
            queued: number;
            /** @description Certificates revoked. */
            revoked: number;
            /** @description Audit records of rejected credentials. Repeated ones share a record. */
            unauthenticated: number;
            /** @description Error responses of any code to devices, and rejected credentials of administrators. */
            rejected: number;
        };
        /** @description The events per interval. */
        Statistics: {
            /** @enum {string} */
            interval: "hour" | "day";
            /**
             * Format: date-time
             * @description The start of the first interval.
             */
            since: string;
            /**
             * Format: date-time
             * @description The end of the last interval.
             */
            until: string;
            /** @description One item per interval, also for intervals without events; the oldest first. */
            items: components["schemas"]["StatisticsItem"][];
        };
        /** @description The latest 100 of each kind, the newest first. */
        History: {
            certificates: components["schemas"]["Certificate"][];
            /** @description One-time passwords created for that name, or used for the request. */
            tokens: components["schemas"]["Token"][];
            /** @description Queued requests. */
            requests: components["schemas"]["Request"][];
            /** @description Audit records. `ra` gets the fields that `GET /admin/events` shows. */
            events: components["schemas"]["ShownAuditRecord"][];
        };
        /** @description The caller. */
        Session: {
            /** @description The administrator's name: as configured, otherwise the description of the token or the subject of the certificate. The audit log shows it. */
            subject: string;
            /** @description The display name at the OpenID provider. */
            name?: string;
            /**
             * @description The method of authentication, now or at sign-in.
             * @enum {string}
             */
            method: "bearer" | "mtls" | "oidc";
            /** @description The roles of the caller. */
            roles: ("admin" | "ra" | "auditor" | "operator")[];
            /** @description What the caller may do at which labels. */
            grants: {
                roles: ("admin" | "ra" | "auditor" | "operator")[];
                labels: string[] | null;
            }[];
            not_after: string | null;
            /** @description The session of a caller who has signed in. */
            session?: {
                /**
                 * Format: date-time
                 * @description The time of the sign-in.
                 */
                created_at: string;
                /**
                 * Format: date-time
                 * @description The time at which the session ends.
                 */
                ends_at: string;
                /** @description Seconds without a call after which the session ends. */
                idle_timeout: number;
            };
        };
        /** @description What devices need to know. */
        Service: {
            /** @description The URL of the EST listener. Its host is that of the call if the server certificate is for it, otherwise the first DNS name of the certificate. */
            est_url: string;
            /** @description The labels that the caller may name. */
            labels: string[];
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
            query?: {
                /** @description 503 also while this label cannot issue; 404 for an unknown label. */
                ca?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The node should get requests. `parts` names `store`, `ca:` with each label that cannot issue or has its own CA, and with PostgreSQL `clock`; while they fail, also `files`, `client_crl`, and services as in `estuary_dependency_up`. A part that is `down` affects only what needs it. After a failed reload it also names `reload`, until a reload succeeds. */
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
            /** @description The label is unknown. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        statusCode: number;
                        /** @description The reason phrase of the status. */
                        error: string;
                        /** @description A stable code for programs. */
                        code: string;
                        /** @description One sentence for people. */
                        message: string;
                    };
                };
            };
            /** @description The store, the audit log or the clock is down, the node is stopping, or the label `ca` cannot issue. The message names every part that is down. */
            503: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        statusCode: number;
                        /** @description The reason phrase of the status. */
                        error: string;
                        /** @description A stable code for programs. */
                        code: string;
                        /** @description One sentence for people. */
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
            /** @description A parameter or the body is malformed. The message names the field. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call has no valid admin credentials. The response has WWW-Authenticate: Bearer. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call needs a role that the caller does not have, or a browser sent it for a page of another site. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The server failed. The log has the reason. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The store or the audit log is temporarily unavailable. */
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
                /** @description The complete client_id. */
                client_id?: string;
                status?: "active" | "consumed" | "expired" | "revoked";
                /** @description A part of the client_id, or the ID; case-insensitive. */
                search?: string;
                /** @description Oldest first, unless `desc`. */
                order?: "asc" | "desc";
                /** @description true: also counts the records that match, up to 10,000. */
                total?: "true" | "false";
                /** @description The largest number of items in one response. */
                limit?: number;
                /** @description next_cursor of the previous response; absent for the first page. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The order of creation. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        items: components["schemas"]["Token"][];
                        next_cursor: string | null;
                        /** @description With `total=true`. */
                        total?: {
                            count: number;
                            /** @description false: there are or may be more. */
                            exact: boolean;
                        };
                    };
                    "text/csv": unknown;
                };
            };
            /** @description A parameter or the body is malformed. The message names the field. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call has no valid admin credentials. The response has WWW-Authenticate: Bearer. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call needs a role that the caller does not have, or a browser sent it for a page of another site. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The server failed. The log has the reason. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The store or the audit log is temporarily unavailable. */
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
        /** @description The token to create. */
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
            /** @description A parameter or the body is malformed. The message names the field. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call has no valid admin credentials. The response has WWW-Authenticate: Bearer. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call needs a role that the caller does not have, or a browser sent it for a page of another site. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The current state does not allow the call. */
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
            /** @description The call does not accept this Content-Type. */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The server failed. The log has the reason. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The store or the audit log is temporarily unavailable. */
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
            /** @description A one-time password, without its secret. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Token"];
                };
            };
            /** @description A parameter or the body is malformed. The message names the field. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call has no valid admin credentials. The response has WWW-Authenticate: Bearer. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call needs a role that the caller does not have, or a browser sent it for a page of another site. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The object does not exist. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The server failed. The log has the reason. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The store or the audit log is temporarily unavailable. */
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
            /** @description Revoked, now or earlier. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description A parameter or the body is malformed. The message names the field. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call has no valid admin credentials. The response has WWW-Authenticate: Bearer. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call needs a role that the caller does not have, or a browser sent it for a page of another site. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The object does not exist. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The server failed. The log has the reason. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The store or the audit log is temporarily unavailable. */
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
        /** @description The fields to change. */
        requestBody: {
            content: {
                "application/json": components["schemas"]["ChangedToken"];
            };
        };
        responses: {
            /** @description A one-time password, without its secret. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Token"];
                };
            };
            /** @description A parameter or the body is malformed. The message names the field. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call has no valid admin credentials. The response has WWW-Authenticate: Bearer. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call needs a role that the caller does not have, or a browser sent it for a page of another site. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The object does not exist. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The current state does not allow the call. */
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
            /** @description The call does not accept this Content-Type. */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The server failed. The log has the reason. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The store or the audit log is temporarily unavailable. */
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
                /** @description Checks every row and reports the result. Nothing changes. */
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
            /** @description One result per row. No other response shows the tokens. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/x-ndjson": unknown;
                    "text/csv": unknown;
                };
            };
            /** @description A parameter or the body is malformed. The message names the field. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call has no valid admin credentials. The response has WWW-Authenticate: Bearer. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call needs a role that the caller does not have, or a browser sent it for a page of another site. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The current state does not allow the call. */
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
            /** @description The call does not accept this Content-Type. */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The server failed. The log has the reason. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The store or the audit log is temporarily unavailable. */
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
                /** @description A further label of a CA: certificates requested there. */
                label?: string;
                /** @description A part of the subject; case-insensitive. */
                subject?: string;
                /** @description A part of one of the subjectAltNames, as in records (`DNS:a`); case-insensitive. */
                san?: string;
                /** @description The complete serial number, hex. */
                serial?: string;
                /** @description SHA-256 of the certificate, 64 hex digits, with or without colons. */
                fingerprint_sha256?: string;
                /** @description The requester, as in records. */
                requester?: string;
                /** @description The ID of a device. */
                device?: string;
                /** @description The key of a device's entry, which distinguishes devices with one ID. */
                device_key?: string;
                status?: "valid" | "revoked" | "expired";
                /** @description Certificates issued after this time. */
                issued_after?: string;
                /** @description Certificates that expire before this time. */
                expires_before?: string;
                /** @description Oldest first, unless `desc`. */
                order?: "asc" | "desc";
                /** @description true: also counts the records that match, up to 10,000. */
                total?: "true" | "false";
                /** @description The largest number of items in one response. */
                limit?: number;
                /** @description next_cursor of the previous response; absent for the first page. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The order of issuance. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        items: components["schemas"]["Certificate"][];
                        next_cursor: string | null;
                        /** @description With `total=true`. */
                        total?: {
                            count: number;
                            /** @description false: there are or may be more. */
                            exact: boolean;
                        };
                    };
                    "text/csv": unknown;
                };
            };
            /** @description A parameter or the body is malformed. The message names the field. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call has no valid admin credentials. The response has WWW-Authenticate: Bearer. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call needs a role that the caller does not have, or a browser sent it for a page of another site. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The server failed. The log has the reason. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The store or the audit log is temporarily unavailable. */
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
            /** @description An issued certificate, with its PEM. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CertificateDetails"];
                };
            };
            /** @description A parameter or the body is malformed. The message names the field. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call has no valid admin credentials. The response has WWW-Authenticate: Bearer. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call needs a role that the caller does not have, or a browser sent it for a page of another site. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The current state does not allow the call. */
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
            /** @description The call does not accept this Content-Type. */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The server failed. The log has the reason. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The store or the audit log is temporarily unavailable. */
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
            /** @description An issued certificate, with its PEM. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CertificateDetails"];
                };
            };
            /** @description A parameter or the body is malformed. The message names the field. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call has no valid admin credentials. The response has WWW-Authenticate: Bearer. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call needs a role that the caller does not have, or a browser sent it for a page of another site. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The object does not exist. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The server failed. The log has the reason. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The store or the audit log is temporarily unavailable. */
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
            /** @description The chain of a certificate. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CertificateChain"];
                };
            };
            /** @description A parameter or the body is malformed. The message names the field. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call has no valid admin credentials. The response has WWW-Authenticate: Bearer. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call needs a role that the caller does not have, or a browser sent it for a page of another site. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The object does not exist. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The server failed. The log has the reason. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The store or the audit log is temporarily unavailable. */
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
    getFleet: {
        parameters: {
            query?: {
                state?: "expired" | "failing" | "waiting" | "stuck" | "late" | "due" | "never" | "ok";
                /** @description A label. */
                ca?: string;
                /** @description The ID of a device. */
                device?: string;
                /** @description A part of the subject; case-insensitive. */
                subject?: string;
                /** @description Holders whose newest certificate expires before this time. */
                expires_before?: string;
                /** @description Holders whose newest certificate last authenticated before this time, or never. */
                seen_before?: string;
                /** @description Oldest first, unless `desc`. */
                order?: "asc" | "desc";
                /** @description true: also counts the records that match, up to 10,000. */
                total?: "true" | "false";
                /** @description The largest number of items in one response. */
                limit?: number;
                /** @description next_cursor of the previous response; absent for the first page. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description By the expiry of the newest certificate. Devices without a certificate come last. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        items: components["schemas"]["Holder"][];
                        next_cursor: string | null;
                        /** @description With `total=true`. */
                        total?: {
                            count: number;
                            /** @description false: there are or may be more. */
                            exact: boolean;
                        };
                    };
                    "text/csv": unknown;
                };
            };
            /** @description A parameter or the body is malformed. The message names the field. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call has no valid admin credentials. The response has WWW-Authenticate: Bearer. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call needs a role that the caller does not have, or a browser sent it for a page of another site. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The server failed. The log has the reason. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The store or the audit log is temporarily unavailable. */
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
    getFleetSummary: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description How many holders are in which state. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["FleetSummary"];
                };
            };
            /** @description A parameter or the body is malformed. The message names the field. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call has no valid admin credentials. The response has WWW-Authenticate: Bearer. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call needs a role that the caller does not have, or a browser sent it for a page of another site. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The server failed. The log has the reason. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The store or the audit log is temporarily unavailable. */
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
            /** @description A parameter or the body is malformed. The message names the field. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call has no valid admin credentials. The response has WWW-Authenticate: Bearer. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call needs a role that the caller does not have, or a browser sent it for a page of another site. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The object does not exist. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The current state does not allow the call. */
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
            /** @description The call does not accept this Content-Type. */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The server failed. The log has the reason. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The store or the audit log is temporarily unavailable. */
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
            /** @description A parameter or the body is malformed. The message names the field. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call has no valid admin credentials. The response has WWW-Authenticate: Bearer. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call needs a role that the caller does not have, or a browser sent it for a page of another site. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The object does not exist. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The current state does not allow the call. */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The server failed. The log has the reason. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The store or the audit log is temporarily unavailable. */
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
        /** @description The filters, the reason and the expected number. */
        requestBody: {
            content: {
                "application/json": components["schemas"]["BulkRevocation"];
            };
        };
        responses: {
            /** @description The result. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["BulkRevocationResult"];
                };
            };
            /** @description A parameter or the body is malformed. The message names the field. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call has no valid admin credentials. The response has WWW-Authenticate: Bearer. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call needs a role that the caller does not have, or a browser sent it for a page of another site. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The current state does not allow the call. */
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
            /** @description The call does not accept this Content-Type. */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The server failed. The log has the reason. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The store or the audit log is temporarily unavailable. */
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
    postCertificatesBySerialRescue: {
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
        /** @description How long the certificate may be used for one more renewal. */
        requestBody: {
            content: {
                "application/json": components["schemas"]["Rescue"];
            };
        };
        responses: {
            /** @description An issued certificate. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Certificate"];
                };
            };
            /** @description A parameter or the body is malformed. The message names the field. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call has no valid admin credentials. The response has WWW-Authenticate: Bearer. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call needs a role that the caller does not have, or a browser sent it for a page of another site. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The object does not exist. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The current state does not allow the call. */
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
            /** @description The call does not accept this Content-Type. */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The server failed. The log has the reason. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The store or the audit log is temporarily unavailable. */
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
    deleteCertificatesBySerialRescue: {
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
            /** @description Ended. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description A parameter or the body is malformed. The message names the field. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call has no valid admin credentials. The response has WWW-Authenticate: Bearer. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call needs a role that the caller does not have, or a browser sent it for a page of another site. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The object does not exist. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The server failed. The log has the reason. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The store or the audit log is temporarily unavailable. */
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
    getCasByLabelRollover: {
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
            /** @description Which keys issued the certificates of a label, and who still needs each. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Rollover"];
                };
            };
            /** @description A parameter or the body is malformed. The message names the field. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call has no valid admin credentials. The response has WWW-Authenticate: Bearer. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call needs a role that the caller does not have, or a browser sent it for a page of another site. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The object does not exist. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The server failed. The log has the reason. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The store or the audit log is temporarily unavailable. */
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
                /** @description Oldest first, unless `desc`. */
                order?: "asc" | "desc";
                /** @description true: also counts the records that match, up to 10,000. */
                total?: "true" | "false";
                /** @description The largest number of items in one response. */
                limit?: number;
                /** @description next_cursor of the previous response; absent for the first page. */
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
                        /** @description With `total=true`. */
                        total?: {
                            count: number;
                            /** @description false: there are or may be more. */
                            exact: boolean;
                        };
                    };
                };
            };
            /** @description A parameter or the body is malformed. The message names the field. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call has no valid admin credentials. The response has WWW-Authenticate: Bearer. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call needs a role that the caller does not have, or a browser sent it for a page of another site. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The server failed. The log has the reason. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The store or the audit log is temporarily unavailable. */
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
            query?: {
                /** @description Counts the matching certificates. Nothing changes. */
                dry_run?: "true" | "false";
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** @description The certificates to replace, and the deadline. */
        requestBody: {
            content: {
                "application/json": components["schemas"]["RenewalStart"];
            };
        };
        responses: {
            /** @description A replacement campaign and its progress. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RenewalProgress"];
                };
            };
            /** @description A replacement campaign. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Renewal"];
                };
            };
            /** @description A parameter or the body is malformed. The message names the field. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call has no valid admin credentials. The response has WWW-Authenticate: Bearer. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call needs a role that the caller does not have, or a browser sent it for a page of another site. */
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
            /** @description The call does not accept this Content-Type. */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The server failed. The log has the reason. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The store or the audit log is temporarily unavailable. */
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
            /** @description A replacement campaign and its progress. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["RenewalProgress"];
                };
            };
            /** @description A parameter or the body is malformed. The message names the field. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call has no valid admin credentials. The response has WWW-Authenticate: Bearer. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call needs a role that the caller does not have, or a browser sent it for a page of another site. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The object does not exist. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The server failed. The log has the reason. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The store or the audit log is temporarily unavailable. */
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
            /** @description A parameter or the body is malformed. The message names the field. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call has no valid admin credentials. The response has WWW-Authenticate: Bearer. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call needs a role that the caller does not have, or a browser sent it for a page of another site. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The object does not exist. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The server failed. The log has the reason. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The store or the audit log is temporarily unavailable. */
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
    getNotifications: {
        parameters: {
            query?: {
                /** @description Oldest first, unless `desc`. */
                order?: "asc" | "desc";
                /** @description true: also counts the records that match, up to 10,000. */
                total?: "true" | "false";
                /** @description The largest number of items in one response. */
                limit?: number;
                /** @description next_cursor of the previous response; absent for the first page. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description In the order of the configuration. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        items: components["schemas"]["NotificationReceiver"][];
                        next_cursor: string | null;
                        /** @description With `total=true`. */
                        total?: {
                            count: number;
                            /** @description false: there are or may be more. */
                            exact: boolean;
                        };
                    };
                };
            };
            /** @description A parameter or the body is malformed. The message names the field. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call has no valid admin credentials. The response has WWW-Authenticate: Bearer. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call needs a role that the caller does not have, or a browser sent it for a page of another site. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The server failed. The log has the reason. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The store or the audit log is temporarily unavailable. */
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
    postNotificationsByNameTest: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                name: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The receiver accepted the sample. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["NotificationTest"];
                };
            };
            /** @description A parameter or the body is malformed. The message names the field. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call has no valid admin credentials. The response has WWW-Authenticate: Bearer. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call needs a role that the caller does not have, or a browser sent it for a page of another site. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The object does not exist. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The server failed. The log has the reason. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The store or the audit log is temporarily unavailable. */
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
                /** @description The ID of a device. */
                device?: string;
                /** @description A part of the subject, a subjectAltName, the requester or the device, or the ID; case-insensitive. */
                search?: string;
                /** @description Oldest first, unless `desc`. */
                order?: "asc" | "desc";
                /** @description true: also counts the records that match, up to 10,000. */
                total?: "true" | "false";
                /** @description The largest number of items in one response. */
                limit?: number;
                /** @description next_cursor of the previous response; absent for the first page. */
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
                        /** @description With `total=true`. */
                        total?: {
                            count: number;
                            /** @description false: there are or may be more. */
                            exact: boolean;
                        };
                    };
                    "text/csv": unknown;
                };
            };
            /** @description A parameter or the body is malformed. The message names the field. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call has no valid admin credentials. The response has WWW-Authenticate: Bearer. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call needs a role that the caller does not have, or a browser sent it for a page of another site. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The server failed. The log has the reason. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The store or the audit log is temporarily unavailable. */
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
            /** @description A parameter or the body is malformed. The message names the field. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call has no valid admin credentials. The response has WWW-Authenticate: Bearer. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call needs a role that the caller does not have, or a browser sent it for a page of another site. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The object does not exist. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The server failed. The log has the reason. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The store or the audit log is temporarily unavailable. */
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
            /** @description A parameter or the body is malformed. The message names the field. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call has no valid admin credentials. The response has WWW-Authenticate: Bearer. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call needs a role that the caller does not have, or a browser sent it for a page of another site. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The object does not exist. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The current state does not allow the call. */
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
            /** @description The call does not accept this Content-Type. */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The server failed. The log has the reason. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The store or the audit log is temporarily unavailable. */
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
            /** @description A parameter or the body is malformed. The message names the field. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call has no valid admin credentials. The response has WWW-Authenticate: Bearer. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call needs a role that the caller does not have, or a browser sent it for a page of another site. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The object does not exist. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The current state does not allow the call. */
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
            /** @description The call does not accept this Content-Type. */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The server failed. The log has the reason. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The store or the audit log is temporarily unavailable. */
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
            /** @description A parameter or the body is malformed. The message names the field. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call has no valid admin credentials. The response has WWW-Authenticate: Bearer. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call needs a role that the caller does not have, or a browser sent it for a page of another site. */
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
            /** @description The call does not accept this Content-Type. */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The server failed. The log has the reason. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The store or the audit log is temporarily unavailable. */
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
            /** @description A parameter or the body is malformed. The message names the field. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call has no valid admin credentials. The response has WWW-Authenticate: Bearer. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call needs a role that the caller does not have, or a browser sent it for a page of another site. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The object does not exist. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The current state does not allow the call. */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The server failed. The log has the reason. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The store or the audit log is temporarily unavailable. */
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
                /** @description The complete ID. */
                id?: string;
                /** @description Devices that can enroll only at this label. */
                ca?: string;
                /** @description true: enabled devices; false: disabled devices. */
                enabled?: "true" | "false";
                /** @description A part of the ID, the note or a value of `match`; case-insensitive. */
                search?: string;
                /** @description Oldest first, unless `desc`. */
                order?: "asc" | "desc";
                /** @description true: also counts the records that match, up to 10,000. */
                total?: "true" | "false";
                /** @description The largest number of items in one response. */
                limit?: number;
                /** @description next_cursor of the previous response; absent for the first page. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The order of registration. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        items: components["schemas"]["ListedDevice"][];
                        next_cursor: string | null;
                        /** @description With `total=true`. */
                        total?: {
                            count: number;
                            /** @description false: there are or may be more. */
                            exact: boolean;
                        };
                    };
                    "text/csv": unknown;
                };
            };
            /** @description A parameter or the body is malformed. The message names the field. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call has no valid admin credentials. The response has WWW-Authenticate: Bearer. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call needs a role that the caller does not have, or a browser sent it for a page of another site. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The server failed. The log has the reason. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The store or the audit log is temporarily unavailable. */
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
                /** @description Checks every row and reports the result. Nothing changes. */
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
            /** @description The changed device, or one result per row, or the result of a dry run. */
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
            /** @description A parameter or the body is malformed. The message names the field. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call has no valid admin credentials. The response has WWW-Authenticate: Bearer. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call needs a role that the caller does not have, or a browser sent it for a page of another site. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The current state does not allow the call. */
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
            /** @description The call does not accept this Content-Type. */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The server failed. The log has the reason. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The store or the audit log is temporarily unavailable. */
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
            query?: {
                /** @description The label of the device, if its ID exists at several. Empty: the device without a label. */
                ca?: string;
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
            /** @description A registered device, with its latest 100 certificates, tokens, requests and audit records, the newest first. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["DeviceDetails"];
                };
            };
            /** @description A parameter or the body is malformed. The message names the field. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call has no valid admin credentials. The response has WWW-Authenticate: Bearer. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call needs a role that the caller does not have, or a browser sent it for a page of another site. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The object does not exist. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The server failed. The log has the reason. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The store or the audit log is temporarily unavailable. */
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
                /** @description The label of the device, if its ID exists at several. Empty: the device without a label. */
                ca?: string;
                /** @description Also revoke its certificates. */
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
            /** @description A parameter or the body is malformed. The message names the field. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call has no valid admin credentials. The response has WWW-Authenticate: Bearer. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call needs a role that the caller does not have, or a browser sent it for a page of another site. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The object does not exist. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The server failed. The log has the reason. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The store or the audit log is temporarily unavailable. */
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
            query?: {
                /** @description The label of the device, if its ID exists at several. Empty: the device without a label. */
                ca?: string;
            };
            header?: never;
            path: {
                /** @description Percent-encoded. */
                id: string;
            };
            cookie?: never;
        };
        /** @description The fields to change. Absent fields stay unchanged. */
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
            /** @description A parameter or the body is malformed. The message names the field. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call has no valid admin credentials. The response has WWW-Authenticate: Bearer. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call needs a role that the caller does not have, or a browser sent it for a page of another site. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The object does not exist. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The current state does not allow the call. */
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
            /** @description The call does not accept this Content-Type. */
            415: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The server failed. The log has the reason. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The store or the audit log is temporarily unavailable. */
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
                /** @description Oldest first, unless `desc`. */
                order?: "asc" | "desc";
                /** @description true: also counts the records that match, up to 10,000. */
                total?: "true" | "false";
                /** @description The largest number of items in one response. */
                limit?: number;
                /** @description next_cursor of the previous response; absent for the first page. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The order of the configuration, with further labels after their CA; `desc` reverses it. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        items: components["schemas"]["Ca"][];
                        next_cursor: string | null;
                        /** @description With `total=true`. */
                        total?: {
                            count: number;
                            /** @description false: there are or may be more. */
                            exact: boolean;
                        };
                    };
                };
            };
            /** @description A parameter or the body is malformed. The message names the field. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call has no valid admin credentials. The response has WWW-Authenticate: Bearer. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call needs a role that the caller does not have, or a browser sent it for a page of another site. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The server failed. The log has the reason. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The store or the audit log is temporarily unavailable. */
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
            /** @description A CA, with what the certificates of its chain contain. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["CaDetails"];
                };
            };
            /** @description A parameter or the body is malformed. The message names the field. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call has no valid admin credentials. The response has WWW-Authenticate: Bearer. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call needs a role that the caller does not have, or a browser sent it for a page of another site. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The object does not exist. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The server failed. The log has the reason. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The store or the audit log is temporarily unavailable. */
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
            /** @description A parameter or the body is malformed. The message names the field. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call has no valid admin credentials. The response has WWW-Authenticate: Bearer. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call needs a role that the caller does not have, or a browser sent it for a page of another site. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The object does not exist. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The server failed. The log has the reason. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The store or the audit log is temporarily unavailable. */
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
            /** @description A parameter or the body is malformed. The message names the field. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call has no valid admin credentials. The response has WWW-Authenticate: Bearer. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call needs a role that the caller does not have, or a browser sent it for a page of another site. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The object does not exist. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The current state does not allow the call. */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The server failed. The log has the reason. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The store or the audit log is temporarily unavailable. */
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
                /** @description Oldest first, unless `desc`. */
                order?: "asc" | "desc";
                /** @description true: also counts the records that match, up to 10,000. */
                total?: "true" | "false";
                /** @description The largest number of items in one response. */
                limit?: number;
                /** @description next_cursor of the previous response; absent for the first page. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The lockouts in force, the earliest end first. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        items: components["schemas"]["Lockout"][];
                        next_cursor: string | null;
                        /** @description With `total=true`. */
                        total?: {
                            count: number;
                            /** @description false: there are or may be more. */
                            exact: boolean;
                        };
                    };
                    "text/csv": unknown;
                };
            };
            /** @description A parameter or the body is malformed. The message names the field. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call has no valid admin credentials. The response has WWW-Authenticate: Bearer. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call needs a role that the caller does not have, or a browser sent it for a page of another site. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The server failed. The log has the reason. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The store or the audit log is temporarily unavailable. */
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
                /** @description The key from the list, percent-encoded. */
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
            /** @description A parameter or the body is malformed. The message names the field. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call has no valid admin credentials. The response has WWW-Authenticate: Bearer. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call needs a role that the caller does not have, or a browser sent it for a page of another site. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The object does not exist. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The server failed. The log has the reason. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The store or the audit log is temporarily unavailable. */
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
                /** @description Records from this time on. */
                since?: string;
                /** @description Records up to this time. */
                until?: string;
                type?: "service.start" | "service.stop" | "config.reload" | "auth.mtls" | "auth.otp" | "auth.gssapi" | "auth.ldap" | "auth.jwt" | "auth.cmc" | "auth.admin" | "lockout.started" | "lockout.cleared" | "otp.created" | "otp.changed" | "otp.used" | "otp.returned" | "otp.revoked" | "request.received" | "request.queued" | "request.approved" | "request.rejected" | "request.expired" | "certificate.issued" | "certificate.denied" | "certificate.failed" | "certificate.revoked" | "certificate.held" | "certificate.released" | "certificate.rescued" | "certificate.rescue_ended" | "certificate.accepted" | "certificate.imported" | "renewal.started" | "renewal.ended" | "renewal.overdue" | "holder.expired" | "holder.failing" | "holder.stuck" | "holder.late" | "certificate.expiring" | "ca.expiring" | "crl.overdue" | "client_crl.expired" | "ca.unavailable" | "upstream.unavailable" | "notification.failed" | "device.created" | "device.changed" | "device.deleted" | "key.generated" | "key.archived" | "ca.signature" | "crl.issued" | "admin.access" | "audit.recovered" | "audit.rotated" | "audit.archived" | "audit.anchored" | "audit.checkpoint" | "store.purged" | "store.restored" | "store.accepted" | "store.behind";
                /** @description A part of the subject; case-insensitive. */
                subject?: string;
                /** @description A label. */
                ca?: string;
                /** @description The complete serial number, hex. */
                serial?: string;
                /** @description The ID of a request. */
                request_id?: string;
                /** @description Oldest first, unless `desc`. */
                order?: "asc" | "desc";
                /** @description true: also counts the records that match, up to 10,000. */
                total?: "true" | "false";
                /** @description The largest number of items in one response. */
                limit?: number;
                /** @description next_cursor of the previous response; absent for the first page. */
                cursor?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The order of the chain. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": {
                        items: components["schemas"]["AuditRecord"][];
                        next_cursor: string | null;
                        /** @description With `total=true`. */
                        total?: {
                            count: number;
                            /** @description false: there are or may be more. */
                            exact: boolean;
                        };
                    };
                    "text/csv": unknown;
                };
            };
            /** @description A parameter or the body is malformed. The message names the field. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call has no valid admin credentials. The response has WWW-Authenticate: Bearer. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call needs a role that the caller does not have, or a browser sent it for a page of another site. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The server failed. The log has the reason. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The store or the audit log is temporarily unavailable. */
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
                /** @description Report what would change, and change nothing. */
                dry_run?: "true" | "false";
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The changes of a reload, or of a dry run. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["ReloadReport"];
                };
            };
            /** @description A parameter or the body is malformed. The message names the field. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call has no valid admin credentials. The response has WWW-Authenticate: Bearer. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call needs a role that the caller does not have, or a browser sent it for a page of another site. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The current state does not allow the call. */
            409: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The server failed. The log has the reason. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The store or the audit log is temporarily unavailable. */
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
            /** @description The configuration in force. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Configuration"];
                };
            };
            /** @description A parameter or the body is malformed. The message names the field. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call has no valid admin credentials. The response has WWW-Authenticate: Bearer. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call needs a role that the caller does not have, or a browser sent it for a page of another site. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The server failed. The log has the reason. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The store or the audit log is temporarily unavailable. */
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
            /** @description A parameter or the body is malformed. The message names the field. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call has no valid admin credentials. The response has WWW-Authenticate: Bearer. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call needs a role that the caller does not have, or a browser sent it for a page of another site. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The server failed. The log has the reason. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The store or the audit log is temporarily unavailable. */
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
                /** @description Intervals from this time on; default one day ago, with `day` 30 days ago. */
                since?: string;
                /** @description Intervals up to this time; default now. */
                until?: string;
                /** @description Default `hour`; days are in UTC. */
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
            /** @description The events per interval. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Statistics"];
                };
            };
            /** @description A parameter or the body is malformed. The message names the field. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call has no valid admin credentials. The response has WWW-Authenticate: Bearer. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call needs a role that the caller does not have, or a browser sent it for a page of another site. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The server failed. The log has the reason. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The store or the audit log is temporarily unavailable. */
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
            /** @description A parameter or the body is malformed. The message names the field. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call has no valid admin credentials. The response has WWW-Authenticate: Bearer. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call needs a role that the caller does not have, or a browser sent it for a page of another site. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The server failed. The log has the reason. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The store or the audit log is temporarily unavailable. */
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
                /** @description The ID of a device. */
                device?: string;
                /** @description The requester, as in certificates, requests and audit records. */
                requester?: string;
                /** @description The ID of a request. */
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
            /** @description A parameter or the body is malformed. The message names the field. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call has no valid admin credentials. The response has WWW-Authenticate: Bearer. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call needs a role that the caller does not have, or a browser sent it for a page of another site. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The server failed. The log has the reason. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The store or the audit log is temporarily unavailable. */
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
            /** @description A parameter or the body is malformed. The message names the field. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call has no valid admin credentials. The response has WWW-Authenticate: Bearer. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call needs a role that the caller does not have, or a browser sent it for a page of another site. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The server failed. The log has the reason. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The store or the audit log is temporarily unavailable. */
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
            /** @description A parameter or the body is malformed. The message names the field. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call has no valid admin credentials. The response has WWW-Authenticate: Bearer. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call needs a role that the caller does not have, or a browser sent it for a page of another site. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The server failed. The log has the reason. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The store or the audit log is temporarily unavailable. */
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
            /** @description A parameter or the body is malformed. The message names the field. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call has no valid admin credentials. The response has WWW-Authenticate: Bearer. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call needs a role that the caller does not have, or a browser sent it for a page of another site. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The object does not exist. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The server failed. The log has the reason. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The store or the audit log is temporarily unavailable. */
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
    getService: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description What devices need to know. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Service"];
                };
            };
            /** @description A parameter or the body is malformed. The message names the field. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call has no valid admin credentials. The response has WWW-Authenticate: Bearer. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call needs a role that the caller does not have, or a browser sent it for a page of another site. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The server failed. The log has the reason. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The store or the audit log is temporarily unavailable. */
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
    getAuthOidcLogin: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description To the provider, or back to the console. */
            303: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description The call has no valid admin credentials. The response has WWW-Authenticate: Bearer. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call needs a role that the caller does not have, or a browser sent it for a page of another site. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The object does not exist. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The server failed. The log has the reason. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The store or the audit log is temporarily unavailable. */
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
    getAuthOidcCallback: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description To the provider, or back to the console. */
            303: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
            /** @description The call has no valid admin credentials. The response has WWW-Authenticate: Bearer. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call needs a role that the caller does not have, or a browser sent it for a page of another site. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The object does not exist. */
            404: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The server failed. The log has the reason. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The store or the audit log is temporarily unavailable. */
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
            /** @description A parameter or the body is malformed. The message names the field. */
            400: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call has no valid admin credentials. The response has WWW-Authenticate: Bearer. */
            401: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The call needs a role that the caller does not have, or a browser sent it for a page of another site. */
            403: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The server failed. The log has the reason. */
            500: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "application/json": components["schemas"]["Error"];
                };
            };
            /** @description The store or the audit log is temporarily unavailable. */
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
