// An identity provider: signs access tokens for the audience `foldwork` with the first of its published keys.
import { createRequire } from 'node:module';
import { readFileSync } from 'node:fs';

const [modules, port, keys] = process.argv.slice(2);
const { Provider } = await import(createRequire(`${modules}/`).resolve('oidc-provider'));
const issuer = `http://127.0.0.1:${port}`;

const provider = new Provider(issuer, {
  jwks: { keys: JSON.parse(readFileSync(keys, 'utf8')) },
  clients: [{
    client_id: 'app',
    application_type: 'native',
    token_endpoint_auth_method: 'none',
    grant_types: ['authorization_code'],
    response_types: ['code'],
    redirect_uris: ['http://127.0.0.1/callback'],
    id_token_signed_response_alg: 'ES256',
  }],
  clientAuthMethods: ['none'],
  pkce: { required: () => true },
  cookies: { keys: ['of a test'] },
  features: {
    devInteractions: { enabled: true },
    resourceIndicators: {
      enabled: true,
      defaultResource: () => 'urn:foldwork',
      useGrantedResource: () => true,
      getResourceServerInfo: () => ({
        scope: 'api',
        audience: 'foldwork',
        accessTokenFormat: 'jwt',
        accessTokenTTL: 600,
        jwt: { sign: { alg: 'ES256' } },
      }),
    },
  },
  extraTokenClaims: (_, token) => ({ email: `${token.accountId}@example.com`, email_verified: true }),
  findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
});
const server = provider.listen(Number(port), '127.0.0.1', () => console.log(`provides at ${issuer}`));
process.on('SIGTERM', () => { server.closeAllConnections(); server.close(() => process.exit(0)); });
