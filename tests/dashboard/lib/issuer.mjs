// An identity provider: tokens that are signed with a shared secret, and the pages and endpoints of a sign-in.

import { createHash, createHmac, randomUUID } from "node:crypto";
import { createServer } from "node:http";

const SECRET = "a secret of the stories that is long enough for HS256";
const LIFE_S = 3_600;

/** Returns the settings of a server that accepts the tokens of an issuer. @param {string} url @param {string} [more] */
const settings = (url, more = "") => ({
  env: { STORY_SECRET: SECRET },
  files: { "config.toml": `[[auth.issuers]]\nissuer = "${url}"\naudience = "foldwork"\nhs256_secret_env = "STORY_SECRET"\nalgorithms = ["HS256"]\n${more}` },
});

/** The settings of a server that accepts the tokens of `token`. */
export const issuer = settings("https://id.example.com");

/** Returns a token of a person. @param {string} email @param {string} [name] @param {string} [url] */
export function token(email, name, url = "https://id.example.com", life = LIFE_S) {
  const part = (/** @type {object} */ value) => Buffer.from(JSON.stringify(value)).toString("base64url");
  const now = Math.floor(Date.now() / 1_000);
  const signed = `${part({ alg: "HS256", typ: "JWT" })}.${part({ iss: url, aud: "foldwork", sub: email, email, email_verified: true, name, iat: now, exp: now + life, jti: randomUUID() })}`;
  return `${signed}.${createHmac("sha256", SECRET).update(signed).digest("base64url")}`;
}

/**
 * Starts a provider that signs every client in as one person, and checks the requests of clients. Its tokens are valid
 * for `life` seconds.
 *
 * @param {{email: string, life?: number}} options
 */
export async function startProvider({ email, life = LIFE_S }) {
  /** @type {Map<string, {challenge: string, redirect: string}>} */
  const codes = new Map();
  /** The numbers of requests for tokens, by kind. */
  const granted = { authorization_code: 0, refresh_token: 0 };
  let refresh = randomUUID();
  const server = createServer(async (request, response) => {
    const url = new URL(request.url ?? "/", provider.url);
    const json = (/** @type {number} */ status, /** @type {object} */ body) => response.writeHead(status, { "Content-Type": "application/json", "Access-Control-Allow-Origin": "*" }).end(JSON.stringify(body));
    if (url.pathname === "/.well-known/openid-configuration") {
      return json(200, { issuer: provider.url, authorization_endpoint: `${provider.url}/authorize`, token_endpoint: `${provider.url}/token`, scopes_supported: ["openid", "email", "offline_access"] });
    }
    const asked = url.searchParams;
    if (url.pathname === "/authorize") {
      const redirect = new URL(asked.get("redirect_uri") ?? "");
      if (asked.get("client_id") !== "dashboard" || asked.get("code_challenge_method") !== "S256") return json(400, { error: "invalid_request" });
      if (provider.refuses) redirect.searchParams.set("error", "access_denied");
      const code = randomUUID();
      codes.set(code, { challenge: asked.get("code_challenge") ?? "", redirect: redirect.href });
      redirect.searchParams.set("code", code);
      redirect.searchParams.set("state", asked.get("state") ?? "");
      return response.writeHead(302, { Location: redirect.href }).end();
    }
    if (url.pathname !== "/token") return json(404, {});
    let text = "";
    for await (const chunk of request) text += chunk;
    const fields = new URLSearchParams(text);
    const kind = /** @type {keyof typeof granted} */ (fields.get("grant_type"));
    const known = codes.get(fields.get("code") ?? "");
    codes.delete(fields.get("code") ?? "");
    const isRight = kind === "refresh_token" ? fields.get("refresh_token") === refresh
      : known?.challenge === createHash("sha256").update(fields.get("code_verifier") ?? "").digest("base64url") && known?.redirect === fields.get("redirect_uri");
    if (!isRight) return json(400, { error: "invalid_grant" });
    granted[kind] += 1;
    refresh = randomUUID();
    json(200, { access_token: token(email, email.split("@")[0], provider.url, life), token_type: "Bearer", expires_in: life, refresh_token: refresh });
  });
  const provider = { url: "", refuses: false, granted, stop: () => server.close() };
  await new Promise((done) => { server.listen(0, "127.0.0.1", () => done(undefined)); });
  provider.url = `http://127.0.0.1:${/** @type {import("node:net").AddressInfo} */ (server.address()).port}`;
  return { ...provider, provider, settings: settings(provider.url, `[dashboard]\noidc_client_id = "dashboard"\n`) };
}
