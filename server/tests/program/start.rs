//! Tests the output of a start, `serve --check`, and settings from environment variables.

use crate::process::{Program, foldwork, key, output, text};

#[test]
fn a_start_logs_variables_without_effect_and_the_location_of_the_data() {
    let folder = tempfile::tempdir().expect("a folder");
    let here = folder.path().canonicalize().expect("a path");
    let start = |bootstrap: char| {
        let mut command = foldwork(folder.path(), &["serve"]);
        command.env("FOLDWORK_BOOTSTRAP_KEY", key(bootstrap)).env("FOLDWORK_HTTP_LISTEN", "127.0.0.1:1");
        Program::start(&mut command)
    };
    let mut program = start('1');
    let (store, files) = (here.join("data/db"), here.join("data/files"));
    let line = program.logs(&["starting", env!("CARGO_PKG_VERSION")]);
    assert!(line.contains(&store.display().to_string()) && line.contains(&files.display().to_string()), "{line}");
    program.logs(&["created a new store", &store.display().to_string(), "the working directory contains no store"]);
    program.logs(&["FOLDWORK_HTTP_LISTEN has no effect; did you mean 'FOLDWORK_HTTP__LISTEN'?"]);
    let bearer = format!("Bearer {}", key('1'));
    assert_eq!(program.status("GET", "/api/v1/keys", &[("authorization", &bearer)], ""), 200);
    program.terminate();
    program.ended();

    let mut program = start('2');
    program.logs(&["FOLDWORK_BOOTSTRAP_KEY is ignored", "foldwork keys reset"]);
    assert!(!program.logged.iter().any(|line| line.contains("created a new store") || line.contains(&key('2'))));
    program.terminate();
    program.ended();
    // The same key as in the store causes no warning.
    let mut program = start('1');
    program.terminate();
    program.ended();
    program.logs(&["stopping"]);
    assert!(!program.logged.iter().any(|line| line.contains("is ignored")), "{:#?}", program.logged);
}

#[test]
fn the_error_of_a_failed_start_states_what_to_change() {
    let folder = tempfile::tempdir().expect("a folder");
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("the address of the port").to_string();
    let refused = |arguments: &[&str], variables: &[(&str, &str)]| {
        let arguments = [&["serve", "--files", "mem://"][..], arguments].concat();
        let found = output(foldwork(folder.path(), &arguments).envs(variables.iter().copied()));
        assert_eq!(found.status.code(), Some(1), "{}", text(&found.stdout));
        text(&found.stderr)
    };
    let said = refused(&["--listen", address.as_str()], &[]);
    assert!(said.contains(&format!("cannot listen on {address}: ")) && said.contains("--listen or [http]"), "{said}");
    let free = ["--listen", "127.0.0.1:0"];
    for (name, value, expected) in [
        ("FOLDWORK_BOOTSTRAP_KEY", "sk_short", "FOLDWORK_BOOTSTRAP_KEY is not a key"),
        ("FOLDWORK_HTTP__PUBLIC_URL", "foldwork.example.org", "[http] public_url: expected a URL such as https://"),
        ("FOLDWORK_METRICS__LISTEN", address.as_str(), "[metrics] listen: cannot listen on"),
        ("FOLDWORK_STORE__URL", "postgres://localhost/db", "expected surrealkv://PATH, mem://, ws://HOST:PORT or wss"),
    ] {
        let said = refused(&free, &[(name, value)]);
        assert!(said.contains(expected), "{name}: {said}");
    }
    let half = [("FOLDWORK_STORE__URL", "ws://127.0.0.1:1"), ("FOLDWORK_STORE_USER", "foldwork")];
    let said = refused(&free, &half);
    assert!(said.contains("FOLDWORK_STORE_USER is set, but FOLDWORK_STORE_PASSWORD is not"), "{said}");
}

#[test]
fn a_start_ignores_unneeded_environment_variables() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = foldwork(folder.path(), &["serve"]);
    // A store in a folder has no users, and an empty key counts as absent.
    command
        .env("FOLDWORK_STORE_USER", "foldwork")
        .env("FOLDWORK_STORE_PASSWORD", "p")
        .env("FOLDWORK_BOOTSTRAP_KEY", "");
    let mut program = Program::start(command.env("FOLDWORK_METRICS__LISTEN", "localhost:0"));
    assert_eq!(program.status("GET", "/readyz", &[], ""), 200);
    program.terminate();
    program.ended();
}

#[test]
fn a_check_reports_wrong_settings_and_creates_no_files() {
    let folder = tempfile::tempdir().expect("a folder");
    let check = |variables: &[(&str, &str)]| {
        let mut command = foldwork(folder.path(), &["serve", "--check"]);
        let found = output(command.envs(variables.iter().copied()));
        (found.status.code().expect("a code"), format!("{}{}", text(&found.stdout), text(&found.stderr)))
    };
    let (code, said) = check(&[]);
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("does not exist; the server creates it") && said.contains("cases passed"), "{said}");
    assert_eq!(std::fs::read_dir(folder.path()).expect("a folder").count(), 0);

    let mut program = Program::start(&mut foldwork(folder.path(), &["serve"]));
    let (code, said) = check(&[]);
    assert_eq!(code, 3, "{said}");
    assert!(said.contains("another process has the store open"), "{said}");
    program.terminate();
    program.ended();

    let (code, said) = check(&[]);
    assert_eq!(code, 0, "{said}");
    assert!(said.contains("workspaces: 1"), "{said}");
    for (name, value, expected) in [
        ("FOLDWORK_HTTP__LISTN", "x", "did you mean 'FOLDWORK_HTTP__LISTEN'?"),
        ("FOLDWORK_PLUGINS__ENABLED", "linkr", "linkr"),
        ("FOLDWORK_AUTH__ISSUERS__0__ISSUER", "https://id.example.com", "jwks_url or hs256_secret_env is required"),
        ("FOLDWORK_HTTP__TRUSTED_PROXIES", "proxy.local", "'proxy.local' is neither an address nor a network"),
        ("FOLDWORK_HTTP__LISTEN", "nowhere", "http.listen"),
        ("FOLDWORK_HTTP__PUBLIC_URL", "foldwork.example.org", "http.public_url"),
        ("FOLDWORK_BOOTSTRAP_KEY", "sk_short", "FOLDWORK_BOOTSTRAP_KEY is not a key"),
        ("FOLDWORK_FILES__URL", "file:///proc/files", "files.url"),
    ] {
        let (code, said) = check(&[(name, value)]);
        assert_eq!(code, 1, "{name}: {said}");
        assert!(said.contains(expected), "{name}: {said}");
    }
}

#[test]
fn the_log_states_why_tokens_are_denied_but_contains_no_tokens() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = foldwork(folder.path(), &["serve", "--database", "mem://", "--files", "mem://"]);
    command
        .env("FOLDWORK_AUTH__ISSUERS__0__ISSUER", "https://id.example.com")
        .env("FOLDWORK_AUTH__ISSUERS__0__AUDIENCE", "foldwork")
        .env("FOLDWORK_AUTH__ISSUERS__0__HS256_SECRET_ENV", "ID_SECRET")
        .env("FOLDWORK_AUTH__ISSUERS__0__ALGORITHMS", "HS256")
        .env("ID_SECRET", "a secret that only this test has");
    let mut program = Program::start(&mut command);
    let token = |header: &str, claims: &str| {
        use base64::Engine as _;
        let part = |text: &str| base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(text);
        format!("{}.{}.{}", part(header), part(claims), part("a signature of 32 bytes, not valid"))
    };
    let known = r#"{"alg": "HS256", "kid": "key-7"}"#;
    let tokens = [
        (
            token(known, r#"{"iss": "https://id.example.com"}"#),
            ["https://id.example.com", "the token's signature is not valid"],
        ),
        (token(known, r#"{"iss": "https://other.example.com"}"#), ["other.example.com", "names no configured issuer"]),
        (
            token(r#"{"alg": "RS256"}"#, r#"{"iss": "https://id.example.com"}"#),
            ["id.example.com", "algorithm is not allowed for its issuer"],
        ),
        ("made-up".to_owned(), ["denied a token", "neither a key nor a JWT"]),
    ];
    for (token, expected) in &tokens {
        let bearer = format!("Bearer {token}");
        assert_eq!(program.status("GET", "/api/v1/keys", &[("authorization", &bearer)], ""), 401);
        program.logs(expected);
    }
    assert!(program.logs(&["https://id.example.com", "the token's signature is not valid"]).contains("key-7"));
    let bearer = format!("Bearer {}", tokens[3].0);
    for _ in 0..100 {
        program.status("GET", "/api/v1/keys", &[("authorization", &bearer)], "");
    }
    program.terminate();
    program.ended();
    program.logs(&["stopping"]);
    let about = program.logged.iter().filter(|line| line.contains("denied a token")).count();
    assert!(about <= 20, "{about} lines about denied tokens");
    let secrets: Vec<&str> = tokens[..3].iter().map(|(token, _)| token.as_str()).collect();
    assert!(!program.logged.iter().any(|line| secrets.iter().any(|token| line.contains(token))));
}

#[test]
fn clients_behind_a_trusted_proxy_have_separate_rate_limits() {
    let folder = tempfile::tempdir().expect("a folder");
    let start = |proxies: &str| {
        let mut command = foldwork(folder.path(), &["serve", "--database", "mem://", "--files", "mem://"]);
        command.env("FOLDWORK_HTTP__TRUSTED_PROXIES", proxies).env("FOLDWORK_HTTP__ADDRESS_LIMIT_PER_MINUTE", "2");
        Program::start(&mut command)
    };
    let program = start("127.0.0.0/8, ::1");
    let ask =
        |program: &Program, header: &str| program.status("GET", "/openapi.json", &[("x-forwarded-for", header)], "");
    for _ in 0..2 {
        assert_eq!(ask(&program, "203.0.113.7"), 200);
    }
    assert_eq!(ask(&program, "203.0.113.7"), 429);
    assert_eq!(ask(&program, "198.51.100.9, 203.0.113.7"), 429);
    assert_eq!(ask(&program, "203.0.113.8"), 200);
    // Health checks have no limit.
    for _ in 0..4 {
        assert_eq!(program.status("GET", "/healthz", &[("x-forwarded-for", "203.0.113.7")], ""), 200);
    }
    // If the proxy is not trusted, the header has no effect.
    let program = start("10.0.0.0/8");
    let statuses: Vec<u16> = (1..=3).map(|last| ask(&program, &format!("203.0.113.{last}"))).collect();
    assert_eq!(statuses, [200, 200, 429]);
}

#[test]
fn forwarding_headers_take_effect_only_from_trusted_proxies() {
    let folder = tempfile::tempdir().expect("a folder");
    let start = |proxies: &str| {
        let mut command = foldwork(folder.path(), &["serve", "--database", "mem://", "--files", "mem://"]);
        command.env("FOLDWORK_HTTP__TRUSTED_PROXIES", proxies);
        Program::start(&mut command)
    };
    let headers = [
        ("x-forwarded-for", "203.0.113.7"),
        ("x-forwarded-proto", "https"),
        ("x-forwarded-host", "foldwork.example.org"),
    ];
    let mut program = start("127.0.0.0/8");
    let document = program.ask("GET", "/openapi.json", &headers, "");
    assert!(document.contains("https://foldwork.example.org/api/v1"), "{}", &document[..1_000]);
    assert!(program.logs(&["request", "/openapi.json"]).contains("client=203.0.113.7"));
    let mut program = start("10.0.0.0/8");
    let document = program.ask("GET", "/openapi.json", &headers, "");
    assert!(!document.contains("foldwork.example.org"), "{}", &document[..1_000]);
    assert!(program.logs(&["request", "/openapi.json"]).contains("client=127.0.0.1"));
}
