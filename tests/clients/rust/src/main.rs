//! The story as the client of progenitor tells it.

#[expect(warnings, reason = "what the generator writes is the generator's")]
mod client {
    include!(concat!(env!("OUT_DIR"), "/client.rs"));
}
fn main() {}
