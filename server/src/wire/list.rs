//! Pages of lists that the engine returns as a whole. Clients can create any number of items of any size, so each page
//! has a maximum size.

use foldwork_engine::Error;
use foldwork_engine::model::json;
use foldwork_engine::offload::in_place;
use serde::Serialize;

use super::body::JsonResponse;
use super::page::{PageBody, PageBytes, limit, named_cursor, read_named_cursor};

/// The requested part of a list.
pub struct ListPart<'r> {
    /// The name of the list. A cursor is valid only for one list.
    pub list: &'static str,
    /// The maximum number of rows. If absent, only the size in bytes is limited.
    pub rows: Option<u64>,
    pub cursor: Option<&'r str>,
    pub bytes: PageBytes,
}

/// The order in which a list is sorted by the keys of its items.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListOrder {
    Ascending,
    Descending,
}

impl ListPart<'_> {
    /// Returns the page that begins after the cursor. `items` must be sorted by their keys, and the keys must be
    /// unique. The page contains at least one item if an item follows the cursor.
    pub fn of<S, T: Serialize>(
        &self,
        items: &[S],
        order: ListOrder,
        key: impl Fn(&S) -> String,
        write: impl Fn(&S) -> T,
    ) -> Result<JsonResponse<PageBody<T>>, Error> {
        let after = read_named_cursor(self.list, self.cursor)?;
        let rows = self.rows.map_or(Ok(usize::MAX), |rows| limit(Some(rows)))?;
        let follows = |item: &&S| match (&after, order) {
            (None, _) => true,
            (Some(after), ListOrder::Ascending) => key(item) > *after,
            (Some(after), ListOrder::Descending) => key(item) < *after,
        };
        Ok(in_place(|| {
            let written = items.iter().filter(follows).map(|item| (key(item), write(item)));
            JsonResponse::new(&self.cut(rows, written))
        }))
    }

    fn cut<T: Serialize>(&self, rows: usize, items: impl Iterator<Item = (String, T)>) -> PageBody<T> {
        let (mut data, mut bytes, mut last) = (Vec::new(), 0_usize, None);
        for (key, row) in items {
            bytes = bytes.saturating_add(json::text(&row).len());
            if !data.is_empty() && (data.len() >= rows || bytes > self.bytes.0) {
                return PageBody { data, next_cursor: last.map(|last: String| named_cursor(self.list, &last)) };
            }
            data.push(row);
            last = Some(key);
        }
        PageBody { data, next_cursor: None }
    }
}

/// Returns the key of an item in a list that is sorted by a time and then by the id.
pub fn time_key(time_ms: i64, id: &str) -> String {
    format!("{time_ms:020}/{id}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pages(items: &[&str], order: ListOrder, rows: Option<u64>, bytes: usize) -> Vec<Vec<String>> {
        let (mut pages, mut cursor) = (Vec::new(), None::<String>);
        loop {
            let part = ListPart { list: "letters", rows, cursor: cursor.as_deref(), bytes: PageBytes(bytes) };
            let page = part.of(items, order, |item| (*item).to_owned(), |item| (*item).to_owned()).expect("a page");
            let page: serde_json::Value = serde_json::from_slice(&page.text).expect("JSON");
            pages.push(serde_json::from_value(page["data"].clone()).expect("texts"));
            match page["next_cursor"].as_str() {
                Some(next) => cursor = Some(next.to_owned()),
                None => return pages,
            }
        }
    }

    #[test]
    fn every_item_is_on_exactly_one_page() {
        assert_eq!(pages(&["a", "b", "c"], ListOrder::Ascending, None, 1_000), [vec!["a", "b", "c"]]);
        assert_eq!(pages(&["a", "b", "c"], ListOrder::Ascending, Some(2), 1_000), [vec!["a", "b"], vec!["c"]]);
        assert_eq!(pages(&["c", "b", "a"], ListOrder::Descending, Some(1), 1_000), [["c"], ["b"], ["a"]]);
        assert_eq!(pages(&["a", "b is long", "c"], ListOrder::Ascending, None, 3), [["a"], ["b is long"], ["c"]]);
        assert_eq!(pages(&["a", "b", "c"], ListOrder::Ascending, None, 6), [vec!["a", "b"], vec!["c"]]);
        assert_eq!(pages(&[], ListOrder::Ascending, Some(1), 1), [Vec::<String>::new()]);
    }

    #[test]
    fn sort_keys_of_list_items_compare_the_time_and_then_the_id() {
        assert!(time_key(999, "b") < time_key(1_000, "a") && time_key(1_000, "a") < time_key(1_000, "b"));
    }

    #[test]
    fn invalid_limits_and_cursors_are_rejected() {
        let part = |rows, cursor| ListPart { list: "letters", rows, cursor, bytes: PageBytes(10) };
        let of = |part: ListPart<'_>| {
            part.of(&["a"], ListOrder::Ascending, |item| (*item).to_owned(), |item| *item).is_err()
        };
        assert!(of(part(Some(0), None)) && of(part(Some(201), None)) && of(part(None, Some("x"))));
    }
}
