/** An identity provider: oidc-provider over https, with signing keys that can be rotated. */
import { createServer, type Server } from 'node:https';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { exportJWK, generateKeyPair, SignJWT, type CryptoKey } from 'jose';
import Provider from 'oidc-provider';
import { OID } from '../../src/pki/der/oids.ts';
import { encodePem } from '../../src/pki/der/pem.ts';
import { dns, extKeyUsage, makeCa, makeClient, subjectAltName } from './certificates.ts';
import { call } from './https.ts';

export const AUDIENCE = 'https://est.example';

/** A web application that signs people in, and these people with their groups. */
export interface WebClient {
  readonly redirectUri: string;
  readonly groups: Readonly<Record<string, readonly string[]>>;
}

export const WEB_CLIENT = 'estuary-console';
export const WEB_SECRET = 'the secret: of+the%console';

type Handler = (request: IncomingMessage, response: ServerResponse) => void;

interface SigningKey {
  readonly kid: string;
  readonly privateKey: CryptoKey;
}

/** Clients get access tokens (JWT) with the grant client_credentials; `sub` is the name of the client. */
export class TokenIssuer {
  readonly #server: Server;
  #handler: Handler = () => undefined;
  #key: SigningKey | undefined;
  #keys = 0;
  /** In place of the answer to a request for the keys. */
  jwksAnswer: Handler | undefined;
  /** Requests for the keys so far. */
  jwksRequests = 0;
  readonly #clients: readonly string[];
  #web: WebClient | undefined;
  /** In place of the answer to any request. */
  answer: Handler | undefined;
  /** PEM of the CA that its certificate, for localhost, comes from. */
  readonly ca: string;

  private constructor(server: Server, ca: string, clients: readonly string[]) {
    this.#server = server;
    this.ca = ca;
    this.#clients = clients;
    server.on('request', (request: IncomingMessage, response: ServerResponse) => {
      if (this.answer !== undefined) {
        this.answer(request, response);
        return;
      }
      const isKeys = request.url === '/jwks';
      if (isKeys) this.jwksRequests++;
      (isKeys ? (this.jwksAnswer ?? this.#handler) : this.#handler)(request, response);
    });
  }

  static async start(clients: readonly string[]): Promise<TokenIssuer> {
    const issuer = await makeCa('CN=Identity Provider CA');
    const { der, keys } = await makeClient('CN=idp', issuer, {
      extensions: [extKeyUsage(OID.serverAuth), subjectAltName(dns('localhost'))],
    });
    const server = createServer({
      cert: encodePem('CERTIFICATE', der),
      key: keys.privateKey.export({ format: 'pem', type: 'pkcs8' }),
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const made = new TokenIssuer(server, encodePem('CERTIFICATE', issuer.der), clients);
    await made.rotate();
    return made;
  }

  get port(): number {
    return (this.#server.address() as AddressInfo).port;
  }

  get url(): string {
    return `https://localhost:${this.port}`;
  }

  get jwksUrl(): string {
    return `${this.url}/jwks`;
  }

  /** Signs with a new key from now on; the former one is forgotten. */
  async rotate(): Promise<void> {
    const { privateKey } = await generateKeyPair('ES256', { extractable: true });
    const kid = `key-${++this.#keys}`;
    this.#key = { kid, privateKey };
    await this.#restart();
  }

  /** People sign in at this application from now on: any password is right, and nobody has to consent. */
  async serve(web: WebClient): Promise<void> {
    this.#web = web;
    await this.#restart();
  }

  async #restart(): Promise<void> {
    if (this.#key === undefined) throw new Error('no key');
    const { kid, privateKey } = this.#key;
    const web = this.#web;
    const provider: Provider = new Provider(this.url, {
      ttl: { AuthorizationCode: 600 },
      jwks: { keys: [{ ...(await exportJWK(privateKey)), kid, alg: 'ES256', use: 'sig' }] },
      clients: [
        ...this.#clients.map((client_id) => ({
          client_id,
          client_secret: `secret of ${client_id}`,
          grant_types: ['client_credentials'],
          redirect_uris: [],
          response_types: [],
          id_token_signed_response_alg: 'ES256' as const,
        })),
        ...(web === undefined
          ? []
          : [
              {
                client_id: WEB_CLIENT,
                client_secret: WEB_SECRET,
                redirect_uris: [web.redirectUri],
                token_endpoint_auth_method: 'client_secret_basic' as const,
                id_token_signed_response_alg: 'ES256' as const,
              },
            ]),
      ],
      claims: { openid: ['sub', 'groups'], profile: ['name'] },
      findAccount: (_context, sub) => ({
        accountId: sub,
        claims: () => ({ sub, name: `Display of ${sub}`, groups: web?.groups[sub] }),
      }),
      loadExistingGrant: async ({ oidc: { client, session } }) => {
        const grant = new provider.Grant({ clientId: client?.clientId, accountId: session?.accountId });
        grant.addOIDCScope('openid profile');
        await grant.save();
        return grant;
      },
      cookies: { keys: ['of the tests'] },
      features: {
        clientCredentials: { enabled: true },
        devInteractions: { enabled: web !== undefined },
        resourceIndicators: {
          enabled: true,
          ...(web === undefined ? {} : { defaultResource: () => '' }),
          getResourceServerInfo: () => ({
            scope: 'est',
            audience: AUDIENCE,
            accessTokenFormat: 'jwt',
            accessTokenTTL: 600,
            jwt: { sign: { alg: 'ES256' } },
          }),
        },
      },
      extraTokenClaims: () => ({ hall: '7', groups: ['a', 'b'] }),
    });
    const handler = provider.callback();
    this.#handler = (request, response) => void handler(request, response);
  }

  /** An access token, as a device gets it. */
  async token(client: string): Promise<string> {
    const { status, text } = await call({
      port: this.port,
      path: '/token',
      method: 'POST',
      tls: { ca: this.ca },
      headers: {
        'Content-Type': 'application/x-www-form-urlencoded',
        Authorization: `Basic ${Buffer.from(`${client}:${encodeURIComponent(`secret of ${client}`)}`).toString('base64')}`,
      },
      body: new URLSearchParams({ grant_type: 'client_credentials', resource: AUDIENCE, scope: 'est' }).toString(),
    });
    const answer: unknown = JSON.parse(text);
    const token: unknown =
      typeof answer === 'object' && answer !== null ? Reflect.get(answer, 'access_token') : undefined;
    if (typeof token !== 'string') throw new Error(`the token endpoint answered ${status}: ${text}`);
    return token;
  }

  /** Any token, signed with the present key. @param claims replace the usual ones; undefined leaves one out */
  async signed(
    claims: Readonly<Record<string, unknown>> = {},
    header: { readonly kid?: string } = {},
  ): Promise<string> {
    if (this.#key === undefined) throw new Error('no key');
    const now = Math.floor(Date.now() / 1000);
    const usual = { iss: this.url, aud: AUDIENCE, sub: 'device-1', iat: now, exp: now + 600 };
    return new SignJWT({ ...usual, ...claims })
      .setProtectedHeader({ alg: 'ES256', kid: this.#key.kid, ...header })
      .sign(this.#key.privateKey);
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }
}
