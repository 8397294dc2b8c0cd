import type { AdminApp } from '../admin/dependencies.ts';
import { badRequest, EstuaryError } from '../errors.ts';

/** Bodies are JSON in UTF-8 and nothing else: another type or a content coding is 415, what is not JSON is 400. */
export function registerJsonParser(app: AdminApp): void {
  const utf8 = new TextDecoder('utf-8', { fatal: true });
  app.removeAllContentTypeParsers();
  app.addContentTypeParser('application/json', { parseAs: 'buffer' }, (_request, body, done) => {
    try {
      // A DELETE may name the type of a body that it does not have.
      const value: unknown = body.length === 0 ? undefined : JSON.parse(utf8.decode(Buffer.from(body)));
      done(null, value);
    } catch {
      done(badRequest('BODY_NOT_JSON', 'the body is not JSON in UTF-8'), undefined);
    }
  });
  app.addHook('preParsing', (request, _reply, _payload, done) => {
    const coding = request.headers['content-encoding'];
    if (coding === undefined || coding.toLowerCase() === 'identity') done();
    else done(new EstuaryError(415, 'CONTENT_CODING_UNSUPPORTED', 'the body must not be compressed'));
  });
}
