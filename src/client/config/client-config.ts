/** The content of `client.toml`, checked and with absolute paths; names are those of the TOML. */
import type { Format } from '../keep/formats.ts';

export interface ClientConfig {
  readonly server: ServerConfig;
  readonly token: TokenConfig | undefined;
  readonly certificate: readonly CertificateConfig[];
  readonly health_file: string | undefined;
  readonly prometheus_file: string | undefined;
}

export interface ServerConfig {
  /** In order of preference. */
  readonly url: readonly string[];
  readonly tls_server_name: string | undefined;
  readonly proxy: string | undefined;
  readonly proxy_password_file: string | undefined;
  readonly trust_anchors: string | undefined;
  readonly ca_fingerprint: string | undefined;
  readonly system_trust_anchors: boolean;
  readonly accept_cmc_ra: boolean;
  readonly min_version: 'TLSv1.2' | 'TLSv1.3';
  readonly max_version: 'TLSv1.2' | 'TLSv1.3';
  readonly timeout: number;
}

export interface TokenConfig {
  readonly module: string;
  readonly label: string;
  readonly pin_file: string | undefined;
  readonly pin_env: string | undefined;
  readonly engine: string | undefined;
}

export interface CertificateConfig {
  readonly name: string;
  /** From the top level of the document. */
  readonly token: TokenConfig | undefined;
  readonly label: string | undefined;
  readonly folder: string;
  readonly subject: string;
  readonly dns_names: readonly string[];
  readonly ip_addresses: readonly string[];
  readonly emails: readonly string[];
  readonly uris: readonly string[];
  readonly ext_key_usage: readonly string[];
  readonly key_type: string | undefined;
  readonly key_store: 'file' | 'token';
  readonly key_file: string | undefined;
  readonly new_key: boolean;
  readonly channel_binding: 'when-asked' | 'always' | 'never';
  readonly username: string;
  readonly otp_file: string | undefined;
  readonly otp_env: string | undefined;
  readonly otp_reusable: boolean;
  readonly token_file: string | undefined;
  readonly kerberos: boolean;
  readonly certificate: string | undefined;
  readonly private_key: string | undefined;
  readonly renew_at: number;
  readonly formats: readonly Format[];
  readonly pkcs12_password_file: string | undefined;
  readonly owner: string | undefined;
  readonly group: string | undefined;
  readonly mode: string;
  readonly before: string | undefined;
  readonly reload: string | undefined;
  readonly after: string | undefined;
  readonly failure: string | undefined;
  readonly hook_timeout: number;
  /** From the top level of the document. */
  readonly hooks: string;
}
