//! Rejects requests with query parameters, a body or version conditions that the operation does not support. Applies to
//! every operation of the OpenAPI document, except for the endpoints of plugins. Otherwise the server would ignore a
//! misspelled filter and return unfiltered data, or would make a change although the condition of the change is not
//! met.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use foldwork_engine::Error;
use foldwork_engine::model::excerpt::excerpt_of;
use foldwork_engine::model::json;
use foldwork_engine::model::value::Value;
use poem::http::Method;
use poem::{Endpoint, Request};
use serde_json::Value as Json;

use super::document;
use crate::http::bearer::bearer;
use crate::http::bodies;
use crate::http::error::ApiError;
use crate::http::request_fault::RequestFault;
use crate::wire::names;

/// The query parameters of all operations under one base path. For each operation, also whether the operation reads a
/// body, and whether the operation reads `If-Match`.
pub struct Parameters(Vec<OperationRoute>);

/// A path and the operation of each method.
struct OperationRoute {
    segments: Vec<String>,
    operations: BTreeMap<String, RouteOperation>,
}

struct RouteOperation {
    /// The names of the query parameters.
    names: Vec<String>,
    /// Whether the operation needs a bearer token.
    needs_token: bool,
    /// Whether the operation reads a body.
    has_body: bool,
    /// Whether the operation reads `If-Match`.
    has_condition: bool,
}

/// The headers that make a change depend on a version.
const CONDITIONS: [&str; 3] = ["if-match", "if-none-match", "if-unmodified-since"];

impl Parameters {
    /// Returns the parameters of the document's operations under a base path.
    pub fn of(document: &Json, base: &str) -> Arc<Parameters> {
        let paths = document["paths"].as_object().into_iter().flatten();
        let here = paths.filter(|(_, item)| document::base(item) == base);
        let mut routes: Vec<OperationRoute> = here.map(|(path, item)| OperationRoute::of(path, item)).collect();
        // Sorts static paths before parameterized paths, because both may match the same request.
        routes.sort_by_key(|route| route.segments.iter().filter(|segment| segment.starts_with('{')).count());
        Arc::new(Parameters(routes))
    }

    /// Returns the operation with this method and path. A HEAD request has the operation of GET.
    fn operation(&self, method: &Method, path: &str) -> Option<&RouteOperation> {
        let parts: Vec<&str> = path.split('/').collect();
        let route = self.0.iter().find(|route| route.matches(&parts))?;
        let method = if *method == Method::HEAD { "get".to_owned() } else { method.as_str().to_ascii_lowercase() };
        route.operations.get(&method)
    }

    async fn check(&self, request: &mut Request) -> poem::Result<()> {
        let Some(operation) = self.operation(request.method(), request.uri().path()) else { return Ok(()) };
        // The handler reports a missing token.
        if operation.needs_token && bearer(request).is_none() {
            return Ok(());
        }
        match operation.check(request).await {
            // The guard reports the fault after the errors about the caller's access.
            Err(fault) if operation.needs_token => {
                RequestFault::attach(request, fault);
                Ok(())
            }
            checked => checked,
        }
    }
}

impl RouteOperation {
    async fn check(&self, request: &mut Request) -> poem::Result<()> {
        self.check_query(request).map_err(ApiError::from)?;
        self.check_conditions(request).map_err(ApiError::from)?;
        if self.has_body { Ok(()) } else { check_no_body(request).await }
    }

    fn check_query(&self, request: &Request) -> Result<(), Error> {
        if request.uri().query().is_none_or(str::is_empty) {
            return Ok(());
        }
        let allowed: Vec<&str> = self.names.iter().map(String::as_str).collect();
        // The handler reports a query that cannot be parsed.
        let sent: Vec<(String, String)> = request.params().unwrap_or_default();
        match sent.iter().find(|(name, _)| !allowed.contains(&name.as_str())) {
            None => once_each(&sent),
            Some((name, _)) => {
                let message = names::unknown("query parameter", name, &allowed);
                Err(Error::invalid(format!("{}: {message}", excerpt_of(name))))
            }
        }
    }

    /// Fails if a request that can change data has a version condition that the operation does not check.
    fn check_conditions(&self, request: &Request) -> Result<(), Error> {
        if request.method().is_safe() {
            return Ok(());
        }
        let is_unread =
            |name: &&&str| request.headers().contains_key(**name) && !(self.has_condition && **name == "if-match");
        match CONDITIONS.iter().find(is_unread) {
            None => Ok(()),
            Some(name) => Err(Error::invalid(format!("{name}: this operation does not support this header"))),
        }
    }
}

/// Fails if a request has a body although the operation reads no body. Accepts white space, `null` and an empty object,
/// because many clients send an empty object with every POST.
async fn check_no_body(request: &mut Request) -> poem::Result<()> {
    let body = request.take_body();
    if body.is_empty() {
        return Ok(());
    }
    let text = bodies::read(request, body).await?;
    let checked = match json::parse(&text) {
        Ok(Value::Object(fields)) => names::only(&fields, &[]),
        Ok(Value::Null) => Ok(()),
        _ if text.trim_ascii().is_empty() => Ok(()),
        _ => Err(Error::invalid("this operation takes no body")),
    };
    Ok(checked.map_err(ApiError::from)?)
}

/// Fails if a parameter has two values, because an operation would read only the first value.
fn once_each(sent: &[(String, String)]) -> Result<(), Error> {
    let mut names = BTreeSet::new();
    match sent.iter().find(|(name, _)| !names.insert(name)) {
        None => Ok(()),
        Some((name, _)) => Err(Error::invalid(format!("{name}: the parameter is given twice"))),
    }
}

impl OperationRoute {
    fn of(path: &str, item: &Json) -> OperationRoute {
        let operations = item.as_object().into_iter().flatten();
        let operations = operations.map(|(method, operation)| {
            let parameters = operation["parameters"].as_array().into_iter().flatten();
            let queries = parameters.filter(|parameter| parameter["in"] == "query");
            let names = queries.filter_map(|parameter| parameter["name"].as_str().map(str::to_owned));
            let needs_token = operation["security"].as_array().is_some_and(|schemes| !schemes.is_empty());
            let (has_body, has_condition) = (operation.get("requestBody").is_some(), has_condition(operation));
            (method.clone(), RouteOperation { names: names.collect(), needs_token, has_body, has_condition })
        });
        OperationRoute { segments: path.split('/').map(str::to_owned).collect(), operations: operations.collect() }
    }

    fn matches(&self, parts: &[&str]) -> bool {
        let matches = |(segment, part): (&String, &&str)| segment.starts_with('{') || segment == part;
        self.segments.len() == parts.len() && self.segments.iter().zip(parts).all(matches)
    }
}

fn has_condition(operation: &Json) -> bool {
    let mut parameters = operation["parameters"].as_array().into_iter().flatten();
    let is_if_match = |name: &str| name.eq_ignore_ascii_case("If-Match");
    parameters.any(|parameter| parameter["in"] == "header" && parameter["name"].as_str().is_some_and(is_if_match))
}

/// Checks the request, and calls the operation. A request is rejected if the request has a query parameter, a condition
/// or a body that the operation does not support. If the operation needs a token, the operation's guard rejects such a
/// request after checking the caller's access.
pub async fn checked<E: Endpoint>(
    parameters: Arc<Parameters>,
    endpoint: Arc<E>,
    mut request: Request,
) -> poem::Result<E::Output> {
    parameters.check(&mut request).await?;
    endpoint.call(request).await
}
