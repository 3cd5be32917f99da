//! Describes scans for `explain`.

use super::positions::Positions;
use super::scan::{AsOf, Read, Scan, StateSource};
use super::surrealql::node_query;
use crate::model::value::{Object, Value};

impl Scan {
    /// Returns the description of the scan for `explain`.
    pub fn describe(&self) -> Object {
        let mut object = Object::new();
        let (streams, filters, of_events, limit) = match &self.read {
            Read::Events(scan) => {
                object.push("source", "events");
                (&scan.streams, [("filter", &scan.filter), ("event_filter", &None)], &scan.filter, scan.limit)
            }
            Read::States(scan) => {
                object.push("source", scan.source.name());
                match scan.as_of {
                    AsOf::Now => {}
                    AsOf::At(ms) => object.push("at", Value::Date(ms)),
                    AsOf::Version(version) => object.push("version", version),
                    AsOf::Position(position) => object.push("position", position),
                }
                if let (StateSource::Nodes, query) = (scan.source, node_query(scan)) {
                    object.push("where", query.text);
                    object.push("exact", query.exact);
                }
                let filters = [("filter", &scan.filter), ("event_filter", &scan.event_filter)];
                (&scan.streams, filters, &scan.event_filter, scan.limit)
            }
            Read::Edges(edges) => return edges.describe(),
        };
        if !streams.is_empty() {
            object.push("streams", streams.describe());
        }
        for (name, filter) in filters {
            if let Some(filter) = filter {
                object.push(name, filter.spec().clone());
            }
        }
        let positions = Positions::of(of_events.as_deref());
        if positions != Positions::ALL {
            object.push("positions", positions.describe());
        }
        if let Some(limit) = limit {
            object.push("limit", i64::try_from(limit).unwrap_or(i64::MAX));
        }
        if let Some(columns) = self.columns.as_ref().filter(|columns| !columns.is_empty()) {
            object.push("columns", columns.iter().cloned().map(Value::from).collect::<Vec<_>>());
        }
        if let Some(fields) = &self.fields {
            object.push("fields", fields.iter().cloned().map(Value::from).collect::<Vec<_>>());
        }
        object
    }
}
