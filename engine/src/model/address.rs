//! Email addresses, normalized for comparison.

/// Returns the normalized form of an address: without surrounding white space, and with ASCII letters in lower case.
/// Two addresses are the same if their normalized forms are equal.
///
/// Characters outside ASCII stay unchanged. A mailbox provider treats `Mike@` and `mike@` as one mailbox. But two
/// addresses that differ in a character outside ASCII may belong to different people. Unicode case folding and NFKC
/// would merge such addresses: case folding turns `mi\u{212a}e@` (with a Kelvin sign) into `mike@`, and NFKC turns the
/// Kelvin sign into an ASCII `K`. An invitation therefore matches only if its address has the same normalized form as
/// the address that the issuer reports. If the forms differ, a second invitation is needed, but nobody else gets access
/// by mistake.
pub fn normal(address: &str) -> String {
    address.trim().to_ascii_lowercase()
}

/// Returns the domain of a normalized address: the part after the last `@`.
pub fn domain(address: &str) -> Option<&str> {
    address.rsplit_once('@').map(|(_, domain)| domain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn email_addresses_with_lookalike_letters_remain_distinct() {
        assert_eq!(normal(" Mike@Example.COM "), "mike@example.com");
        for lookalike in ["mi\u{212a}e@example.com", "ｍike@example.com", "mıke@example.com", "mike\u{307}@example.com"]
        {
            assert_ne!(normal(lookalike), "mike@example.com", "{lookalike}");
        }
    }

    #[test]
    fn the_domain_follows_the_last_at_sign() {
        assert_eq!(domain("a@b@example.com"), Some("example.com"));
        assert_eq!(domain("example.com"), None);
    }
}
