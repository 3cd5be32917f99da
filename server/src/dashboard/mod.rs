//! The dashboard: a page and files for a browser. The dashboard is a client of the API like any other client.

mod assets;

use std::sync::Arc;

use foldwork_engine::error::ErrorCode;
use parking_lot::RwLock;
use poem::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use poem::{Body, Endpoint, Request, Response, Route, get};

use crate::config::{Config, SignIn};
use crate::http::error::ApiError;
use crate::http::etag::is_known;
use crate::http::routes::Methods;
use assets::{Asset, Assets};

/// The first segments of the addresses that show a page. The address `/` also shows a page.
const PAGES: [&str; 15] = [
    "inbox",
    "events",
    "a",
    "types",
    "articles",
    "projects",
    "pipelines",
    "graph",
    "agents",
    "files",
    "plugins",
    "parked",
    "settings",
    "sign-in",
    "search",
];
/// The address below which the files are served.
const ASSETS: &str = "/assets";
const FOREVER: HeaderValue = HeaderValue::from_static("public, max-age=31536000, immutable");
const REVALIDATED: HeaderValue = HeaderValue::from_static("no-cache");
/// The content security policy in two parts. The origin of the identity provider is inserted between the parts, so that
/// the page may connect to this origin. Apart from this origin, the policy allows only requests to the server, and
/// images in `data:` and `blob:` URLs. The policy forbids scripts that are created from strings.
const POLICY: [&str; 2] = [
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'",
    "; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
];
/// The headers of every page and file in addition to the content security policy.
const PROTECTION: [(HeaderName, HeaderValue); 5] = [
    (header::X_FRAME_OPTIONS, HeaderValue::from_static("DENY")),
    (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    (header::REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
    (HeaderName::from_static("cross-origin-opener-policy"), HeaderValue::from_static("same-origin")),
    (HeaderName::from_static("cross-origin-resource-policy"), HeaderValue::from_static("same-origin")),
];

/// Adds the routes of the dashboard, unless the settings disable the dashboard.
pub fn mount(mut routes: Route, methods: &mut Methods, config: &Config) -> Route {
    if !config.dashboard.enabled {
        return routes;
    }
    // Ignores errors, because the start of the server checks these settings.
    let (sign_in, appearance) = (config.dashboard.sign_in(&config.auth), config.dashboard.appearance());
    let dashboard = Dashboard::new(sign_in.ok().flatten().as_ref(), appearance.unwrap_or_default());
    let dashboard = Arc::new(dashboard);
    let page = || get(PageEndpoint(dashboard.clone())).head(PageEndpoint(dashboard.clone()));
    let mut known =
        |path: String| methods.insert(0, (path.split('/').map(str::to_owned).collect(), vec!["GET".into()]));
    known("/".into());
    routes = routes.at("/", page());
    for name in PAGES {
        known(format!("/{name}"));
        routes = routes.at(format!("/{name}"), page()).at(format!("/{name}/*rest"), page());
    }
    let files = get(FileEndpoint(dashboard.clone())).head(FileEndpoint(dashboard.clone()));
    routes.at(format!("{ASSETS}/:digest/*path"), files)
}

/// The state that all endpoints of the dashboard share.
struct Dashboard {
    assets: RwLock<Arc<Assets>>,
    /// The elements of the page's head that contain the settings of the application.
    settings: String,
    policy: HeaderValue,
}

impl Dashboard {
    fn new(sign_in: Option<&SignIn>, appearance: (&str, &str)) -> Dashboard {
        let settings = settings(sign_in, appearance);
        let origin = sign_in.map(|sign_in| format!(" {}", sign_in.origin)).unwrap_or_default();
        let policy = HeaderValue::try_from(POLICY.join(&origin));
        Dashboard {
            assets: RwLock::new(Arc::new(Assets::load(ASSETS, &settings))),
            settings,
            // This conversion does not fail, because an origin is printable ASCII.
            policy: policy.unwrap_or_else(|_| HeaderValue::from_static("default-src 'none'")),
        }
    }

    /// Returns the current files. A debug build reads the files again for each page, so that a reload of the page shows
    /// changes.
    fn reloaded(&self) -> Arc<Assets> {
        if cfg!(debug_assertions) {
            *self.assets.write() = Arc::new(Assets::load(ASSETS, &self.settings));
        }
        self.assets.read().clone()
    }

    /// Returns a file as the response to a request, or 304 if the request contains the current tag of the file.
    fn respond(&self, request: &Request, asset: &Asset, tag: &str, caching: HeaderValue) -> Response {
        let mut response = Response::default();
        let headers = response.headers_mut();
        headers.extend(PROTECTION.into_iter().collect::<HeaderMap>());
        headers.insert(header::CONTENT_SECURITY_POLICY, self.policy.clone());
        headers.insert(header::CACHE_CONTROL, caching);
        headers.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
        let compressed = asset.compressed().filter(|_| accepts_gzip(request));
        let tag = if compressed.is_some() { format!("\"{tag}-gzip\"") } else { format!("\"{tag}\"") };
        if let Ok(value) = HeaderValue::from_str(&tag) {
            headers.insert(header::ETAG, value);
        }
        if is_known(request.header(header::IF_NONE_MATCH.as_str()), &tag) {
            response.set_status(StatusCode::NOT_MODIFIED);
            return response;
        }
        if let Ok(value) = HeaderValue::from_str(&asset.content_type) {
            headers.insert(header::CONTENT_TYPE, value);
        }
        if compressed.is_some() {
            headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static("gzip"));
        }
        response.set_body(Body::from_bytes(compressed.unwrap_or_else(|| asset.bytes.clone())));
        response
    }
}

/// The endpoint of every page. A script in the page renders the view for the requested address.
struct PageEndpoint(Arc<Dashboard>);

impl Endpoint for PageEndpoint {
    type Output = Response;

    async fn call(&self, request: Request) -> poem::Result<Response> {
        let assets = self.0.reloaded();
        Ok(self.0.respond(&request, &assets.page, &assets.page_tag, REVALIDATED))
    }
}

/// The endpoint of the files. The address of a file contains the digest of all files.
struct FileEndpoint(Arc<Dashboard>);

impl Endpoint for FileEndpoint {
    type Output = Response;

    async fn call(&self, request: Request) -> poem::Result<Response> {
        let assets = self.0.assets.read().clone();
        let path = request.raw_path_param("path").unwrap_or_default();
        let file = assets.file(path).filter(|_| request.raw_path_param("digest") == Some(&assets.digest));
        let Some(file) = file else {
            return Err(ApiError::new(
                StatusCode::NOT_FOUND,
                ErrorCode::NotFound,
                "this file does not exist in the current version of the dashboard",
            )
            .into());
        };
        Ok(self.0.respond(&request, file, &assets.digest, FOREVER))
    }
}

/// Returns the elements of the page's head that contain the settings of the application, without empty settings.
fn settings(sign_in: Option<&SignIn>, (name, color): (&str, &str)) -> String {
    let (issuer, client) = sign_in.map_or(("", ""), |sign_in| (sign_in.issuer.as_str(), sign_in.client_id.as_str()));
    let element = |(name, content): (&str, &str)| {
        let content = content.replace('&', "&amp;").replace('"', "&quot;").replace('<', "&lt;");
        format!("<meta name=\"{name}\" content=\"{content}\">\n    ")
    };
    let all = [
        ("oidc-issuer", issuer),
        ("oidc-client-id", client),
        ("installation-name", name),
        ("installation-color", color),
    ];
    all.into_iter().filter(|(_, content)| !content.is_empty()).map(element).collect()
}

fn accepts_gzip(request: &Request) -> bool {
    let accepted = request.header(header::ACCEPT_ENCODING.as_str()).unwrap_or_default();
    accepted.split(',').map(|coding| coding.trim().to_ascii_lowercase()).any(|coding| {
        let (name, weight) = coding.split_once(';').unwrap_or((&coding, ""));
        matches!(name.trim(), "gzip" | "*") && !matches!(weight.trim(), "q=0" | "q=0.0" | "q=0.00" | "q=0.000")
    })
}
