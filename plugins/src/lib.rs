//! What a plugin is, and the hosts that run plugins. None is shipped yet: the hooks join the consumer, which keeps
//! their places visible.
//!
//! Arrows: this room knows the engine, and the server knows this room; never the other way round.
