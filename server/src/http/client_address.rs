//! Determines the address of a request's client and the origin that the client addressed, from the connection or from
//! the headers of trusted proxies.
//!
//! Every proxy adds the address of its own peer at the end of `X-Forwarded-For` or `Forwarded` (RFC 7239). The last
//! address that does not belong to a trusted proxy is the client's address. The client may have invented all earlier
//! addresses.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use poem::Request;
use poem::http::HeaderMap;

use crate::config::Network;

const FORWARDED: &str = "forwarded";
const X_FORWARDED_FOR: &str = "x-forwarded-for";
const X_FORWARDED_PROTO: &str = "x-forwarded-proto";
const X_FORWARDED_HOST: &str = "x-forwarded-host";
/// The maximum number of addresses that are read from a header, from its end.
const MAX_HOPS: usize = 32;

/// The client's address, passed to handlers and layers as request data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ClientAddress(pub IpAddr);

/// The scheme and host that the client addressed, as far as trusted proxies report them. Passed as request data.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ForwardedOrigin {
    pub scheme: Option<String>,
    pub host: Option<String>,
}

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

    /// Returns the address of the client that sent a request, and the origin that the client addressed.
    pub fn read(&self, request: &Request) -> (ClientAddress, ForwardedOrigin) {
        let peer = request.remote_addr().as_socket_addr().map(SocketAddr::ip);
        let peer = peer.map_or(IpAddr::V6(Ipv6Addr::UNSPECIFIED), |peer| peer.to_canonical());
        let (client, origin) = self.read_headers(peer, request.headers());
        (ClientAddress(client), origin)
    }

    fn read_headers(&self, peer: IpAddr, headers: &HeaderMap) -> (IpAddr, ForwardedOrigin) {
        if !self.contains(peer) {
            return (peer, ForwardedOrigin::default());
        }
        let (forwarded, place) = self.last_untrusted(peer, fields(headers, FORWARDED).map(forwarded_for));
        let (forwarded_for, x_place) = self.last_untrusted(peer, fields(headers, X_FORWARDED_FOR).map(address_of));
        let standard = || origin_in_forwarded(headers, place);
        let common = || ForwardedOrigin {
            scheme: value_at(headers, X_FORWARDED_PROTO, x_place),
            host: value_at(headers, X_FORWARDED_HOST, x_place),
        };
        match (headers.contains_key(FORWARDED), headers.contains_key(X_FORWARDED_FOR)) {
            // A proxy that writes one header passes the other header on as the client sent it. The server does not know
            // which header the proxy writes, so the server trusts neither header if their addresses differ.
            (true, true) if forwarded != forwarded_for => (peer, ForwardedOrigin::default()),
            (true, true) => (forwarded, agreed(standard(), common())),
            (true, false) => (forwarded, standard()),
            (false, _) => (forwarded_for, common()),
        }
    }

    /// Returns the first address of `reported` that does not belong to a trusted proxy, and its place. `reported`
    /// begins with the last address of the header, which the peer reported. If an address cannot be parsed, returns the
    /// address of the proxy that reported this address, with the place of the address that cannot be parsed. If all
    /// addresses belong to trusted proxies, returns the last address that was read. If `reported` is empty, returns
    /// `peer` and the place 0.
    fn last_untrusted(&self, peer: IpAddr, reported: impl Iterator<Item = Option<IpAddr>>) -> (IpAddr, usize) {
        let mut nearest = (peer, 0);
        for (place, address) in reported.take(MAX_HOPS).enumerate() {
            nearest = (address.unwrap_or(nearest.0), place);
            if address.is_none_or(|address| !self.contains(address)) {
                break;
            }
        }
        nearest
    }
}

/// Returns the scheme and the host, each only if both headers report the same value.
fn agreed(one: ForwardedOrigin, other: ForwardedOrigin) -> ForwardedOrigin {
    ForwardedOrigin {
        scheme: one.scheme.filter(|scheme| other.scheme.as_ref() == Some(scheme)),
        host: one.host.filter(|host| other.host.as_ref() == Some(host)),
    }
}

/// Returns the origin in one element of the header `Forwarded`. `place` is the index of the element, counted from the
/// end of the header.
fn origin_in_forwarded(headers: &HeaderMap, place: usize) -> ForwardedOrigin {
    let element = fields(headers, FORWARDED).nth(place).unwrap_or_default();
    let parameter = |name: &str| {
        let mut pairs = element.split(';').filter_map(|pair| pair.split_once('='));
        let (_, value) = pairs.find(|(known, _)| known.trim().eq_ignore_ascii_case(name))?;
        Some(unquoted(value).to_ascii_lowercase())
    };
    ForwardedOrigin { scheme: parameter("proto"), host: parameter("host") }
}

/// Returns the value in a header's list at this place, counted from the end. If the list is shorter, returns the first
/// value of the list: a proxy that replaces the header sends only one value, which describes the client's request.
fn value_at(headers: &HeaderMap, name: &str, place: usize) -> Option<String> {
    let values: Vec<&str> = fields(headers, name).take(MAX_HOPS).collect();
    values.get(place).or(values.last()).map(|value| value.to_ascii_lowercase())
}

/// Returns the elements of a header's list, beginning with the last element. The list may be spread over several lines.
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
            found = Some(address_of(unquoted(value))?);
        }
    }
    found
}

fn unquoted(value: &str) -> &str {
    let value = value.trim();
    value.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(value)
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

    /// Returns the address of the client for a request from `peer`. The proxies 10.0.0.0/8 and fd00::/8 are trusted.
    fn client(peer: &str, headers: &[(&'static str, &str)]) -> String {
        read(peer, headers).0.to_string()
    }

    /// Returns the origin that the client of a request from `peer` addressed. The proxies 10.0.0.0/8 and fd00::/8 are
    /// trusted.
    fn origin(peer: &str, headers: &[(&'static str, &str)]) -> String {
        let ForwardedOrigin { scheme, host } = read(peer, headers).1;
        format!("{}://{}", scheme.as_deref().unwrap_or("-"), host.as_deref().unwrap_or("-"))
    }

    fn read(peer: &str, headers: &[(&'static str, &str)]) -> (IpAddr, ForwardedOrigin) {
        let networks = ["10.0.0.0/8", "fd00::/8"].map(|text| Network::try_from(text.to_owned()).expect("a network"));
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, value.parse().expect("a header"));
        }
        let peer = peer.parse().expect("an address");
        TrustedProxies::new(&networks).read_headers(peer, &map)
    }

    #[test]
    fn the_origin_comes_from_the_outermost_trusted_proxy() {
        let x = |proto, host| {
            [("x-forwarded-for", "203.0.113.7"), ("x-forwarded-proto", proto), ("x-forwarded-host", host)]
        };
        assert_eq!(origin("10.0.0.1", &x("https", "Example.org:8443")), "https://example.org:8443");
        assert_eq!(origin("203.0.113.7", &x("https", "example.org")), "-://-");
        assert_eq!(origin("10.0.0.1", &[("x-forwarded-proto", "https")]), "https://-");
        // The inner proxy adds its own values, and the client has invented the first values.
        let chain =
            [("x-forwarded-for", "198.51.100.1, 203.0.113.7, 10.9.9.9"), ("x-forwarded-proto", "ftp, https, http")];
        assert_eq!(origin("10.0.0.1", &chain), "https://-");
        for (list, expected) in [
            ("for=203.0.113.7;proto=https;host=example.org", "https://example.org"),
            ("for=198.51.100.1;host=evil, for=203.0.113.7;Host=\"example.org:1\";proto=HTTPS", "https://example.org:1"),
            ("for=203.0.113.7;proto=https;host=a, for=10.9.9.9;proto=http;host=b", "https://a"),
            ("for=_hidden;proto=https", "https://-"),
            ("nonsense", "-://-"),
        ] {
            assert_eq!(origin("10.0.0.1", &[("forwarded", list)]), expected, "{list}");
        }
        // The client has sent `Forwarded` with its true address, and the proxy writes the other headers.
        let mixed = [
            ("forwarded", "for=203.0.113.7;host=evil;proto=https"),
            ("x-forwarded-for", "203.0.113.7"),
            ("x-forwarded-proto", "https"),
        ];
        assert_eq!(origin("10.0.0.1", &mixed), "https://-");
        // The proxy writes only `Forwarded`.
        let passed = [("forwarded", "for=203.0.113.7;proto=https"), ("x-forwarded-host", "evil")];
        assert_eq!(origin("10.0.0.1", &passed), "https://-");
    }

    #[test]
    fn the_last_address_that_is_not_a_trusted_proxy_is_the_client() {
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
    fn the_forwarded_header_is_parsed_as_rfc_7239_defines_it() {
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
    fn forged_addresses_do_not_become_the_client_address() {
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
