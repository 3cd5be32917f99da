//! Networks of addresses in settings, such as `10.0.0.0/8`. A single address is a network of one address.

use std::net::IpAddr;

use ipnet::IpNet;
use serde::{Deserialize, Serialize};

/// A network of addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Network(IpNet);

impl Network {
    /// Returns whether the network contains an address. An IPv4-mapped IPv6 address counts as the IPv4 address.
    pub fn contains(&self, address: IpAddr) -> bool {
        self.0.contains(&address.to_canonical())
    }
}

impl TryFrom<String> for Network {
    type Error = String;

    fn try_from(text: String) -> Result<Network, String> {
        let address = || text.parse::<IpAddr>().ok().map(IpNet::from);
        let network = text.parse::<IpNet>().ok().or_else(address);
        network
            .map(|network| Network(network.trunc()))
            .ok_or_else(|| format!("'{text}' is neither an address nor a network such as 10.0.0.0/8 or fd00::/8"))
    }
}

impl From<Network> for String {
    fn from(network: Network) -> String {
        network.0.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_contains_only_addresses_with_its_prefix() {
        let network = |text: &str| Network::try_from(text.to_owned());
        let contains = |text: &str, address: &str| {
            network(text).expect("a network").contains(address.parse().expect("an address"))
        };
        assert!(contains("10.1.2.3/8", "10.200.0.1"));
        assert!(contains("10.0.0.0/8", "::ffff:10.0.0.1"));
        assert!(!contains("10.0.0.0/8", "11.0.0.1"));
        assert!(contains("127.0.0.1", "127.0.0.1") && !contains("127.0.0.1", "127.0.0.2"));
        assert!(contains("fd00::/8", "fd12::1") && !contains("fd00::/8", "10.0.0.1"));
        assert!(network("10.0.0.0/33").is_err_and(|error| error.contains("10.0.0.0/33")));
        assert!(network("proxy.local").is_err());
    }
}
