//! Passes the settings of authentication and plans to the engine, with a fetcher of the issuers' signing keys.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use foldwork_engine::model::address;
use foldwork_engine::model::plan::{OfferedPlan, PlanLimits, PlanStatus};
use foldwork_engine::{AccessSettings, Engine, FetchKeys, Fetched, IssuerSettings, Trust};
use futures_util::StreamExt;

use crate::config::Config;
use crate::config::{Issuer, OfferedPlan as PlanConfig};

/// The time limit for fetching an issuer's signing keys.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Applies the settings of authentication and plans to the engine. Reads the secrets from environment variables.
pub fn configure(engine: &Engine, config: &Config) -> anyhow::Result<()> {
    let default_plan = config.plans.offered.first().context("[[plans.offered]]: expected at least one plan")?;
    let settings = AccessSettings {
        issuers: config.auth.issuers.iter().map(issuer).collect::<anyhow::Result<_>>()?,
        auto_provision: config.auth.auto_provision,
        allowed_email_domains: config.auth.allowed_email_domains.iter().map(|name| address::normal(name)).collect(),
        plans: config.plans.offered.iter().map(plan).collect::<anyhow::Result<_>>()?,
        default_plan: default_plan.id.clone(),
    };
    let fetch: Arc<dyn FetchKeys> = Arc::new(Fetcher::new()?);
    engine.configure_access(settings, &fetch).map_err(|error| anyhow::anyhow!("[auth] or [plans] is invalid: {error}"))
}

fn issuer(config: &Issuer) -> anyhow::Result<IssuerSettings> {
    let Issuer { issuer, audience, jwks_url, hs256_secret_env, algorithms, trust_email } = config;
    let trust = match (jwks_url.as_str(), hs256_secret_env.as_str()) {
        ("", "") => bail!("[[auth.issuers]] {issuer}: jwks_url or hs256_secret_env is required"),
        ("", variable) => {
            let secret = std::env::var(variable);
            Trust::Secret(
                secret.with_context(|| format!("[[auth.issuers]] {issuer}: cannot read {variable}"))?.into_bytes(),
            )
        }
        (url, "") => Trust::KeySet { url: url.to_owned() },
        _ => bail!("[[auth.issuers]] {issuer}: expected either jwks_url or hs256_secret_env, got both"),
    };
    Ok(IssuerSettings {
        issuer: issuer.clone(),
        audience: audience.clone(),
        trust,
        algorithms: algorithms.clone(),
        trusts_email: *trust_email,
    })
}

fn plan(config: &PlanConfig) -> anyhow::Result<OfferedPlan> {
    let PlanConfig { id, name, status, trial_days, storage_bytes, projects, agents, activations } = config;
    let status = PlanStatus::parse(status).with_context(|| {
        format!("[[plans.offered]] {id}: expected the status trialing, active, past_due or canceled, found {status}")
    })?;
    let limit = |limit: u64| Some(limit).filter(|limit| *limit > 0);
    Ok(OfferedPlan {
        id: id.clone(),
        name: name.clone(),
        status,
        trial_ms: i64::from(*trial_days) * 24 * 60 * 60 * 1_000,
        limits: PlanLimits {
            storage_bytes: limit(*storage_bytes),
            projects: limit(*projects),
            agents: limit(*agents),
            activations: limit(*activations),
        },
    })
}

/// The HTTP client that fetches the key sets of issuers.
struct Fetcher {
    http: reqwest::Client,
}

impl Fetcher {
    fn new() -> anyhow::Result<Fetcher> {
        let http = reqwest::Client::builder()
            .user_agent(concat!("foldwork/", env!("CARGO_PKG_VERSION")))
            // Redirects are not followed, because only the configured URL is trusted.
            .redirect(reqwest::redirect::Policy::none())
            .timeout(TIMEOUT)
            .build()
            .context("the HTTP client cannot be created")?;
        Ok(Fetcher { http })
    }

    async fn get(&self, url: &str, limit: usize) -> Result<Vec<u8>, String> {
        let response = self.http.get(url).send().await.and_then(reqwest::Response::error_for_status);
        let response = response.map_err(|error| error.to_string())?;
        if !response.status().is_success() {
            return Err(format!("{url} returned {}", response.status()));
        }
        let (mut text, mut parts) = (Vec::new(), response.bytes_stream());
        while let Some(part) = parts.next().await {
            text.extend_from_slice(&part.map_err(|error| error.to_string())?);
            if text.len() > limit {
                return Err(format!("{url} has more than {limit} bytes"));
            }
        }
        Ok(text)
    }
}

impl FetchKeys for Fetcher {
    fn fetch<'a>(&'a self, url: &'a str, limit: usize) -> Fetched<'a> {
        Box::pin(self.get(url, limit))
    }
}
