//! Tests of the limits on the records that members create in the control database.

use std::sync::Arc;

use surrealdb::types::Value as Record;

use super::control::members::{AccessFault, member_id};
use super::record::StoredRecord;
use super::{Database, convert};
use crate::model::access::{Invitation, KeyRecord, Role};

const LIMIT: i64 = 1_000;

async fn with_member() -> Database {
    let control = Database::control_in_memory().await;
    let statement = "CREATE $id SET workspace_id = 'w', user_id = 'u', role = 'owner', joined_at = 1 RETURN NONE";
    control.query(statement, [("id", member_id("w", "u"))]).await.expect("written");
    control
}

/// Creates records from a template until the table has one record fewer than the limit. Each record has its own number
/// in its id and in the field that `unique` names.
async fn fill(control: &Database, table: &str, content: Record, unique: &str) {
    let statement = format!(
        "FOR $number IN 1..{LIMIT} {{
            CREATE type::record('{table}', 'filler-' + <string>$number) CONTENT $content RETURN NONE;
            UPDATE type::record('{table}', 'filler-' + <string>$number) SET {unique} = <string>$number RETURN NONE
        }}"
    );
    control.query(&statement, [("content", content)]).await.expect("written");
}

fn key(id: &str, created_at: i64, expires_at: Option<i64>) -> KeyRecord {
    KeyRecord {
        id: id.into(),
        workspace_id: "w".into(),
        user_id: "u".into(),
        name: id.to_owned(),
        scopes: Vec::new(),
        display: id.to_owned(),
        hash: id.to_owned(),
        opens_all: false,
        agents: None,
        created_at,
        expires_at,
        last_used_at: None,
        derived_from: None,
        ancestors: Vec::new(),
    }
}

#[tokio::test]
async fn a_user_with_1000_keys_can_create_another_key_only_after_a_key_has_expired() {
    let control = with_member().await;
    fill(&control, "key", Record::Object(key("filler", 1, None).fields()), "hash").await;
    control.create_key(&key("last", 2, Some(10))).await.expect("answered").expect("the key number 1000");
    let refused = control.create_key(&key("more", 9, None)).await.expect("answered");
    assert_eq!(refused.map(|key| key.id), Err(AccessFault::TooManyKeys));
    let again = control.create_key(&key("last", 9, None)).await.expect("answered").expect("the key that exists");
    assert_eq!(again.expires_at, Some(10));
    control.create_key(&key("more", 10, None)).await.expect("answered").expect("a new key");
    assert!(control.read_key("last").await.expect("read").is_none(), "the expired key is deleted");
    assert_eq!(control.read_keys("w").await.expect("read").len() as i64, LIMIT);
}

fn invitation(id: &str, created_at: i64, expires_at: Option<i64>) -> Invitation {
    Invitation {
        id: id.into(),
        workspace_id: "w".into(),
        email: Arc::from(format!("{id}@example.com")),
        role: Role::Viewer,
        created_at,
        expires_at,
        derived_from: None,
    }
}

async fn fill_invitations(control: &Database) {
    let content = convert::fields([
        ("workspace_id", convert::text("w")),
        ("role", convert::text("viewer")),
        ("created_at", convert::integer(1)),
    ]);
    fill(control, "invitation", Record::Object(content), "email").await;
}

#[tokio::test]
async fn invitations_that_two_owners_create_concurrently_stay_within_the_limit() {
    let control = with_member().await;
    let others = "CREATE workspace:w SET name = 'w', slug = 'w', owner_id = 'u', created_at = 1;
        CREATE $id SET workspace_id = 'w', user_id = 'v', role = 'owner', joined_at = 1";
    control.query(others, [("id", member_id("w", "v"))]).await.expect("written");
    fill_invitations(&control).await;
    let write =
        async |id: &str, user: &str| control.write_invitation(&invitation(id, 2, None), user).await.expect("answered");
    let (one, other) = tokio::join!(write("one", "u"), write("other", "v"));
    assert!(one.is_ok() != other.is_ok(), "{one:?} {other:?}");
    assert_eq!(control.read_invitations("w").await.expect("read").len() as i64, LIMIT);
}

#[tokio::test]
async fn invitations_can_be_changed_but_not_created_at_the_limit() {
    let control = with_member().await;
    let write = async |id: &str, created_at, expires_at| {
        control.write_invitation(&invitation(id, created_at, expires_at), "u").await.expect("answered")
    };
    fill_invitations(&control).await;
    assert_eq!(write("last", 2, Some(10)).await, Ok(()));
    assert_eq!(write("more", 9, None).await, Err(AccessFault::TooManyInvitations));
    assert_eq!(write("last", 9, Some(20)).await, Ok(()));
    assert_eq!(write("more", 19, None).await, Err(AccessFault::TooManyInvitations));
    assert_eq!(write("more", 20, None).await, Ok(()));
    assert_eq!(control.read_invitations("w").await.expect("read").len() as i64, LIMIT);
}
