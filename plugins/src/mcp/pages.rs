//! Splits the lists that the protocol returns into pages.

use rmcp::ErrorData;
use rmcp::model::PaginatedRequestParams;

/// The number of items on a page.
const PAGE: usize = 100;

/// Returns the items of the requested page, and the cursor of the next page if there is one. Fails if the requested
/// cursor does not belong to the list.
pub(super) fn page<T>(
    items: Vec<T>,
    request: Option<PaginatedRequestParams>,
) -> Result<(Vec<T>, Option<String>), ErrorData> {
    let refused = || ErrorData::invalid_params("the cursor does not belong to this list", None);
    let start = match request.and_then(|request| request.cursor) {
        None => 0,
        Some(cursor) => cursor.parse().ok().filter(|start| *start > 0 && *start < items.len()).ok_or_else(refused)?,
    };
    let all = items.len();
    let next = Some(start + PAGE).filter(|next| *next < all).map(|next| next.to_string());
    Ok((items.into_iter().skip(start).take(PAGE).collect(), next))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_item_is_on_exactly_one_page() {
        let (mut seen, mut cursor) = (Vec::new(), None);
        loop {
            let request = PaginatedRequestParams::default().with_cursor(cursor);
            let (items, next) = page((0..250).collect(), Some(request)).expect("a page");
            seen.extend(items);
            cursor = next;
            if cursor.is_none() {
                break;
            }
        }
        assert_eq!(seen, (0..250).collect::<Vec<_>>());
    }

    #[test]
    fn an_invalid_cursor_is_rejected() {
        for cursor in ["", "0", "250", "-1", "x"] {
            let request = PaginatedRequestParams::default().with_cursor(Some(cursor.into()));
            assert!(page((0..250).collect::<Vec<_>>(), Some(request)).is_err(), "{cursor}");
        }
    }
}
