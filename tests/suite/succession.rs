//! Tests on two engines that share one store: a new owner of a workspace, the rotation of a key, and concurrent changes
//! of a plan.

use std::sync::Arc;

use foldwork_engine::error::ErrorCode;
use foldwork_engine::model::access::{Role, Scope};
use foldwork_engine::model::plan::{PlanLimits, PlanStatus};
use foldwork_engine::workspace::members::NewPlan;
use foldwork_engine::workspace::projects::NewProject;
use foldwork_engine::{Administrator, Engine, Error, Owner, Reader};
use foldwork_tests::handles::{enter, join};

use crate::access_races::{is_refused, new_key, token, twins};

#[tokio::test(flavor = "multi_thread")]
async fn the_founder_can_be_replaced_on_every_server() {
    let (engines, key) = twins().await;
    let workspace = enter(&engines[0], &key).await.expect("a workspace");
    let founder = workspace.reader.record().owner_id.clone();
    let token = token("bob");
    let bob = join(&engines[1], &workspace.owner, &token, "bob@example.com", Role::Editor).await.expect("joined");
    workspace.owner.change_owner(bob.user_id()).await.expect("another owner");
    // The limits follow the owner on every server, including a server that had already opened the workspace.
    let operator: Administrator =
        engines[0].enter(engines[0].authenticate(&key).await.expect("a caller")).await.expect("a right");
    let limits = Some(PlanLimits { projects: Some(0), ..PlanLimits::default() });
    operator.set_plan(bob.user_id(), NewPlan { limits, ..NewPlan::default() }).await.expect("a plan");
    let project = NewProject { name: "Docs".into(), ..NewProject::default() };
    let refused = workspace.writer.create_project(project).await.map(drop);
    assert!(refused.is_err(), "the limits are those of the founder");
    let there = engines[1].authenticate_in(&token, Some(bob.workspace_id())).await.expect("a caller");
    let owner: Owner = engines[1].enter(there).await.expect("an owner");
    owner.change_role(&founder, Role::Viewer).await.expect("a lower role");
    owner.remove_member(&founder, None).await.expect("removed");
    for engine in &engines {
        assert!(is_refused(engine, &key).await, "the founder's key is valid");
    }
    let refused = owner.remove_member(bob.user_id(), None).await;
    assert!(matches!(refused, Err(Error::Conflict { code: ErrorCode::WorkspaceOwner, .. })), "{refused:?}");
    // A key for an operator who has lost all keys belongs to the new owner.
    let made = engines[0].reset_owner_key(false).await.expect("a key");
    assert_eq!(engines[1].authenticate(&made.key).await.expect("a caller").user_id(), bob.user_id());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rotated_key_and_its_grants_end_on_every_server() {
    let (engines, key) = twins().await;
    let workspace = enter(&engines[0], &key).await.expect("a workspace");
    let made = workspace.writer.create_key(new_key("old", &[Scope::ApiRead]), None).await.expect("a key");
    let secret = made.secret.expect("a secret");
    let mut held = Vec::new();
    for engine in &engines {
        let reader = enter_reader(engine, &secret).await;
        held.push(reader.grant());
    }
    let successor = workspace.writer.rotate_key(&made.record.id, 500, None).await.expect("a successor");
    for engine in &engines {
        enter_reader(engine, successor.secret.as_deref().expect("a secret")).await;
    }
    // The grants have no expiry time, because the key had none when the grants were registered.
    for mut grant in held {
        grant.ended().await;
    }
    for engine in &engines {
        assert!(is_refused(engine, &secret).await);
    }
}

async fn enter_reader(engine: &Arc<Engine>, secret: &str) -> Reader {
    engine.enter(engine.authenticate(secret).await.expect("a caller")).await.expect("a right")
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_changes_of_different_fields_of_a_plan_are_all_kept() {
    let (engines, key) = twins().await;
    let caller = engines[0].authenticate(&key).await.expect("a caller");
    let user = caller.user_id().to_owned();
    let here: Administrator = engines[0].enter(caller.clone()).await.expect("a right");
    let there: Administrator = engines[1].enter(caller).await.expect("a right");
    for round in 0..8 {
        let limits = PlanLimits { projects: Some(round), ..PlanLimits::default() };
        let status = if round % 2 == 0 { PlanStatus::Canceled } else { PlanStatus::Active };
        let (one, other) = tokio::join!(
            here.set_plan(&user, NewPlan { limits: Some(limits), ..NewPlan::default() }),
            there.set_plan(&user, NewPlan { status: Some(status), ..NewPlan::default() }),
        );
        one.expect("a plan");
        other.expect("a plan");
        // A change without fields returns the plan in the store.
        let plan = here.set_plan(&user, NewPlan::default()).await.expect("a plan");
        assert_eq!((plan.limits, plan.status), (limits, status));
    }
}
