//! The limits of one call of a script.

use serde::Deserialize;

/// Declares the limits, each with its type and its default.
macro_rules! call_limits {
    ($($(#[$doc:meta])* $limit:ident: $type:ty = $default:expr;)+) => {
        /// The limits of one call of a script. The settings of the server set only the deadline, because only the time
        /// depends on the machine. A manifest may override each limit for its plugin, because the needs of scripts
        /// differ.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub struct CallLimits {
            $($(#[$doc])* pub $limit: $type,)+
        }

        impl Default for CallLimits {
            fn default() -> CallLimits {
                CallLimits { $($limit: $default,)+ }
            }
        }

        impl CallLimits {
            /// Returns the lower of the two values for each limit.
            pub fn at_most(self, most: CallLimits) -> CallLimits {
                CallLimits { $($limit: self.$limit.min(most.$limit),)+ }
            }

            /// Rejects limits of 0, because rhai interprets 0 as "no limit". Also rejects limits that do not fit in 63
            /// bits.
            pub fn check(&self) -> Result<(), String> {
                $(if self.$limit == 0 || i64::try_from(self.$limit).is_err() {
                    return Err(format!("{} is {}; expected 1 to {}", stringify!($limit), self.$limit, i64::MAX));
                })+
                Ok(())
            }
        }

        /// The limits that a manifest sets. If a limit is `None`, the limit of the host applies.
        #[derive(Debug, Clone, Copy, Default, Deserialize)]
        #[serde(default, deny_unknown_fields)]
        pub struct Overrides {
            $($limit: Option<$type>,)+
        }

        impl Overrides {
            /// Returns the limits that the manifest sets. For each limit that the manifest does not set, returns the
            /// limit of the host.
            pub fn over(self, host: CallLimits) -> CallLimits {
                CallLimits { $($limit: self.$limit.unwrap_or(host.$limit),)+ }
            }
        }
    };
}

call_limits! {
    /// The limit on the operations of one call.
    operations: u64 = 500_000;
    /// The limit on the time of one call, in milliseconds.
    deadline_ms: u64 = 250;
    /// The limit on the memory of one call, in bytes.
    memory_bytes: u64 = 64 << 20;
    /// The limit on the length of a string, and on the total length of all strings in an array or a map, in bytes.
    string_bytes: usize = 1 << 20;
    /// The limit on the items of an array, including the items of arrays in it.
    array_items: usize = 10_000;
    /// The limit on the fields of a map, including the fields of maps in it.
    map_items: usize = 10_000;
    /// The limit on nested calls of a script's functions.
    call_levels: usize = 32;
    /// The limit on the depth of an expression outside of functions.
    expression_depth: usize = 64;
    /// The limit on the depth of an expression in a function.
    function_expression_depth: usize = 32;
    /// The limit on the variables that exist at the same time.
    variables: usize = 256;
    /// The limit on the functions of a script.
    functions: usize = 128;
}
