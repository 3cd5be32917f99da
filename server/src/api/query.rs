//! Rejects query parameters that an operation does not have, for every operation of the OpenAPI document. Otherwise a
//! misspelled filter would be ignored, and the response would have unfiltered data.

use std::collections::BTreeMap;
use std::sync::Arc;

use foldwork_engine::Error;
use foldwork_engine::model::excerpt::excerpt_of;
use poem::http::Method;
use poem::{Endpoint, Request};
use serde_json::Value;

use super::document;
use crate::http::bearer::bearer;
use crate::http::error::ApiError;
use crate::wire::names;

/// The names of the query parameters of all operations under one base path.
pub struct Parameters(Vec<Route>);

/// A path and the operation of each method.
struct Route {
    segments: Vec<String>,
    operations: BTreeMap<String, Operation>,
}

struct Operation {
    /// The names of the query parameters.
    names: Vec<String>,
    /// Whether the operation needs a bearer token.
    needs_token: bool,
}

impl Parameters {
    /// Returns the parameters of the document's operations under a base path.
    pub fn of(document: &Value, base: &str) -> Arc<Parameters> {
        let paths = document["paths"].as_object().into_iter().flatten();
        let here = paths.filter(|(_, item)| document::base(item) == base);
        let mut routes: Vec<Route> = here.map(|(path, item)| Route::of(path, item)).collect();
        // Sorts static paths before parameterized paths, because both may match the same request.
        routes.sort_by_key(|route| route.segments.iter().filter(|segment| segment.starts_with('{')).count());
        Arc::new(Parameters(routes))
    }

    /// Returns the operation with this method and path.
    fn operation(&self, method: &Method, path: &str) -> Option<&Operation> {
        let parts: Vec<&str> = path.split('/').collect();
        let route = self.0.iter().find(|route| route.matches(&parts))?;
        let method = if *method == Method::HEAD { "get".to_owned() } else { method.as_str().to_ascii_lowercase() };
        route.operations.get(&method)
    }

    fn check(&self, request: &Request) -> Result<(), Error> {
        if request.uri().query().is_none_or(str::is_empty) {
            return Ok(());
        }
        let Some(operation) = self.operation(request.method(), request.uri().path()) else { return Ok(()) };
        // The handler reports a missing token.
        if operation.needs_token && bearer(request).is_none() {
            return Ok(());
        }
        let allowed: Vec<&str> = operation.names.iter().map(String::as_str).collect();
        // The handler reports a query that cannot be parsed.
        let sent: Vec<(String, String)> = request.params().unwrap_or_default();
        match sent.iter().find(|(name, _)| !allowed.contains(&name.as_str())) {
            None => Ok(()),
            Some((name, _)) => {
                let message = names::unknown("query parameter", name, &allowed);
                Err(Error::invalid(format!("{}: {message}", excerpt_of(name))))
            }
        }
    }
}

impl Route {
    fn of(path: &str, item: &Value) -> Route {
        let operations = item.as_object().into_iter().flatten();
        let operations = operations.map(|(method, operation)| {
            let parameters = operation["parameters"].as_array().into_iter().flatten();
            let queries = parameters.filter(|parameter| parameter["in"] == "query");
            let names = queries.filter_map(|parameter| parameter["name"].as_str().map(str::to_owned));
            let needs_token = operation["security"].as_array().is_some_and(|schemes| !schemes.is_empty());
            (method.clone(), Operation { names: names.collect(), needs_token })
        });
        Route { segments: path.split('/').map(str::to_owned).collect(), operations: operations.collect() }
    }

    fn matches(&self, parts: &[&str]) -> bool {
        let matches = |(segment, part): (&String, &&str)| segment.starts_with('{') || segment == part;
        self.segments.len() == parts.len() && self.segments.iter().zip(parts).all(matches)
    }
}

/// Calls the operation if all query parameters are known.
pub async fn checked<E: Endpoint>(
    parameters: Arc<Parameters>,
    endpoint: Arc<E>,
    request: Request,
) -> poem::Result<E::Output> {
    parameters.check(&request).map_err(ApiError::from)?;
    endpoint.call(request).await
}
