//! Tests tokens of identity providers: valid tokens are accepted, forged tokens are rejected, and keys can be rotated.

use std::sync::Arc;

use foldwork_engine::error::ErrorCode;
use foldwork_engine::model::access::Role;
use foldwork_engine::{AccessSettings, Error};
use foldwork_server::Config;
use foldwork_tests::handles::join;
use foldwork_tests::issuer::{AUDIENCE, ISSUER, Provider, SECRET, SECRET_ISSUER, SigningKey, forged, signed_with};
use foldwork_tests::server::{Server, claims_of};
use jsonwebtoken::Algorithm;
use serde_json::{Value, json};

/// The time of every test server, in seconds since the epoch.
const NOW: i64 = 1_767_225_600;

fn config() -> Config {
    let mut config = Config::default();
    config.plugins.enabled.clear();
    config
}

async fn trusting(provider: &Arc<Provider>, settings: AccessSettings) -> Server {
    Server::start_deciding(&config(), settings, provider.clone()).await.expect("a server")
}

fn claims() -> Value {
    json!({"iss": ISSUER, "aud": AUDIENCE, "sub": "ada", "exp": NOW + 3_600, "iat": NOW})
}

fn with(name: &str, value: Value) -> Value {
    let mut claims = claims();
    claims[name] = value;
    claims
}

fn without(name: &str) -> Value {
    let mut claims = claims();
    claims.as_object_mut().expect("an object").remove(name);
    claims
}

/// Returns the status of a request with this token.
async fn status(server: &Server, token: &str) -> u16 {
    let request = poem::Request::builder().uri_str("/api/v1/workspace");
    server.call(request.header("authorization", format!("Bearer {token}")).finish()).await.status().as_u16()
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_signed_with_es256_rs256_or_eddsa_open_a_workspace() {
    for (algorithm, name) in [(Algorithm::ES256, "ES256"), (Algorithm::RS256, "RS256"), (Algorithm::EdDSA, "EdDSA")] {
        let key = SigningKey::new("one", algorithm);
        let server = trusting(&Provider::with(&[&key]), Provider::settings(&[name])).await;
        let caller = server.engine.authenticate(&key.sign(&claims())).await.expect("a caller");
        assert_eq!(caller.role().name(), "owner");
        let again = server.engine.authenticate(&key.sign(&with("exp", (NOW + 7_200).into()))).await.expect("a caller");
        assert_eq!(caller.workspace_id(), again.workspace_id(), "the user is the same");
        let other = server.engine.authenticate(&key.sign(&with("sub", "bob".into()))).await.expect("a caller");
        assert_ne!(caller.workspace_id(), other.workspace_id());
        assert_eq!(status(&server, &key.sign(&with("aud", json!(["else", AUDIENCE])))).await, 200);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn forged_and_invalid_tokens_are_rejected() {
    let rsa = SigningKey::new("one", Algorithm::RS256);
    let stranger = SigningKey::new("one", Algorithm::RS256);
    let ec = SigningKey::new("one", Algorithm::ES256);
    let provider = Provider::with(&[&rsa]);
    let server = trusting(&provider, Provider::settings(&["RS256"])).await;
    assert_eq!(status(&server, &rsa.sign(&claims())).await, 200);
    let public = rsa.public.to_string();
    let modulus = rsa.public["n"].as_str().expect("a modulus").to_owned();
    let none = json!({"alg": "none", "kid": "one"});
    let traversing = |kid: &str| {
        let mut key = rsa.clone();
        key.id = kid.to_owned();
        key.sign(&claims())
    };
    let good = rsa.sign(&claims());
    let (signed, signature) = good.rsplit_once('.').expect("three parts");
    let altered = rsa.sign(&with("sub", "bob".into()));
    let (altered, _) = altered.rsplit_once('.').expect("three parts");
    let critical = forged(&json!({"alg": "RS256", "kid": "one", "crit": ["b64"], "b64": false}), &claims(), &[1; 256]);
    let attacks: Vec<(&str, String)> = vec![
        ("no signature wanted", forged(&none, &claims(), b"")),
        ("no signature wanted, in capitals", forged(&json!({"alg": "NONE"}), &claims(), b"")),
        ("no signature", format!("{signed}.")),
        ("two parts", signed.to_owned()),
        ("four parts", format!("{good}.x")),
        ("a signature of other claims", format!("{altered}.{signature}")),
        ("the public key as a secret", signed_with(public.as_bytes(), &claims())),
        ("the modulus as a secret", signed_with(modulus.as_bytes(), &claims())),
        ("another issuer's secret", signed_with(SECRET, &claims())),
        ("a stranger's key under the same name", stranger.sign(&claims())),
        ("another family under the same name", ec.sign(&claims())),
        ("an extension that must be understood", critical),
        ("another audience", rsa.sign(&with("aud", "else".into()))),
        ("no audience", rsa.sign(&without("aud"))),
        ("another issuer", rsa.sign(&with("iss", "https://else.example.com".into()))),
        ("an issuer with a slash more", rsa.sign(&with("iss", format!("{ISSUER}/").into()))),
        ("no issuer", rsa.sign(&without("iss"))),
        ("no subject", rsa.sign(&without("sub"))),
        ("an empty subject", rsa.sign(&with("sub", "".into()))),
        ("no end", rsa.sign(&without("exp"))),
        ("an end that is a text", rsa.sign(&with("exp", (NOW + 60).to_string().into()))),
        ("expired by 61 s", rsa.sign(&with("exp", (NOW - 61).into()))),
        ("valid in 61 s", rsa.sign(&with("nbf", (NOW + 61).into()))),
        ("a path for a name", traversing("../../../../etc/passwd")),
        ("a path with a zero for a name", traversing("one\0")),
        ("a statement for a name", traversing("' OR 1=1 --")),
        ("an anonymous user", rsa.sign(&with("is_anonymous", true.into()))),
        ("nobody", rsa.sign(&with("role", "anon".into()))),
        ("a service", rsa.sign(&with("role", "service_role".into()))),
        ("a long one", format!("{good}{}", "a".repeat(20_000))),
        ("dots", "..".into()),
        ("a key in the place of a token", "sk_0".into()),
    ];
    for (name, token) in attacks {
        assert_eq!(status(&server, &token).await, 401, "{name}");
    }
    // Tokens are valid if the clocks differ by less than the leeway.
    assert_eq!(status(&server, &rsa.sign(&with("exp", (NOW - 59).into()))).await, 200);
    assert_eq!(status(&server, &rsa.sign(&with("nbf", (NOW + 59).into()))).await, 200);
    assert_eq!(status(&server, &good).await, 200);
    assert!(provider.request_count() <= 2, "{} requests for keys", provider.request_count());
}

#[tokio::test(flavor = "multi_thread")]
async fn tokens_with_a_wrong_secret_or_no_user_are_rejected_and_claims_give_no_role() {
    let server = trusting(&Arc::default(), Provider::settings(&["ES256"])).await;
    let good = claims_of("ada");
    assert_eq!(status(&server, &signed_with(SECRET, &good)).await, 200);
    assert_eq!(status(&server, &signed_with(b"another secret, of forty bytes and a few", &good)).await, 401);
    for (name, value) in [("is_anonymous", true.into()), ("role", "anon".into()), ("role", "service_role".into())] {
        let mut claims: Value = good.clone();
        claims[name] = value;
        assert_eq!(status(&server, &signed_with(SECRET, &claims)).await, 401, "{claims}");
    }
    // Claims that users can set themselves, such as a role `owner`, give no rights: the invited viewer stays a viewer.
    let owner = server.workspace("owner").await.expect("a workspace");
    let token = server.key("bob").expect("a token");
    let bob = join(&server.engine, &owner.owner, token, "bob@example.com", Role::Viewer).await.expect("joined");
    assert_eq!((bob.role().name(), bob.workspace_id()), ("viewer", &*owner.reader.record().id));
}

/// Returns the names of the workspaces that invite the user of a token.
async fn invited_to(server: &Server, token: &str) -> Vec<String> {
    let signed_in = server.engine.signed_in(token).await.expect("a user");
    let invitations = signed_in.invitations().await.expect("invitations");
    invitations.into_iter().map(|(_, workspace)| workspace.name).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn unverified_and_lookalike_addresses_match_no_invitation() {
    let key = SigningKey::new("one", Algorithm::ES256);
    let server = trusting(&Provider::with(&[&key]), Provider::settings(&["ES256"])).await;
    let owner = server.workspace("owner").await.expect("a workspace");
    let invitation = owner.owner.invite("Mike@Example.com", Role::Viewer).await.expect("invited");
    let says = |subject: &str, email: &str, verified: Value| {
        let mut claims = with("sub", subject.into());
        (claims["email"], claims["email_verified"]) = (email.into(), verified);
        claims
    };
    let denied = [json!(false), json!("false"), json!("TRUE"), json!(1), json!({})];
    for (number, verified) in denied.into_iter().enumerate() {
        let claims = says(&format!("denied-{number}"), "mike@example.com", verified.clone());
        assert_eq!(invited_to(&server, &key.sign(&claims)).await, [""; 0], "{verified}");
        // The setting `trusts_email` of an issuer applies only to tokens without the claim `email_verified`.
        let trusted = json!({"iss": SECRET_ISSUER, "aud": "authenticated"});
        let mut claims = claims;
        trusted.as_object().expect("an object").iter().for_each(|(name, value)| claims[name] = value.clone());
        let token = signed_with(SECRET, &claims);
        assert_eq!(invited_to(&server, &token).await, [""; 0], "{verified}");
        let refused = server.engine.signed_in(&token).await.expect("a user").accept(&invitation.id).await;
        assert!(matches!(refused, Err(Error::NotFound { .. })), "{refused:?}");
    }
    for (number, lookalike) in
        ["mi\u{212a}e@example.com", "ｍike@example.com", "mike@example.com.", "x@mike@example.com"]
            .into_iter()
            .enumerate()
    {
        let token = key.sign(&says(&format!("lookalike-{number}"), lookalike, true.into()));
        assert_eq!(invited_to(&server, &token).await, [""; 0], "{lookalike}");
    }
    for verified in [json!(true), json!("true")] {
        let token = key.sign(&says("mike", " MIKE@example.com", verified));
        assert_eq!(invited_to(&server, &token).await, ["default"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn changes_of_the_signing_keys_apply_after_the_next_fetch() {
    let (old, new) = (SigningKey::new("old", Algorithm::ES256), SigningKey::new("new", Algorithm::ES256));
    let provider = Provider::with(&[&old]);
    let server = trusting(&provider, Provider::settings(&["ES256"])).await;
    assert_eq!(status(&server, &old.sign(&claims())).await, 200);
    provider.publish(&[&new, &old]);
    // The server does not fetch the keys again, because it fetched them less than 30 seconds ago.
    assert_eq!(status(&server, &new.sign(&claims())).await, 401);
    server.clock.advance(30_000);
    assert_eq!(status(&server, &new.sign(&claims())).await, 200);
    assert_eq!(status(&server, &old.sign(&claims())).await, 200);
    assert_eq!(provider.request_count(), 2);
    // A key that is no longer published is rejected after the next fetch.
    provider.publish(&[&new]);
    let later = SigningKey::new("later", Algorithm::ES256);
    server.clock.advance(30_000);
    assert_eq!(status(&server, &later.sign(&claims())).await, 401);
    assert_eq!(status(&server, &old.sign(&claims())).await, 401);
    assert_eq!(status(&server, &new.sign(&claims())).await, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_issuer_outage_does_not_affect_known_keys() {
    let (old, new) = (SigningKey::new("old", Algorithm::ES256), SigningKey::new("new", Algorithm::ES256));
    let provider = Provider::with(&[&old]);
    provider.fail_requests(true);
    let server = trusting(&provider, Provider::settings(&["ES256"])).await;
    assert_eq!(status(&server, &old.sign(&claims())).await, 503, "the keys of the issuer were never fetched");
    provider.fail_requests(false);
    server.clock.advance(30_000);
    assert_eq!(status(&server, &old.sign(&claims())).await, 200);
    for broken in [Vec::new(), b"not found".to_vec(), b"{}".to_vec(), vec![b' '; 10 << 20]] {
        provider.publish_text(broken);
        server.clock.advance(30_000);
        assert_eq!(status(&server, &new.sign(&claims())).await, 401);
        assert_eq!(status(&server, &old.sign(&claims())).await, 200, "the last good keys are kept");
    }
    provider.fail_requests(true);
    server.clock.advance(3_000_000);
    assert_eq!(status(&server, &old.sign(&with("sub", "bob".into()))).await, 200);
    provider.fail_requests(false);
    provider.publish(&[&new]);
    server.clock.advance(30_000);
    assert_eq!(status(&server, &new.sign(&claims())).await, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn many_concurrent_tokens_with_unknown_key_ids_cause_one_fetch() {
    let key = SigningKey::new("one", Algorithm::ES256);
    let provider = Provider::with(&[&key]);
    let server = Arc::new(trusting(&provider, Provider::settings(&["ES256"])).await);
    assert_eq!(status(&server, &key.sign(&claims())).await, 200);
    server.clock.advance(30_000);
    let attackers = (0..4).map(|attacker| {
        let (server, mut key) = (server.clone(), key.clone());
        tokio::spawn(async move {
            for number in 0..2_500 {
                key.id = format!("{attacker}-{number}");
                let refused = server.engine.authenticate(&key.sign(&claims())).await;
                assert!(matches!(refused, Err(Error::Unauthenticated(_))));
            }
        })
    });
    for attacker in attackers.collect::<Vec<_>>() {
        attacker.await.expect("an attacker");
    }
    assert_eq!(provider.request_count(), 2);
    assert_eq!(status(&server, &key.sign(&claims())).await, 200);
}

#[test]
fn invalid_access_settings_are_rejected() {
    use foldwork_engine::{FetchKeys, Trust};
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let refused = |change: fn(&mut AccessSettings)| {
        let mut settings = Provider::settings(&["ES256"]);
        change(&mut settings);
        let provider: Arc<dyn FetchKeys> = Arc::new(Provider::default());
        runtime.block_on(async {
            let store = foldwork_engine::Store::connect("mem://").await.expect("a store");
            foldwork_tests::embedded::engine(store).await.configure_access(settings, &provider).err()
        })
    };
    assert_eq!(refused(|_| {}), None);
    assert!(refused(|settings| settings.issuers[0].algorithms.push("RS256".into())).is_some());
    assert!(refused(|settings| settings.issuers[0].algorithms = vec!["HS256".into()]).is_some());
    assert!(refused(|settings| settings.issuers[0].algorithms.clear()).is_some());
    assert!(refused(|settings| settings.issuers[0].algorithms = vec!["none".into()]).is_some());
    assert!(refused(|settings| settings.issuers[0].audience.clear()).is_some());
    assert!(refused(|settings| settings.issuers[1].trust = Trust::Secret(b"short".to_vec())).is_some());
    assert!(refused(|settings| settings.issuers[1].algorithms = vec!["RS256".into()]).is_some());
    assert!(refused(|settings| settings.default_plan = "none".into()).is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_determine_which_users_get_a_workspace() {
    let settings = AccessSettings { auto_provision: false, ..Provider::settings(&["ES256"]) };
    let server = trusting(&Arc::default(), settings).await;
    assert_eq!(status(&server, server.key("ada").expect("a token")).await, 403);
    // An invited user can sign in, but is a member of no workspace before accepting.
    let (owner, ada) = (server.workspace("owner").await.expect("a workspace"), server.key("ada").expect("a token"));
    assert!(matches!(
        server.engine.signed_in(ada).await.err(),
        Some(Error::Forbidden { code: ErrorCode::NotAMember, .. })
    ));
    let invitation = owner.owner.invite("ada@example.com", Role::Viewer).await.expect("invited");
    assert_eq!((invited_to(&server, ada).await, status(&server, ada).await), (vec!["default".to_owned()], 403));
    server.engine.signed_in(ada).await.expect("a user").accept(&invitation.id).await.expect("accepted");
    assert_eq!(status(&server, ada).await, 200);
    let domains = vec!["example.org".to_owned()];
    let settings = AccessSettings { allowed_email_domains: domains, ..Provider::settings(&["ES256"]) };
    let server = trusting(&Arc::default(), settings).await;
    assert_eq!(status(&server, server.key("ada").expect("a token")).await, 403);
    let mut claims = claims_of("ada");
    claims["email"] = "ada@Example.ORG".into();
    assert_eq!(status(&server, &signed_with(SECRET, &claims)).await, 200);
    // An address counts only if the issuer has verified it.
    let key = SigningKey::new("one", Algorithm::ES256);
    let provider = Provider::with(&[&key]);
    let domains = vec!["example.org".to_owned()];
    let settings = AccessSettings { allowed_email_domains: domains, ..Provider::settings(&["ES256"]) };
    let server = trusting(&provider, settings).await;
    let unverified = with("email", "ada@example.org".into());
    assert_eq!(status(&server, &key.sign(&unverified)).await, 403);
    let mut verified = unverified;
    verified["email_verified"] = true.into();
    assert_eq!(status(&server, &key.sign(&verified)).await, 200);
}
