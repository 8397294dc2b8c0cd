/** `client cacerts`: the server's CA certificates that are trusted (RFC 7030 §4.1). */
import { withServer } from '../../../client/one-shot.ts';
import { certsOnly } from '../../../pki/cms/pkcs7.ts';
import { pemOf } from '../../../pki/x509/certificate.ts';
import { EXIT, type CommandContext } from '../command.ts';
import { certificateJson, jsonText, openOnce, reported, write, type OnceOptions } from './once.ts';

/** @throws UsageError; ConfigError */
export function run(options: OnceOptions, context: CommandContext): Promise<number> {
  return reported(options, context, async () => {
    const { anchors, intermediates } = await withServer(openOnce(options, context), (_, cas) => Promise.resolve(cas));
    const all = [...anchors, ...intermediates];
    const content = (): string | Buffer => {
      if (options.json) return jsonText({ certificates: all.map(certificateJson) });
      return options.der ? certsOnly(all.map(({ der }) => der)) : pemOf(all);
    };
    write(content(), options, context);
    return EXIT.ok;
  });
}
