/** `client csrattrs`: what the server demands of requests (RFC 7030 §4.5). */
import { withServer } from '../../../client/one-shot.ts';
import { oidName } from '../../../pki/der/oids.ts';
import { encodeCsrAttrs, keyTypeOf, type AttrOrOid } from '../../../pki/pkcs10/csrattrs.ts';
import { EXIT, type CommandContext } from '../command.ts';
import { jsonText, openOnce, reported, write, type OnceOptions } from './once.ts';

/** @throws UsageError; ConfigError */
export function run(options: OnceOptions, context: CommandContext): Promise<number> {
  return reported(options, context, async () => {
    const attributes = await withServer(openOnce(options, context), (server) => server.csrAttributes(true));
    const content = (): string | Buffer => {
      if (options.json) return jsonText({ attributes: attributes.map(attributeJson) });
      return options.der ? encodeCsrAttrs(attributes) : attributes.map(line).join('');
    };
    write(content(), options, context);
    return EXIT.ok;
  });
}

const attributeJson = (one: AttrOrOid): object => ({
  oid: one.oid,
  name: oidName(one.oid),
  key_type: keyTypeOf(one),
  values: one.values?.map((value) => value.toString('hex')),
});

function line(one: AttrOrOid): string {
  const values = one.values?.map((value) => value.toString('hex')).join(', ') ?? '';
  const shown = keyTypeOf(one) ?? values;
  return `${oidName(one.oid)}${shown === '' ? '' : ` ${shown}`}\n`;
}
