//! Tests two concurrent actions on one task, on one server and on two servers: exactly one action succeeds, and the log
//! contains the event of this action. No approval overwrites a change by a person. If the server does not allow users
//! to decide on their own output, no user approves their own output.

use std::sync::Arc;

use foldwork_engine::clock::Clock;
use foldwork_engine::error::ErrorCode;
use foldwork_engine::model::access::{Role, Scope};
use foldwork_engine::model::event::{Event, StreamExpectation};
use foldwork_engine::model::facts::Assignee;
use foldwork_engine::model::task::content::{ArtifactDraft, Effect, text_part};
use foldwork_engine::model::value::Object;
use foldwork_engine::workspace::articles::{ArticleChange, NewArticle};
use foldwork_engine::workspace::events::{EventLimit, ReadDirection};
use foldwork_engine::workspace::keys::NewKey;
use foldwork_engine::workspace::mailbox::tasks::NewTask;
use foldwork_engine::workspace::mailbox::{AgentAction, ApprovalOverrides, Claimant, TaskCommand};
use foldwork_engine::{AccessSettings, Engine, EngineSettings, Error, FetchKeys, Store, Writer};
use foldwork_tests::agents::agents;
use foldwork_tests::clock::FixedClock;
use foldwork_tests::handles::{Handles, enter, join};
use foldwork_tests::issuer::{Provider, SECRET, secret_issuer, signed_with};
use foldwork_tests::server::claims_of;

use strum::VariantArray;

use super::board::{AGENTS, DRAFTER, HELPER};

/// The number of races of each test on one server. Each test then runs as many races on two servers.
const ROUNDS: usize = 200;
const LEASE_S: i64 = 10;

/// Two clients of one workspace, on one server or on two servers with one store.
struct Pair {
    clock: Arc<FixedClock>,
    engines: Vec<Arc<Engine>>,
    clients: [Handles; 2],
}

/// The rule for decisions of a key on output that the same key has delivered.
#[derive(Clone, Copy)]
enum OwnDeliveries {
    /// A key may decide on output that the key has delivered. In races under this rule, the same key creates the tasks,
    /// delivers the output and approves the output.
    Decided,
    Refused,
}

async fn engine(store: Store, clock: &Arc<FixedClock>, own: OwnDeliveries) -> Arc<Engine> {
    let settings =
        EngineSettings { own_deliveries: matches!(own, OwnDeliveries::Decided), ..EngineSettings::default() };
    let plugins = agents(&AGENTS.map(str::to_owned)).expect("agents");
    let engine = Engine::open(store, clock.clone() as Arc<dyn Clock>, settings, plugins).await.expect("an engine");
    let access = AccessSettings { issuers: vec![secret_issuer()], ..AccessSettings::default() };
    let provider: Arc<dyn FetchKeys> = Arc::new(Provider::default());
    engine.configure_access(access, &provider).expect("valid settings");
    engine
}

impl Pair {
    async fn of_one_server(own: OwnDeliveries) -> Pair {
        let clock = Arc::new(FixedClock::default());
        let one = engine(Store::connect("mem://").await.expect("a store"), &clock, own).await;
        let key = one.first_start(None).await.expect("a start").expect("an empty store").key;
        let client = enter(&one, &key).await.expect("a workspace");
        Pair { clock, clients: [client.clone(), client], engines: vec![one] }
    }

    async fn of_two_servers(own: OwnDeliveries) -> Pair {
        let clock = Arc::new(FixedClock::default());
        let store = Store::connect("mem://").await.expect("a store");
        let (one, two) = (engine(store.share(), &clock, own).await, engine(store.share(), &clock, own).await);
        let key = one.first_start(None).await.expect("a start").expect("an empty store").key;
        let clients = [enter(&one, &key).await.expect("a workspace"), enter(&two, &key).await.expect("a workspace")];
        Pair { clock, clients, engines: vec![one, two] }
    }

    /// Returns the clients of a new key, one on each server.
    async fn of_new_key(&self) -> [Handles; 2] {
        let new = NewKey { name: "a key".into(), scopes: Scope::VARIANTS.to_vec(), ..NewKey::default() };
        let secret = again(|| self.clients[0].writer.create_key(new.clone(), None)).await.expect("a key").secret;
        self.of_secret(&secret.expect("a secret")).await
    }

    /// Returns the clients of another user's key, one on each server.
    async fn of_another_user(&self) -> [Handles; 2] {
        let (token, owner) = (signed_with(SECRET, &claims_of("bob")), &self.clients[0].owner);
        let bob = join(&self.engines[0], owner, &token, "bob@example.com", Role::Owner).await.expect("joined");
        let writer: Writer = self.engines[0].enter(bob).await.expect("a right");
        let new = NewKey { name: "bob's".into(), scopes: Scope::VARIANTS.to_vec(), ..NewKey::default() };
        let secret = again(|| writer.create_key(new.clone(), None)).await.expect("a key").secret;
        self.of_secret(&secret.expect("a secret")).await
    }

    async fn of_secret(&self, secret: &str) -> [Handles; 2] {
        let (first, last) = (&self.engines[0], &self.engines[self.engines.len() - 1]);
        [enter(first, secret).await.expect("a workspace"), enter(last, secret).await.expect("a workspace")]
    }

    /// Creates an article, and a task whose approval changes the article. Returns the ids of the task and the article.
    async fn task(&self, round: usize, assignee: Option<Assignee>) -> (String, String) {
        let writer = &self.clients[round % 2].writer;
        let new = NewArticle { title: format!("Article {round}"), ..NewArticle::default() };
        let article = again(|| writer.create_article(new.clone())).await.expect("an article").0.id.to_string();
        let artifacts = vec![draft(&article)];
        let new = NewTask { title: "Draft it".into(), assignee, artifacts, ..NewTask::default() };
        (again(|| writer.create_task(new.clone())).await.expect("a task").0.id.to_string(), article)
    }

    async fn stream(&self, id: &str) -> Vec<Event> {
        let limit = EventLimit::events(100);
        self.clients[0].reader.stream(id, None, limit, ReadDirection::Forward).await.expect("a stream").items
    }

    /// Returns the number of events of these types in a stream.
    async fn count(&self, id: &str, types: &[&str]) -> usize {
        self.stream(id).await.iter().filter(|event| types.contains(&&*event.event_type)).count()
    }
}

/// Returns an artifact whose approval changes an article.
fn draft(article: &str) -> ArtifactDraft {
    let effect = Effect {
        aggregate_id: Some(article.to_owned()),
        event_type: "article.updated".into(),
        payload: Object::from_iter([("body", "as it was drafted")]),
        expected_version: None,
    };
    ArtifactDraft {
        name: Some("draft".into()),
        parts: Some(vec![text_part("as it was drafted")]),
        effect: Some(effect),
        ..ArtifactDraft::default()
    }
}

const APPROVE: TaskCommand =
    TaskCommand::Approve { comment: None, accepted: ApprovalOverrides { stale: false, superseded: false } };

/// Performs an action and retries while the store is unavailable.
async fn again<T, F: Future<Output = Result<T, Error>>>(mut act: impl FnMut() -> F) -> Result<T, Error> {
    loop {
        match act().await {
            Err(Error::Unavailable(_)) => tokio::task::yield_now().await,
            other => return other,
        }
    }
}

async fn act(client: Handles, id: String, command: TaskCommand) -> Result<(), Error> {
    again(|| client.writer.act_on_task(&id, command.clone(), StreamExpectation::Any)).await.map(drop)
}

async fn work(client: Handles, id: String, agent: &str, work: AgentAction) -> Result<(), Error> {
    let worker = || Claimant::new(Some(agent.to_owned()), None);
    let writer = client.writer.as_agent_writer();
    again(|| writer.work_on_task(&id, worker(), work.clone(), StreamExpectation::Any, None)).await.map(drop)
}

/// Checks that exactly one of two actions succeeded and the other was rejected because of the task's status. Returns
/// the index of the winner.
fn one_won(outcomes: [Result<(), Error>; 2], round: usize) -> usize {
    let won: Vec<usize> = (0..2).filter(|place| outcomes[*place].is_ok()).collect();
    assert_eq!(won.len(), 1, "round {round}: {outcomes:?}");
    for refused in outcomes.into_iter().filter_map(Result::err) {
        assert!(
            matches!(refused, Error::Conflict { code: ErrorCode::TaskStateConflict, .. }),
            "round {round}: {refused}"
        );
    }
    won[0]
}

async fn approve_against(pair: &Pair, other: TaskCommand) {
    let command = |place: usize| {
        if place == 0 { APPROVE } else { other.clone() }
    };
    let mut wins = [0, 0];
    for round in 0..ROUNDS {
        let (task, article) = pair.task(round, None).await;
        // Alternates the action that starts first.
        let order = if round % 2 == 0 { [0, 1] } else { [1, 0] };
        let [first, second] =
            order.map(|place| tokio::spawn(act(pair.clients[place].clone(), task.clone(), command(place))));
        let mut outcomes = [first.await.expect("no panic"), second.await.expect("no panic")];
        if order == [1, 0] {
            outcomes.swap(0, 1);
        }
        let winner = one_won(outcomes, round);
        wins[winner] += 1;
        assert_eq!(pair.count(&task, &["task.approved", "task.rejected"]).await, 1, "round {round}");
        let effects = usize::from(matches!(command(winner), TaskCommand::Approve { .. }));
        assert_eq!(pair.count(&article, &["article.updated"]).await, effects, "round {round}");
    }
    assert_eq!(wins[0] + wins[1], ROUNDS);
}

async fn claim_against_claim(pair: &Pair) {
    for round in 0..ROUNDS {
        let (task, _) = pair.task(round, None).await;
        let claims = [DRAFTER, HELPER].into_iter().enumerate().map(|(place, agent)| {
            let (client, task) = (pair.clients[place].clone(), task.clone());
            tokio::spawn(async move {
                work(client, task, agent, AgentAction::Claim { seconds: LEASE_S, instance: None }).await
            })
        });
        let [first, second]: [_; 2] = claims.collect::<Vec<_>>().try_into().expect("two claims");
        let winner = one_won([first.await.expect("no panic"), second.await.expect("no panic")], round);
        assert_eq!(pair.count(&task, &["task.claimed"]).await, 1);
        let found = pair.clients[1].reader.task(&task).await.expect("the task");
        let holder = found.state.get("claimed_by").and_then(|agent| agent.as_str());
        assert_eq!(holder, Some([DRAFTER, HELPER][winner]));
    }
}

async fn complete_against_the_end_of_the_lease(pair: &Pair) {
    let mut completed = 0;
    for round in 0..ROUNDS {
        let (task, article) = pair.task(round, Some(Assignee::Agent(DRAFTER.into()))).await;
        let client = pair.clients[round % 2].clone();
        work(client.clone(), task.clone(), DRAFTER, AgentAction::Claim { seconds: LEASE_S, instance: None })
            .await
            .expect("claimed");
        let complete = AgentAction::Complete { drafts: Vec::new(), message: None, unreviewed: false };
        let completing = tokio::spawn(work(client, task.clone(), DRAFTER, complete));
        if round % 3 == 0 {
            tokio::task::yield_now().await;
        }
        pair.clock.advance(LEASE_S * 1_000);
        let outcome = completing.await.expect("no panic");
        for client in &pair.clients {
            // Reads the task on each server, so that each server applies the events of the other server.
            client.reader.task(&task).await.expect("the task");
        }
        for engine in &pair.engines {
            engine.deadlines_passed().await;
        }
        let found = pair.clients[0].reader.task(&task).await.expect("the task");
        let status = found.state.get("status").and_then(|status| status.as_str()).map(str::to_owned);
        let events = [pair.count(&task, &["task.delivered"]).await, pair.count(&task, &["task.expired"]).await];
        match outcome {
            Ok(()) => {
                completed += 1;
                assert_eq!((status.as_deref(), events), (Some("review"), [1, 0]), "round {round}");
            }
            Err(error) => {
                let is_refused = matches!(error, Error::Conflict { code: ErrorCode::TaskStateConflict, .. });
                assert!(is_refused, "round {round}: {error}");
                assert_eq!((status.as_deref(), events), (Some("pending"), [0, 1]), "round {round}");
            }
        }
        assert_eq!(pair.count(&article, &["article.updated"]).await, 0);
    }
    assert!(completed > 0, "no agent completed its task in time");
}

/// Approves a task while a person changes the task's article. Either the approval comes first, or the approval is
/// stale.
async fn approve_against_a_change(pair: &Pair) {
    for round in 0..ROUNDS {
        let (task, article) = pair.task(round, None).await;
        let change = |client: Handles, id: String| async move {
            let change = ArticleChange { body: Some("by a person".into()), ..ArticleChange::default() };
            again(|| client.writer.change_article(&id, change.clone(), StreamExpectation::Any)).await.map(drop)
        };
        let [approver, person] = pair.clients.clone();
        // Alternates the action that starts first.
        let (approved, changed) = match round % 2 {
            0 => {
                let approving = tokio::spawn(act(approver, task.clone(), APPROVE));
                let changing = tokio::spawn(change(person, article.clone()));
                (approving.await.expect("no panic"), changing.await.expect("no panic"))
            }
            _ => {
                let changing = tokio::spawn(change(person, article.clone()));
                let approving = tokio::spawn(act(approver, task.clone(), APPROVE));
                (approving.await.expect("no panic"), changing.await.expect("no panic"))
            }
        };
        changed.expect("a person is not refused");
        let updates = match approved {
            Ok(()) => 2,
            Err(error) => {
                let is_stale = matches!(error, Error::Conflict { code: ErrorCode::Stale, .. });
                assert!(is_stale, "round {round}: {error}");
                1
            }
        };
        assert_eq!(pair.count(&task, &["task.approved"]).await, updates - 1, "round {round}");
        let stream = pair.stream(&article).await;
        assert_eq!(stream.len(), 1 + updates, "round {round}");
        let body = stream.last().and_then(|event| event.payload.get("body")).and_then(|body| body.as_str());
        assert_eq!(body, Some("by a person"), "round {round}");
    }
}

/// Approves a task twice with the key that delivers the task's output. The first approval runs at the same time as the
/// delivery. The second approval runs at the same time as an approval by another user. Only the other user succeeds.
async fn approve_own_output(pair: &Pair) {
    let (worker, other) = (pair.of_new_key().await, pair.of_another_user().await);
    let refused = |outcome: Result<(), Error>, round: usize| {
        let is_refused = matches!(
            outcome,
            Err(Error::Forbidden { code: ErrorCode::OwnDelivery, .. }
                | Error::Conflict { code: ErrorCode::TaskStateConflict, .. })
        );
        assert!(is_refused, "round {round}: {outcome:?}");
    };
    for round in 0..ROUNDS {
        let writer = &pair.clients[round % 2].writer;
        let new = NewArticle { title: format!("Article {round}"), ..NewArticle::default() };
        let article = again(|| writer.create_article(new.clone())).await.expect("an article").0.id.to_string();
        let assignee = Some(Assignee::Agent(DRAFTER.into()));
        let new = NewTask { title: "Draft it".into(), assignee, ..NewTask::default() };
        let task = again(|| writer.create_task(new.clone())).await.expect("a task").0.id.to_string();
        let claim = AgentAction::Claim { seconds: LEASE_S, instance: None };
        work(worker[0].clone(), task.clone(), DRAFTER, claim).await.expect("claimed");
        let complete = AgentAction::Complete { drafts: vec![draft(&article)], message: None, unreviewed: false };
        let completing = tokio::spawn(work(worker[0].clone(), task.clone(), DRAFTER, complete));
        let approving = tokio::spawn(act(worker[1].clone(), task.clone(), APPROVE));
        completing.await.expect("no panic").expect("delivered");
        refused(approving.await.expect("no panic"), round);
        let own = tokio::spawn(act(worker[round % 2].clone(), task.clone(), APPROVE));
        let others = tokio::spawn(act(other[1 - round % 2].clone(), task.clone(), APPROVE));
        refused(own.await.expect("no panic"), round);
        others.await.expect("no panic").expect("another user approves");
        assert_eq!(pair.count(&task, &["task.approved"]).await, 1, "round {round}");
        assert_eq!(pair.count(&article, &["article.updated"]).await, 1, "round {round}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn only_one_of_two_concurrent_approvals_succeeds() {
    approve_against(&Pair::of_one_server(OwnDeliveries::Decided).await, APPROVE).await;
    approve_against(&Pair::of_two_servers(OwnDeliveries::Decided).await, APPROVE).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn either_an_approval_or_a_concurrent_rejection_succeeds() {
    approve_against(&Pair::of_one_server(OwnDeliveries::Decided).await, TaskCommand::Reject { reason: None }).await;
    approve_against(&Pair::of_two_servers(OwnDeliveries::Decided).await, TaskCommand::Reject { reason: None }).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_one_of_two_concurrent_claims_succeeds() {
    claim_against_claim(&Pair::of_one_server(OwnDeliveries::Decided).await).await;
    claim_against_claim(&Pair::of_two_servers(OwnDeliveries::Decided).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn either_a_completion_or_the_concurrent_end_of_the_lease_takes_effect() {
    complete_against_the_end_of_the_lease(&Pair::of_one_server(OwnDeliveries::Decided).await).await;
    complete_against_the_end_of_the_lease(&Pair::of_two_servers(OwnDeliveries::Decided).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_approval_overwrites_no_change_of_a_person() {
    approve_against_a_change(&Pair::of_one_server(OwnDeliveries::Decided).await).await;
    approve_against_a_change(&Pair::of_two_servers(OwnDeliveries::Decided).await).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn users_cannot_approve_their_own_output() {
    approve_own_output(&Pair::of_one_server(OwnDeliveries::Refused).await).await;
    approve_own_output(&Pair::of_two_servers(OwnDeliveries::Refused).await).await;
}
