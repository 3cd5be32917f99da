//! Devices that users have activated, and the seed of the signing key pair. The key pair signs the responses about
//! devices.

use std::sync::Arc;

use surrealdb::types::Value as Record;

use crate::model::license::Activation;
use crate::store::record::{StoredRecord, stored_record};
use crate::store::{Database, Error, Result, convert};

stored_record!(Activation [id] {
    user_id, instance_id, name, platform, app_version, activated_at, last_validated_at, revoked_at
});

/// The devices of a user, and the value of the change counter when the devices were read.
pub struct Devices {
    pub activations: Vec<Activation>,
    turn: i64,
}

/// A change to the devices of a user.
pub struct DeviceChange {
    pub written: Option<Activation>,
    /// The ids of the devices to delete.
    pub deleted: Vec<Arc<str>>,
}

impl Database {
    /// Returns all devices of a user, including revoked devices, the oldest first.
    pub async fn read_activations(&self, user_id: &str) -> Result<Devices> {
        let values = [("user", convert::text(user_id)), ("turn", turn_id(user_id))];
        // The statements read the counter first, so that a write between the two statements makes the counter outdated.
        let statements = "SELECT VALUE number FROM $turn;
            SELECT *, record::id(id) AS key FROM activation WHERE user_id = $user ORDER BY activated_at, id;";
        let found = self.query(statements, values).await?;
        let [turn, activations] = found.as_slice() else {
            return Err(Error::corrupt(format!(
                "the statements that read the devices of the user '{user_id}' did not return two results"
            )));
        };
        Ok(Devices {
            activations: convert::list(Some(activations))?.map(Activation::read).collect::<Result<_>>()?,
            turn: convert::list(Some(turn))?.next().map(convert::int).transpose()?.unwrap_or(0),
        })
    }

    /// Changes the devices of a user. Fails with [`Error::Conflict`] if the devices have changed since they were read.
    pub async fn change_devices(&self, user_id: &str, change: &DeviceChange, read: &Devices) -> Result<()> {
        let written = change.written.iter().map(|device| device.with_id(activation_id(&device.id)));
        let values = [
            ("written", convert::array(written)),
            ("deleted", convert::array(change.deleted.iter().map(|id| activation_id(id)))),
            ("turn", turn_id(user_id)),
            ("seen", convert::integer(read.turn)),
        ];
        let statements = "BEGIN;
            IF ((SELECT VALUE number FROM ONLY $turn) ?? 0) != $seen { THROW 'stale head' };
            UPSERT $turn SET number = $seen + 1 RETURN NONE;
            FOR $device IN $written { UPSERT $device.id CONTENT $device RETURN NONE };
            DELETE $deleted RETURN NONE;
            COMMIT;";
        self.query(statements, values).await.map(drop)
    }

    /// Returns the seed of the signing key pair, in hexadecimal. If no seed is stored yet, stores `new` as the seed.
    pub async fn license_seed(&self, new: &str, now: i64) -> Result<String> {
        let values = [
            ("id", convert::record_id("license_key", "current".to_owned())),
            ("seed", convert::text(new)),
            ("now", convert::integer(now)),
        ];
        let statements = "BEGIN;
            IF !record::exists($id) { CREATE $id SET seed = $seed, created_at = $now RETURN NONE };
            SELECT VALUE seed FROM $id;
            COMMIT;";
        let found = self.query_again(statements, values).await?;
        let seed = found.iter().find_map(|result| convert::text_of(convert::list(Some(result)).ok()?.next()?));
        seed.map(|seed| seed.to_string()).ok_or_else(|| Error::corrupt("the record of the license key has no seed"))
    }
}

fn activation_id(id: &str) -> Record {
    convert::record_id("activation", id.to_owned())
}

/// Returns the id of a user's change counter. Every change of the user's devices writes the counter, so that concurrent
/// changes conflict.
fn turn_id(user_id: &str) -> Record {
    convert::record_id("activation_turn", user_id.to_owned())
}
