//! The address of a request's client: the peer of the connection, or the address that trusted proxies report.
//!
//! Every proxy adds the address of its own peer at the end of `X-Forwarded-For` or `Forwarded` (RFC 7239). The last
//! address that is not a trusted proxy's is the client's. The client may have invented all addresses before it.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use poem::Request;
use poem::http::HeaderMap;

use crate::config::Network;

const FORWARDED: &str = "forwarded";
const X_FORWARDED_FOR: &str = "x-forwarded-for";
/// The maximum number of addresses that are read from a header, from its end.
const MAX_HOPS: usize = 32;

/// The client's address, passed to handlers and layers as request data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientAddress(pub IpAddr);

/// The networks of the proxies whose headers the server trusts.
#[derive(Debug, Clone)]
pub struct TrustedProxies(Vec<Network>);

impl TrustedProxies {
    pub fn new(networks: &[Network]) -> TrustedProxies {
        TrustedProxies(networks.to_vec())
    }

    /// Returns whether an address belongs to a trusted proxy.
    pub fn contains(&self, address: IpAddr) -> bool {
        self.0.iter().any(|network| network.contains(address))
    }

    /// Returns the address of the client that sent a request.
    pub fn client_of(&self, request: &Request) -> ClientAddress {
        let peer = request.remote_addr().as_socket_addr().map(SocketAddr::ip);
        let peer = peer.map_or(IpAddr::V6(Ipv6Addr::UNSPECIFIED), |peer| peer.to_canonical());
        ClientAddress(self.client_behind(peer, request.headers()))
    }

    fn client_behind(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        if !self.contains(peer) {
            return peer;
        }
        let forwarded = self.last_untrusted(peer, fields(headers, FORWARDED).map(forwarded_for));
        let forwarded_for = self.last_untrusted(peer, fields(headers, X_FORWARDED_FOR).map(address_of));
        match (headers.contains_key(FORWARDED), headers.contains_key(X_FORWARDED_FOR)) {
            // A proxy that writes one header passes the other header on as the client sent it. The server does not know
            // which header the proxy writes, so it trusts neither header if they differ.
            (true, true) if forwarded != forwarded_for => peer,
            (true, _) => forwarded,
            (false, _) => forwarded_for,
        }
    }

    /// Returns the first address of `reported` that is not a trusted proxy's. `reported` begins with the last address
    /// of the header, which the peer reported. If an address cannot be parsed, returns the proxy that reported it. If
    /// all addresses are trusted proxies', returns the last address that was read.
    fn last_untrusted(&self, peer: IpAddr, reported: impl Iterator<Item = Option<IpAddr>>) -> IpAddr {
        let mut nearest = peer;
        for address in reported.take(MAX_HOPS) {
            let Some(address) = address else { break };
            nearest = address;
            if !self.contains(nearest) {
                break;
            }
        }
        nearest
    }
}

/// Returns the elements of a header's list, the last one first. The list may be spread over several lines.
fn fields<'a>(headers: &'a HeaderMap, name: &str) -> impl Iterator<Item = &'a str> {
    let lines: Vec<&str> = headers.get_all(name).iter().map(|line| line.to_str().unwrap_or_default()).collect();
    lines.into_iter().rev().flat_map(|line| line.rsplit(',')).map(str::trim).filter(|element| !element.is_empty())
}

/// Returns the address in the parameter `for` of an element of `Forwarded`.
fn forwarded_for(element: &str) -> Option<IpAddr> {
    let mut found = None;
    for pair in element.split(';') {
        let (name, value) = pair.split_once('=')?;
        if name.trim().eq_ignore_ascii_case("for") {
            // A parameter must not occur twice.
            if found.is_some() {
                return None;
            }
            let value = value.trim();
            let unquoted = value.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
            found = Some(address_of(unquoted.unwrap_or(value))?);
        }
    }
    found
}

/// Returns the address in a text such as `192.0.2.1`, `192.0.2.1:80`, `2001:db8::1` or `[2001:db8::1]:80`.
fn address_of(text: &str) -> Option<IpAddr> {
    let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    let address = bare.parse::<IpAddr>().ok();
    let address = address.or_else(|| text.parse::<SocketAddr>().ok().map(|address| address.ip()));
    address.map(|address| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the client's address of a request from `peer`. The proxies 10.0.0.0/8 and fd00::/8 are trusted.
    fn client(peer: &str, headers: &[(&'static str, &str)]) -> String {
        let networks = ["10.0.0.0/8", "fd00::/8"].map(|text| Network::try_from(text.to_owned()).expect("a network"));
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, value.parse().expect("a header"));
        }
        let peer = peer.parse().expect("an address");
        TrustedProxies::new(&networks).client_behind(peer, &map).to_string()
    }

    #[test]
    fn the_last_address_that_is_no_proxy_is_the_client() {
        for (list, expected) in [
            ("203.0.113.7", "203.0.113.7"),
            ("198.51.100.1, 203.0.113.7", "203.0.113.7"),
            ("198.51.100.1, 203.0.113.7, 10.9.9.9", "203.0.113.7"),
            ("203.0.113.7:4711", "203.0.113.7"),
            ("2001:db8::1", "2001:db8::1"),
            ("[2001:db8::1]:443", "2001:db8::1"),
            ("::ffff:203.0.113.7", "203.0.113.7"),
            ("10.1.1.1, 10.2.2.2", "10.1.1.1"),
            ("203.0.113.7, unknown", "10.0.0.1"),
            ("203.0.113.7, unknown, 10.3.3.3", "10.3.3.3"),
            ("", "10.0.0.1"),
            ("203.0.113.7, ,", "203.0.113.7"),
        ] {
            assert_eq!(client("10.0.0.1", &[("x-forwarded-for", list)]), expected, "{list}");
        }
        let lines = [("x-forwarded-for", "198.51.100.1"), ("x-forwarded-for", "203.0.113.7")];
        assert_eq!(client("10.0.0.1", &lines), "203.0.113.7");
    }

    #[test]
    fn forwarded_is_read_by_its_standard() {
        for (list, expected) in [
            ("for=203.0.113.7", "203.0.113.7"),
            ("For=203.0.113.7;proto=https;by=10.0.0.1", "203.0.113.7"),
            ("for=198.51.100.1, for=\"203.0.113.7:4711\"", "203.0.113.7"),
            ("proto=https; for=\"[2001:db8::1]:80\"", "2001:db8::1"),
            ("for=\"[2001:db8::1]\", for=\"[fd00::2]\"", "2001:db8::1"),
            ("for=_hidden", "10.0.0.1"),
            ("for=unknown", "10.0.0.1"),
            ("proto=https", "10.0.0.1"),
            ("for=203.0.113.7;for=203.0.113.8", "10.0.0.1"),
            ("nonsense", "10.0.0.1"),
        ] {
            assert_eq!(client("10.0.0.1", &[("forwarded", list)]), expected, "{list}");
        }
    }

    #[test]
    fn forged_headers_have_no_effect() {
        let forged = [("x-forwarded-for", "198.51.100.1"), ("forwarded", "for=198.51.100.1")];
        assert_eq!(client("203.0.113.7", &forged), "203.0.113.7");
        // The proxy writes `X-Forwarded-For` and forwards the client's own `Forwarded` unchanged.
        let mixed = [("x-forwarded-for", "203.0.113.7"), ("forwarded", "for=198.51.100.1")];
        assert_eq!(client("10.0.0.1", &mixed), "10.0.0.1");
        let same = [("x-forwarded-for", "203.0.113.7"), ("forwarded", "for=203.0.113.7")];
        assert_eq!(client("10.0.0.1", &same), "203.0.113.7");
        let long = ["10.7.7.7"; 500].join(",");
        assert_eq!(client("10.0.0.1", &[("x-forwarded-for", &format!("203.0.113.7,{long}"))]), "10.7.7.7");
    }
}
