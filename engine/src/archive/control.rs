//! Dumps of the control database in the archive: workspaces and their deletions, users with their plans, members, keys
//! as hashes, revoked keys, removed members, invitations, devices, released plugins, and the secrets that sign links
//! and licenses.

use serde::{Deserialize, Serialize};

use super::bucket::Bucket;
use super::installation::Archive;
use super::log::damaged;
use super::segment::sha256;
use crate::error::{Error, Result};
use crate::store::{Database, DatabaseReader};

const FOLDER: &str = "control";
/// The number of digits of a time in an object key.
const TIME_DIGITS: usize = 15;
/// The number of digits of the hash in an object key. With the hash, a server detects whether records have changed
/// since the dump.
const HASH_DIGITS: usize = 32;
const DAY_MS: i64 = 86_400_000;
const LEVEL: i32 = 3;

/// A line of a dump.
#[derive(Deserialize, Serialize)]
struct DumpLine {
    table: String,
    content: String,
}

/// Writes a dump if anything other than the last use of keys has changed since the last dump. If `is_checked` is
/// `false`, also writes a dump if the last dump cannot be read with the archive's key. Writes nothing if another server
/// writes a dump at the same time. Returns whether a dump was written.
pub async fn write(archive: &Archive, control: &DatabaseReader, now_ms: i64, is_checked: bool) -> Result<bool> {
    // Lists the dumps before the records are read, so that `write_after` notices a dump of another server with later
    // records.
    let newest = newest(&archive.bucket).await?;
    write_after(newest, archive, control, now_ms, is_checked).await
}

/// Writes a dump like [`write`]. `newest` is the name of the newest dump in the caller's listing. Writes nothing if
/// another server has added a dump after the listing, because the added dump may contain later records.
async fn write_after(
    newest: Option<String>,
    archive: &Archive,
    control: &DatabaseReader,
    now_ms: i64,
    is_checked: bool,
) -> Result<bool> {
    let records = control.dump().await?;
    let hashing = tokio::task::spawn_blocking(move || {
        let lasting: String = records.iter().map(|record| format!("{} {}\n", record.table, record.lasting)).collect();
        (sha256(lasting.as_bytes()).get(..HASH_DIGITS).unwrap_or_default().to_owned(), records)
    });
    let (hash, records) = hashing.await.map_err(Error::internal)?;
    if let Some(newest) = newest.as_deref().filter(|newest| hash_of(newest) == hash)
        && (is_checked || open(archive, newest).await.is_ok())
    {
        return Ok(false);
    }
    // The newest dump must have the last name, even if the clock of a server was wrong.
    let at = newest.as_deref().and_then(time_of).map_or(now_ms, |last| now_ms.max(last.saturating_add(1)));
    let name = format!("{FOLDER}/{:0TIME_DIGITS$}-{hash}.sealed", at.max(0));
    let packing = tokio::task::spawn_blocking(move || {
        let mut lines = Vec::new();
        for record in records {
            serde_json::to_writer(&mut lines, &DumpLine { table: record.table.to_owned(), content: record.content })?;
            lines.push(b'\n');
        }
        zstd::stream::encode_all(&*lines, LEVEL)
    });
    let packed = packing.await.map_err(Error::internal)?.map_err(Error::internal)?;
    let sealed = archive.key.seal(&name, packed).ok_or_else(|| damaged(&name, "cannot encrypt the dump"))?;
    if self::newest(&archive.bucket).await? != newest {
        return Ok(false);
    }
    archive.bucket.put(&name, sealed.into()).await?;
    Ok(true)
}

/// Reads a dump.
async fn open(archive: &Archive, name: &str) -> Result<Vec<DumpLine>> {
    let sealed = archive.bucket.read(name).await?.ok_or_else(|| damaged(name, "the dump is missing"))?;
    let packed = archive.key.open(name, &sealed);
    let packed = packed.ok_or_else(|| {
        damaged(
            name,
            "cannot decrypt the dump: FOLDWORK_BACKUP_KEY is not the key that encrypted it, or the dump was changed",
        )
    })?;
    let lines = zstd::stream::decode_all(&*packed).map_err(|error| damaged(name, &error.to_string()))?;
    let lines = lines.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    lines.map(|line| serde_json::from_slice(line).map_err(|error| damaged(name, &error.to_string()))).collect()
}

/// Returns the newest dump that can be opened, and its time. If no dump can be opened, fails with the error of the
/// newest dump. Fails with [`Error::NotFound`] if there is no dump.
async fn newest_readable(archive: &Archive) -> Result<(i64, Vec<DumpLine>)> {
    let mut failed = Error::not_found("dump of the control database in the folder", FOLDER);
    for (index, found) in archive.bucket.list(FOLDER).await?.iter().rev().enumerate() {
        match open(archive, &found.key).await {
            Ok(lines) => return Ok((time_of(&found.key).unwrap_or_default(), lines)),
            Err(error) if index == 0 => failed = error,
            Err(_) => {}
        }
    }
    Err(failed)
}

impl Archive {
    /// Checks that the key opens the last dump of the control database. Returns the time of the dump, in milliseconds
    /// since 1970, and the ids of its workspaces.
    pub async fn verify_control(&self) -> Result<(i64, Vec<String>)> {
        let missing = || Error::not_found("dump of the control database in the folder", FOLDER);
        let name = newest(&self.bucket).await?.ok_or_else(missing)?;
        let lines = open(self, &name).await?;
        let id = |line: &DumpLine| {
            let begin = line.content.find("workspace:")? + "workspace:".len();
            let id = line.content.get(begin..)?.trim_start_matches(['`', '⟨']);
            Some(id.chars().take_while(|letter| letter.is_ascii_alphanumeric() || *letter == '-').collect())
        };
        let ids = lines.iter().filter(|line| line.table == "workspace").filter_map(id).collect();
        Ok((time_of(&name).unwrap_or_default(), ids))
    }

    /// Returns the time of the last dump of the control database, in milliseconds since 1970.
    pub async fn control_at(&self) -> Result<Option<i64>> {
        Ok(newest(&self.bucket).await?.and_then(|name| time_of(&name)))
    }
}

/// Restores the newest readable dump into an empty control database.
pub async fn restore(archive: &Archive, control: &Database) -> Result<()> {
    let (_, lines) = newest_readable(archive).await?;
    // A restore can be repeated as long as the store has no workspaces. Workspaces are therefore written last.
    let (last, first): (Vec<DumpLine>, Vec<DumpLine>) = lines.into_iter().partition(|line| line.table == "workspace");
    for table in first.chunk_by(|a, b| a.table == b.table).chain(std::iter::once(last.as_slice())) {
        let contents: Vec<String> = table.iter().map(|line| line.content.clone()).collect();
        let Some(first) = table.first() else { continue };
        control.write_dumped(&first.table, &contents).await?;
    }
    Ok(())
}

/// Removes dumps older than `retention_ms`. Also removes each dump older than 24 hours that is not the last dump of its
/// day. Never removes the newest dump.
pub async fn thin(bucket: &Bucket, now_ms: i64, retention_ms: i64) -> Result<()> {
    let listed = bucket.list(FOLDER).await?;
    for pair in listed.windows(2) {
        let [found, next] = pair else { continue };
        let (Some(at), Some(next_at)) = (time_of(&found.key), time_of(&next.key)) else { continue };
        let is_superseded = at < now_ms.saturating_sub(DAY_MS) && at / DAY_MS == next_at / DAY_MS;
        if is_superseded || at < now_ms.saturating_sub(retention_ms) {
            bucket.remove(&found.key).await?;
        }
    }
    Ok(())
}

async fn newest(bucket: &Bucket) -> Result<Option<String>> {
    Ok(bucket.list(FOLDER).await?.pop().map(|listed| listed.key))
}

fn time_of(name: &str) -> Option<i64> {
    name.rsplit('/').next()?.split_once('-')?.0.parse().ok()
}

fn hash_of(name: &str) -> &str {
    name.rsplit_once('-').map_or("", |(_, hash)| hash.trim_end_matches(".sealed"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::archive::seal::SealingKey;
    use crate::store::Store;

    #[tokio::test]
    async fn dumps_are_thinned_and_a_restore_uses_the_newest_dump_that_can_be_opened() {
        let control = Store::connect("mem://").await.expect("a store").control().await.expect("a database");
        let key = SealingKey::parse(&SealingKey::generate()).expect("a key");
        let archive = Archive::open("mem://", [], key).expect("memory");
        let bucket = &archive.bucket;
        let write = async |at| write(&archive, &control, at, true).await.expect("written");
        assert!(write(1).await);
        assert!(!write(2).await);
        for (hour, id) in (0..50).zip(0..) {
            let user = format!("[\"UPSERT\", {id}]");
            control
                .write_dumped("user", &[format!("{{ id: user:u{id}, name: '{}' }}", user.replace('"', ""))])
                .await
                .expect("a user");
            let at = hour * 3_600_000 + 10;
            // Another server has written a dump since this server began.
            assert!(!write_after(None, &archive, &control, at, true).await.expect("nothing written"));
            assert!(write(at).await);
        }
        thin(bucket, 50 * 3_600_000, 30 * DAY_MS).await.expect("thinned");
        let kept: Vec<i64> =
            bucket.list(FOLDER).await.expect("listed").iter().filter_map(|found| time_of(&found.key)).collect();
        assert_eq!(kept.len(), 1 + 24, "{kept:?}");
        thin(bucket, 400 * DAY_MS, 30 * DAY_MS).await.expect("thinned");
        assert_eq!(archive.control_at().await.expect("listed"), Some(49 * 3_600_000 + 10));
        assert_eq!(archive.verify_control().await.expect("verified").0, 49 * 3_600_000 + 10);
        // The verification rejects a dump that cannot be opened. A restore uses the newest dump that can be opened.
        let torn = newest(bucket).await.expect("listed").expect("a dump");
        let later = torn.replacen("control/0", "control/1", 1);
        bucket.put(&later, bytes::Bytes::from_static(b"half")).await.expect("written");
        assert!(archive.verify_control().await.is_err());
        let other = Store::connect("mem://").await.expect("a store").control().await.expect("a database");
        restore(&archive, &other).await.expect("restored");
        assert_eq!(other.dump().await.expect("dumped"), control.dump().await.expect("dumped"));
    }
}
