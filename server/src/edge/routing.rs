//! The routes of the application. Metrics and logs name a request by its route and operation.

use foldwork_engine::model::excerpt::excerpt_of;
use foldwork_engine::pipeline::hint;

use crate::http::routes::{Methods, Operations};

/// All routes with their methods, and the ids of their operations.
pub struct RouteTable {
    pub methods: Methods,
    pub operations: Operations,
}

impl RouteTable {
    /// Returns the most specific route that matches a path. The router chooses the same route.
    pub fn find(&self, path: &str) -> Option<&(Vec<String>, Vec<String>)> {
        let parts: Vec<&str> = path.split('/').collect();
        // If two routes match the same path, the route with fewer parameters comes first.
        self.methods.iter().find(|(segments, _)| {
            segments.len() == parts.len()
                && segments.iter().zip(&parts).all(|(segment, part)| segment.starts_with('{') || segment == part)
        })
    }

    /// Returns the methods that a path allows. A path with GET also allows HEAD, and a path that is not in the table
    /// allows GET and HEAD.
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

    /// Returns the path that allows the method and differs from `path` only in one misspelled name, or `None` if there
    /// is no such path.
    pub fn corrected_path(&self, method: &str, path: &str) -> Option<String> {
        // A path that matches a route without parameters is not misspelled, even if the route lacks the method.
        if self.find(path).is_some_and(|(segments, _)| !segments.iter().any(|segment| segment.starts_with('{'))) {
            return None;
        }
        let method = if method == "HEAD" { "GET" } else { method };
        let mut parts: Vec<&str> = path.split('/').collect();
        let mut allowing = self.methods.iter().filter(|(segments, methods)| {
            segments.len() == parts.len() && methods.iter().any(|allowed| allowed == method)
        });
        let (place, name) = allowing.find_map(|(segments, _)| {
            let pairs = segments.iter().zip(&parts).enumerate();
            let mut wrong = pairs.filter(|(_, (segment, part))| !segment.starts_with('{') && segment != *part);
            let (Some((place, (segment, part))), None) = (wrong.next(), wrong.next()) else { return None };
            hint::nearest(part, [segment.as_str()]).map(|_| (place, segment.as_str()))
        })?;
        *parts.get_mut(place)? = name;
        Some(excerpt_of(parts.join("/")))
    }

    /// Returns the id of an operation in the OpenAPI document. `HEAD` belongs to the operation of `GET`.
    pub fn operation(&self, method: &str, route: &str) -> Option<&str> {
        let method = if method == "HEAD" { "GET" } else { method };
        self.operations.get(route)?.iter().find(|(known, _)| known == method).map(|(_, id)| id.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_suggested_path_differs_in_one_segment_and_accepts_the_method() {
        let route = |path: &str, methods: &[&str]| {
            let methods = methods.iter().map(|method| (*method).to_owned()).collect();
            (path.split('/').map(str::to_owned).collect(), methods)
        };
        let methods = vec![
            route("/a/query", &["POST"]),
            route("/a", &["GET"]),
            route("/a/{id}/events", &["GET", "POST"]),
            route("/a/{id}", &["GET", "DELETE"]),
        ];
        let routing = RouteTable { methods, operations: Operations::default() };
        assert_eq!(routing.corrected_path("POST", "/a/qery").as_deref(), Some("/a/query"));
        assert_eq!(routing.corrected_path("GET", "/a/qery"), None);
        assert_eq!(routing.corrected_path("HEAD", "/a/7/evnts").as_deref(), Some("/a/7/events"));
        assert_eq!(routing.corrected_path("POST", "/a/7"), None);
        assert_eq!(routing.corrected_path("POST", "/b/qery"), None);
        assert_eq!(routing.corrected_path("DELETE", "/a/query"), None);
    }
}
