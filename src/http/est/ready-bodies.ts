/** Bodies that are the same for every request, encoded once. */
import { encodeBody } from './codec.ts';

/**
 * Of each source the body that was made of it, by the columns of its lines. A source is an object that never changes; another one in its
 * place has bodies of its own.
 */
export class ReadyBodies {
  readonly #ready = new WeakMap<object, Map<number | undefined, string>>();

  /** @param make the DER, where there is no body yet; what it throws is thrown */
  of(source: object, lineLength: number | undefined, make: () => Buffer): string {
    let bodies = this.#ready.get(source);
    if (bodies === undefined) this.#ready.set(source, (bodies = new Map<number | undefined, string>()));
    let body = bodies.get(lineLength);
    if (body === undefined) bodies.set(lineLength, (body = encodeBody(make(), lineLength)));
    return body;
  }
}
