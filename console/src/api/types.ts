/** The records of the admin API that the console shows. */

export type Role = 'admin' | 'ra' | 'auditor' | 'operator';

export interface Session {
  readonly subject: string;
  readonly method: string;
  readonly roles: readonly Role[];
  readonly not_after: string | null;
  readonly session?: { readonly created_at: string; readonly ends_at: string; readonly idle_timeout: number };
}

export interface Page<T> {
  readonly items: readonly T[];
  readonly next_cursor: string | null;
}

export interface Token {
  readonly id: string;
  readonly client_id: string;
  readonly ca: string | null;
  readonly created_at: string;
  readonly expires_at: string;
  readonly max_uses: number;
  readonly uses: number;
  readonly status: 'active' | 'consumed' | 'expired' | 'revoked';
}

export interface CreatedToken {
  readonly id: string;
  readonly token: string;
  readonly client_id: string;
  readonly created_at: string;
  readonly expires_at: string;
  readonly max_uses: number;
}

export interface Certificate {
  readonly serial: string;
  readonly ca: string;
  readonly label?: string;
  readonly subject: string;
  readonly sans: readonly string[];
  readonly not_before: string;
  readonly not_after: string;
  readonly status: 'valid' | 'revoked' | 'expired';
  readonly revoked_at: string | null;
  readonly reason: string | null;
  readonly requester: string;
  readonly method: string;
  readonly request_id: string;
  readonly fingerprint_sha256: string;
  readonly device: string | null;
}

export interface CertificatePage extends Certificate {
  readonly pem: string;
  readonly archived_key_id: string | null;
}

export interface QueuedRequest {
  readonly id: string;
  readonly ca: string;
  readonly operation: string;
  readonly subject: string;
  readonly sans: readonly string[];
  readonly key_type: string;
  readonly requester: string;
  readonly method: string;
  readonly status: 'pending' | 'approved' | 'issued' | 'rejected' | 'failed' | 'expired';
  readonly created_at: string;
  readonly decided_at: string | null;
  readonly decided_by: readonly string[];
  readonly reason: string | null;
  readonly serial: string | null;
  readonly device: string | null;
  readonly requester_issuer: string | null;
  readonly requester_sans: readonly string[];
}

export interface RequestPage extends QueuedRequest {
  readonly spki_sha256: string | null;
  readonly ca_reference: string | null;
  readonly csr: string;
}

export interface Verdict {
  readonly verdict: 'issue' | 'queue' | 'refuse';
  readonly code?: string;
  readonly message?: string;
  readonly subject: string;
  readonly sans: readonly string[];
  readonly not_after: string | null;
}

export interface DeviceMatch {
  readonly issuer?: string;
  readonly serial_number?: string;
  readonly common_name?: string;
  readonly san?: string;
  readonly fingerprint_sha256?: string;
}

export interface Device {
  readonly id: string;
  readonly ca: string | null;
  readonly match: DeviceMatch | null;
  readonly attributes: Readonly<Record<string, string>>;
  readonly enabled: boolean;
  readonly not_after: string | null;
  readonly note: string | null;
  readonly created_at: string;
  readonly changed_at: string;
}

export interface DevicePage extends Device {
  readonly certificates: readonly Certificate[];
  readonly tokens: readonly Token[];
  readonly requests: readonly QueuedRequest[];
  readonly events: readonly AuditRecord[];
}

export interface AuditRecord {
  readonly seq: number;
  readonly time: string;
  readonly node?: string;
  readonly type: string;
  readonly outcome: 'success' | 'failure';
  readonly subject?: string;
  readonly method?: string;
  readonly requester_issuer?: string;
  readonly requester_sans?: readonly string[];
  readonly address?: string;
  readonly ca?: string;
  readonly label?: string;
  readonly serial?: string;
  readonly certificate_subject?: string;
  readonly certificate_sans?: readonly string[];
  readonly certificate_not_after?: string;
  readonly request_id?: string;
  readonly detail?: string;
  readonly prev_hash: string;
  readonly hash: string;
}

export interface Ca {
  readonly label: string;
  readonly ca?: string;
  readonly default: boolean;
  readonly driver: string;
  readonly subject: string | null;
  readonly not_after: string | null;
  readonly days_left: number | null;
  readonly health: Health;
  readonly certificate: string | null;
  readonly chain: readonly string[];
}

export type Health = 'ok' | 'degraded' | 'down';

export interface Lockout {
  readonly key: string;
  readonly scope: string;
  readonly failures: number;
  readonly locked_until: string;
}

export interface ReloadReport {
  readonly dry_run: boolean;
  readonly changed: readonly string[];
  readonly needs_restart: readonly string[];
  readonly certificates: readonly {
    readonly use: string;
    readonly ca: string | null;
    readonly subject: string;
    readonly serial: string;
    readonly not_after: string;
    readonly new: boolean;
  }[];
  readonly warnings: readonly { readonly key: string; readonly message: string }[];
}
