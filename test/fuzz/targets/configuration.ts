/** The configuration file, without the files that it names. */
import { writeFileSync } from 'node:fs';
import { loadConfigOnly } from '../../../src/config/load.ts';
import { ConfigError } from '../../../src/config/problem.ts';
import { toml } from '../../config/support.ts';
import { temporaryFolder } from '../../support/openssl.ts';
import { type Target } from '../target.ts';

async function read(input: Buffer): Promise<void> {
  const { file, remove } = temporaryFolder();
  try {
    writeFileSync(file('est.toml'), input);
    await loadConfigOnly(file('est.toml'), { SECRET: 'secret' });
  } finally {
    remove();
  }
}

const WORDS =
  `[server] [est] [tls.client_auth] [admin.tls] [admin.bearer_token] [[admin.bearer_token.tokens]] [otp] [gssapi]
[serverkeygen] [[serverkeygen.keys]] [cmc] [publication] [requests] [store] [audit] [log] [[ca]] [ca.profile] [ca.profile.san]
[ca.profile.subject] [ca.profile.subject.patterns] [ca.csrattrs] [[ca.csrattrs.extensions]] [ca.dogtag] [ca.pkcs11] [ca.file]
listen port mode trust_anchors crl certificate private_key label default driver chain key_types validity_days patterns allowed
required dns email uri ip max wildcards principal_mapping default_template service_principal token_hash description
"0.0.0.0:443" "required" "optional" "dogtag" "pkcs11" "file" "niap" "(a+)+$" "[" 1_000 0x7f 1e3 1979-05-27T07:32:00Z inf nan
true false """ ''' {a=1} [1,[2]] _file= _env="SECRET" \\u0000 \\U0010FFFF`.split(/\s+/);

export const target: Target = {
  grammar: 'text',
  // The operator's own file: 500 empty tables have 2,500 problems, and every one is told.
  maxLength: 4096,
  milliseconds: 500,
  words: WORDS,
  seeds: () =>
    [
      toml(),
      toml('[server]\nshutdown_grace = 2\n[est]\nserverkeygen = true\n[log]\nlevel = "debug"'),
      toml(
        '[gssapi]\nenabled = true\nkeytab = "k"\nservice_principal = "HTTP/a@B"\ndefault_template = "CN={principal}"',
      ),
      toml(
        '[ca.profile]\nkey_types = ["ec:P-256"]\n[ca.profile.subject]\nrequired = ["CN"]\npatterns = { CN = "[a-z]+" }',
      ),
      toml('[ca.csrattrs]\ntemplate = true\nsubject = [{ CN = "" }]\noids = ["2.5.4.5"]'),
      toml('[otp]\nhmac_key_env = "SECRET"\n[admin.bearer_token]\nenabled = true'),
      'profile = "niap"\na.b."c d" = [1, 2.5, { x = 1979-05-27 }]\n',
    ].map((text) => Buffer.from(text)),
  read,
  isRefusal: (error) => error instanceof ConfigError,
};
