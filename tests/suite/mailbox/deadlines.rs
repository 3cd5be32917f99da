//! Tests the ends of leases and deferrals, and renewals of leases.

use serde_json::json;

use super::board::{DRAFTER, HELPER, act, bring, get, post, request, server, task};

const SECOND: i64 = 1_000;

#[tokio::test(flavor = "multi_thread")]
async fn an_expired_lease_releases_the_task_and_the_fifth_expiry_fails_the_task() {
    let server = server().await;
    let id = task(&server, DRAFTER).await;
    for attempt in 1..=5 {
        let claimed = act(&server, &id, "claim", json!({"agent_id": DRAFTER, "lease_seconds": 10})).await;
        assert_eq!((&claimed["status"], &claimed["attempt"]), (&json!("in_progress"), &json!(attempt)));
        server.pass(10 * SECOND - 1).await.expect("the timers");
        assert_eq!(get(&server, &format!("/mailbox/{id}")).await.1["status"], "in_progress");
        server.pass(1).await.expect("the timers");
        let (_, task) = get(&server, &format!("/mailbox/{id}")).await;
        let (status, event) = if attempt < 5 { ("pending", "task.expired") } else { ("failed", "task.failed") };
        assert_eq!(task["status"], status, "{task}");
        let last = task["timeline"].as_array().and_then(|events| events.last()).expect("an event");
        assert_eq!(last["event_type"], event);
        assert_eq!((&task["claimed_by"], &task["unread"]), (&json!(null), &json!(true)));
    }
    let (_, task) = get(&server, &format!("/mailbox/{id}")).await;
    assert_eq!((&task["resolution"]["action"], &task["resolution"]["by"]), (&json!("fail"), &json!("system")));
}

#[tokio::test(flavor = "multi_thread")]
async fn renewals_extend_only_the_leases_of_the_given_agents_and_append_no_event() {
    let server = server().await;
    let workspace = server.workspace("owner").await.expect("the workspace");
    let (held, other) = (task(&server, DRAFTER).await, task(&server, HELPER).await);
    act(&server, &held, "claim", json!({"agent_id": DRAFTER, "lease_seconds": 30})).await;
    act(&server, &other, "claim", json!({"agent_id": HELPER, "lease_seconds": 30})).await;
    let position = workspace.reader.position();
    for _ in 0..4 {
        server.pass(20 * SECOND).await.expect("the timers");
        let renewed = workspace.writer.renew_leases(vec![DRAFTER.into()]).await.expect("renewed");
        assert_eq!(renewed.len(), 1);
        assert!(renewed.iter().all(|lease| *lease.task_id == *held && lease.until.is_some()), "{renewed:?}");
    }
    // Another claim also extends the lease, by the time in the claim.
    let again = act(&server, &held, "claim", json!({"agent_id": DRAFTER, "lease_seconds": 600})).await;
    assert_eq!(again["lease"]["expires_at"], "2026-01-01T00:11:20.000Z");
    assert_eq!(workspace.reader.position(), position + 1, "the end of one lease is the only new event");
    assert_eq!(get(&server, &format!("/mailbox/{other}")).await.1["status"], "pending");
    server.pass(599 * SECOND).await.expect("the timers");
    assert_eq!(get(&server, &format!("/mailbox/{held}")).await.1["status"], "in_progress");
    server.pass(SECOND).await.expect("the timers");
    assert_eq!(get(&server, &format!("/mailbox/{held}")).await.1["status"], "pending");
    let renewed = workspace.writer.renew_leases(vec![DRAFTER.into()]).await.expect("renewed");
    assert_eq!(renewed, []);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_heartbeat_keeps_only_the_claims_of_its_worker() {
    let server = server().await;
    let reader = server.key("reader").expect("a key").to_owned();
    let new = json!({"name": "worker", "scopes": ["api:read", "api:write"], "agent_ids": [DRAFTER]});
    let (_, made) = post(&server, "/keys", &new).await;
    let worker = made["key"].as_str().expect("a key").to_owned();
    let owner = server.key("owner").expect("a key").to_owned();
    let (held, dead) = (task(&server, DRAFTER).await, task(&server, DRAFTER).await);
    let claim = json!({"agent_id": DRAFTER, "lease_seconds": 30});
    request(&server, &worker, &format!("/mailbox/{held}/claim"), Some(&claim)).await;
    request(&server, &owner, &format!("/mailbox/{dead}/claim"), Some(&claim)).await;
    let beat = json!({"agent_ids": [DRAFTER]});
    for _ in 0..3 {
        server.pass(20 * SECOND).await.expect("the timers");
        let (status, read) = request(&server, &reader, "/agents/heartbeat", Some(&beat)).await;
        assert_eq!((status, &read["renewed"]), (200, &json!(0)), "{read}");
        let (_, renewed) = request(&server, &worker, "/agents/heartbeat", Some(&beat)).await;
        assert_eq!(renewed["renewed"], 1, "{renewed}");
    }
    assert_eq!(get(&server, &format!("/mailbox/{dead}")).await.1["status"], "pending");
    assert_eq!(get(&server, &format!("/mailbox/{held}")).await.1["status"], "in_progress");
    server.pass(30 * SECOND).await.expect("the timers");
    assert_eq!(get(&server, &format!("/mailbox/{held}")).await.1["status"], "pending");
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_restart_timers_are_idle_until_a_renewed_lease_expires() {
    let server = server().await;
    let workspace = server.workspace("owner").await.expect("the workspace");
    let id = task(&server, DRAFTER).await;
    act(&server, &id, "claim", json!({"agent_id": DRAFTER, "lease_seconds": 30})).await;
    server.pass(20 * SECOND).await.expect("the timers");
    workspace.writer.renew_leases(vec![DRAFTER.into()]).await.expect("renewed");
    // The expiry time of the lease in the log has passed, but not the expiry time of the renewal.
    server.pass(20 * SECOND).await.expect("the timers");
    drop(workspace);
    server.engine.close().await;

    let _workspace = server.workspace("owner").await.expect("the workspace, opened again");
    server.pass(1).await.expect("the timers");
    let before = server.clock.read_count();
    for _ in 0..2_000 {
        tokio::task::yield_now().await;
    }
    let reads = server.clock.read_count() - before;
    assert!(reads < 100, "the idle timers read the clock {reads} times");
    assert_eq!(get(&server, &format!("/mailbox/{id}")).await.1["status"], "in_progress");
    server.pass(10 * SECOND).await.expect("the timers");
    assert_eq!(get(&server, &format!("/mailbox/{id}")).await.1["status"], "pending");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deferred_task_regains_its_former_status_when_the_deferral_ends() {
    let server = server().await;
    for row in ["pending", "review", "input_required", "awaiting_reply"] {
        let id = task(&server, DRAFTER).await;
        bring(&server, &id, DRAFTER, row).await;
        let deferred = act(&server, &id, "defer", json!({"for_seconds": 60, "reason": "later"})).await;
        assert_eq!((&deferred["status"], &deferred["waiting_on"]), (&json!("deferred"), &json!("none")));
        act(&server, &id, "defer", json!({"for_seconds": 120})).await;
        server.pass(119 * SECOND).await.expect("the timers");
        assert_eq!(get(&server, &format!("/mailbox/{id}")).await.1["status"], "deferred");
        server.pass(SECOND).await.expect("the timers");
        let (_, task) = get(&server, &format!("/mailbox/{id}")).await;
        assert_eq!((&task["status"], &task["unread"]), (&json!(row), &json!(true)), "{row}");
        assert_eq!(
            (&task["deferred_until"], &task["input_request"].is_null()),
            (&json!(null), &(row != "input_required"))
        );
    }
    let id = task(&server, DRAFTER).await;
    act(&server, &id, "defer", json!({"reason": "later"})).await;
    server.pass(1_000_000 * SECOND).await.expect("the timers");
    assert_eq!(get(&server, &format!("/mailbox/{id}")).await.1["status"], "deferred");
}

#[tokio::test(flavor = "multi_thread")]
async fn work_under_an_ended_claim_is_rejected() {
    let server = server().await;
    let id = task(&server, DRAFTER).await;
    let first = act(&server, &id, "claim", json!({"agent_id": DRAFTER, "lease_seconds": 10})).await;
    server.pass(10 * SECOND).await.expect("the timers");
    let late = json!({"agent_id": DRAFTER, "claim": first["lease"]["claim"], "text": "late"});
    assert_eq!(post(&server, &format!("/mailbox/{id}/complete"), &late).await.1["code"], "task_state_conflict");
    let second = act(&server, &id, "claim", json!({"agent_id": DRAFTER})).await;
    assert_ne!(first["lease"]["claim"], second["lease"]["claim"]);
    let release = json!({"agent_id": DRAFTER, "claim": first["lease"]["claim"]});
    for (path, body) in [("artifacts", &late), ("complete", &late), ("release", &release)] {
        let (status, refused) = post(&server, &format!("/mailbox/{id}/{path}"), body).await;
        assert_eq!((status, &refused["code"]), (409, &json!("not_lease_holder")), "{path}: {refused}");
    }
    let now = json!({"agent_id": DRAFTER, "claim": second["lease"]["claim"]});
    assert_eq!(act(&server, &id, "complete", now).await["status"], "review");
}
