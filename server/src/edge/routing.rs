//! The routes of the application. Metrics and logs name a request by its route and operation.

use crate::http::routes::{Methods, Operations};

/// All routes with their methods, and the ids of their operations.
pub struct Routing {
    pub methods: Methods,
    pub operations: Operations,
}

impl Routing {
    /// Returns the most specific route that matches a path. The router chooses the same route.
    pub fn find(&self, path: &str) -> Option<&(Vec<String>, Vec<String>)> {
        let parts: Vec<&str> = path.split('/').collect();
        // Routes without parameters come first.
        self.methods.iter().find(|(segments, _)| {
            segments.len() == parts.len()
                && segments.iter().zip(&parts).all(|(segment, part)| segment.starts_with('{') || segment == part)
        })
    }

    /// Returns the methods that a path allows.
    pub fn allowed(&self, path: &str) -> Vec<&str> {
        let mut known: Vec<&str> =
            self.find(path).into_iter().flat_map(|(_, methods)| methods).map(String::as_str).collect();
        if known.is_empty() || known.contains(&"GET") {
            known.extend(["GET", "HEAD"]);
        }
        known.sort_unstable();
        known.dedup();
        known
    }

    /// Returns the id of an operation in the OpenAPI document. `HEAD` belongs to the operation of `GET`.
    pub fn operation(&self, method: &str, route: &str) -> Option<&str> {
        let method = if method == "HEAD" { "GET" } else { method };
        self.operations.get(route)?.iter().find(|(known, _)| known == method).map(|(_, id)| id.as_str())
    }
}
