/** OCSP over HTTP (RFC 6960 appendix A.1). */

/** Milliseconds for the response, and its longest length. */
const [TIMEOUT, MAX_LENGTH] = [10_000, 65_536];

/** @throws Error */
export async function askResponder(url: string, request: Buffer): Promise<Buffer> {
  const headers = { 'content-type': 'application/ocsp-request', accept: 'application/ocsp-response' };
  const body = Uint8Array.from(request);
  const signal = AbortSignal.timeout(TIMEOUT);
  const response = await fetch(url, { method: 'POST', headers, body, signal, redirect: 'error' });
  const received: AsyncIterable<unknown> | Iterable<unknown> = response.body ?? [];
  const chunks: Uint8Array[] = [];
  let length = 0;
  for await (const chunk of received) {
    if (!(chunk instanceof Uint8Array)) continue;
    if ((length += chunk.length) > MAX_LENGTH) throw new Error(`the response of ${url} is too long`);
    chunks.push(chunk);
  }
  if (response.status !== 200) throw new Error(`${url}: ${response.status}`);
  return Buffer.concat(chunks);
}
