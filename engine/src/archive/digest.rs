//! Digests of all states of a workspace at a position. The verification of an archive compares the archived states with
//! the digest that a server computed.
//!
//! A digest is the sum of the hashes of all states. The digest therefore does not depend on the order of the states.

use aws_lc_rs::digest::{Context, SHA256};
use serde::{Deserialize, Serialize};

use super::bucket::Bucket;
use super::log::{damaged, epoch_folder};
use crate::error::{Error, Result};
use crate::model::aggregate::Aggregate;
use crate::model::value::Value;

/// The number of digits of a position in an object key.
const POSITION_DIGITS: usize = 20;

/// The digest of all states at a position.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Digest {
    pub position: u64,
    /// The number of definitions in the history of the types.
    pub definitions: u64,
    /// The number of aggregates, including deleted aggregates.
    pub states: u64,
    /// The sum of the SHA-256 hashes of all states, in hexadecimal.
    pub sum: String,
    /// The time at which the digest was computed, in milliseconds since 1970.
    pub at: i64,
    /// The version of the program that computed the digest. Another version may fold events differently.
    #[serde(default)]
    pub program: String,
}

impl Digest {
    /// Computes the digest of states at a position. Hashes all states, which takes long for large workspaces.
    pub fn of<'a>(states: impl Iterator<Item = &'a Aggregate>, position: u64, definitions: u64, at: i64) -> Digest {
        let (mut sum, mut count) = ([0u8; 32], 0);
        for aggregate in states {
            add(&mut sum, &hash(aggregate));
            count += 1;
        }
        let program = env!("CARGO_PKG_VERSION").to_owned();
        Digest { position, definitions, states: count, sum: hex::encode(sum), at, program }
    }

    /// Returns whether the digest has this position, this number of definitions and the current program version.
    pub fn is_of(&self, position: u64, definitions: u64) -> bool {
        self.position == position && self.definitions == definitions && self.program == env!("CARGO_PKG_VERSION")
    }

    /// Returns whether two digests describe the same states.
    pub fn equals(&self, other: &Digest) -> bool {
        (self.position, self.states, &self.sum) == (other.position, other.states, &other.sum)
    }
}

/// Writes a digest into the archive.
pub async fn write(bucket: &Bucket, workspace_id: &str, epoch: u64, digest: &Digest) -> Result<()> {
    let text = serde_json::to_vec(digest).map_err(Error::internal)?;
    bucket.put(&key(workspace_id, epoch, digest.position), text.into()).await
}

/// Returns the last digest at or before a position.
pub async fn last(bucket: &Bucket, workspace_id: &str, epoch: u64, position: u64) -> Result<Option<Digest>> {
    let listed = bucket.list(&format!("{}/digest", epoch_folder(workspace_id, epoch))).await?;
    let end = key(workspace_id, epoch, position);
    let Some(found) = listed.iter().rev().find(|found| found.key <= end) else { return Ok(None) };
    let Some(text) = bucket.read(&found.key).await? else { return Ok(None) };
    serde_json::from_slice(&text).map(Some).map_err(|error| damaged(&found.key, &error.to_string()))
}

/// Removes all digests except the last ones. `kept` is the number of digests that remain.
pub async fn thin(bucket: &Bucket, workspace_id: &str, epoch: u64, kept: usize) -> Result<()> {
    let listed = bucket.list(&format!("{}/digest", epoch_folder(workspace_id, epoch))).await?;
    for found in listed.iter().rev().skip(kept) {
        bucket.remove(&found.key).await?;
    }
    Ok(())
}

fn key(workspace_id: &str, epoch: u64, position: u64) -> String {
    format!("{}/digest/{position:0POSITION_DIGITS$}.json", epoch_folder(workspace_id, epoch))
}

fn hash(aggregate: &Aggregate) -> [u8; 32] {
    let mut context = Context::new(&SHA256);
    for text in [aggregate.id.as_str(), &aggregate.aggregate_type, aggregate.project_id.as_deref().unwrap_or_default()]
    {
        put_text(&mut context, text);
    }
    for number in [aggregate.version, aggregate.position, aggregate.first_position, u64::from(aggregate.deleted)] {
        context.update(&number.to_be_bytes());
    }
    for time in [aggregate.created_at, aggregate.last_event_at] {
        context.update(&time.to_be_bytes());
    }
    put(&mut context, &Value::Object(aggregate.state.clone()));
    let mut hash = [0; 32];
    hash.copy_from_slice(context.finish().as_ref());
    hash
}

fn put_text(context: &mut Context, text: &str) {
    context.update(&(text.len() as u64).to_be_bytes());
    context.update(text.as_bytes());
}

/// Hashes a value. The order of an object's fields does not matter.
fn put(context: &mut Context, value: &Value) {
    context.update(value.type_name().as_bytes());
    match value {
        Value::Null => {}
        Value::Bool(flag) => context.update(&[u8::from(*flag)]),
        Value::Int(number) => context.update(&number.to_be_bytes()),
        Value::Double(number) => context.update(&number.to_bits().to_be_bytes()),
        Value::Decimal(number) => put_text(context, &number.to_string()),
        Value::Date(ms) => context.update(&ms.to_be_bytes()),
        Value::String(text) => put_text(context, text),
        Value::Array(items) => {
            context.update(&(items.len() as u64).to_be_bytes());
            items.iter().for_each(|item| put(context, item));
        }
        Value::Object(object) => {
            let mut fields: Vec<_> = object.iter().collect();
            fields.sort_unstable_by(|a, b| a.0.cmp(b.0));
            context.update(&(fields.len() as u64).to_be_bytes());
            for (name, value) in fields {
                put_text(context, name);
                put(context, value);
            }
        }
    }
}

/// Adds two 256-bit numbers, most significant byte first, modulo 2^256.
fn add(sum: &mut [u8; 32], other: &[u8; 32]) {
    let mut carry = 0u16;
    for (byte, other) in sum.iter_mut().zip(other).rev() {
        let total = u16::from(*byte) + u16::from(*other) + carry;
        *byte = total.to_be_bytes()[1];
        carry = total >> 8;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sum_of_hashes_does_not_depend_on_the_order_of_the_states() {
        let hashes = [[0xFF; 32], [1; 32], [0x80; 32]];
        let sum = |order: [usize; 3]| {
            let mut sum = [0; 32];
            order.iter().for_each(|index| add(&mut sum, &hashes[*index]));
            sum
        };
        assert_eq!(sum([0, 1, 2]), sum([2, 0, 1]));
        assert_eq!(sum([0, 1, 2])[31], 0x80);
    }
}
