//! Tests the rights of callers to act on tasks: every kind of caller performs every action, and
//! `tests/mailbox/deciders.md` contains the expected results.

use std::fmt::Write as _;
use std::ops::Range;

use foldwork_engine::clock::Clock;
use foldwork_engine::model::access::Role;
use foldwork_engine::model::task::{Act, Action, Verb};
use foldwork_tests::expectation::{all_well, compare, root};
use foldwork_tests::server::Server;
use futures_util::future::join_all;
use serde_json::{Value, json};
use strum::VariantArray;

use super::board::{AGENTS, DRAFTER, HELPER, delete, post_in};
use super::people::{Made, first_workspace, joined, key_of, other_session};

const INTRODUCTION: &str = "\
The actions that callers may take on a task. Each row is a kind of caller, and the credential that has delivered the
task's output. Each column is an action in a status in which the action is possible. Each cell is `yes`, or the status
and the code of the error response. The test `tests/suite/mailbox/deciders.rs` performs the action of every cell.
`UPDATE=1` writes this file, so a change of the rights of a caller is a change of this file.

The output has an effect. The deliverer has created the task, unless the deliverer is a key that is bound to the agent:
then the owner of the workspace has created the task. `mailbox.own_deliveries` is off. Every owner of the workspace may
cancel every task.
";

/// The explanation of the columns with the actions of agents.
const WORK: &str = "
`claim*` is the claim of a task that is assigned to nobody. `artifact*` is a new version of the output, and `complete*`
has `review: false`. Callers work for the agent that the task is assigned to, except for the key that is bound to another
agent.
";

/// The status of a task when a caller performs an action. In each status, the task has output.
#[derive(Clone, Copy)]
enum Stage {
    /// A task in review.
    Review,
    /// A task that the agent has claimed.
    Held,
    /// A task about which the agent has asked a question.
    Asked,
    Failed,
    /// A task that waits for the agent.
    Assigned,
    /// A task that is assigned to nobody.
    Open,
}

/// An action, and the status in which callers perform it.
struct Column {
    name: &'static str,
    stage: Stage,
    /// The body of the request. Actions of agents also have an `agent_id`.
    body: Value,
    is_of_agent: bool,
}

impl Column {
    fn path(&self) -> String {
        match self.name.trim_end_matches('*') {
            "message" => "messages".into(),
            "artifact" => "artifacts".into(),
            name => name.replace('_', "-"),
        }
    }
}

fn decisions() -> Vec<Column> {
    let column = |name, stage, body| Column { name, stage, body, is_of_agent: false };
    let message = || json!({"message": "why?"});
    vec![
        column("approve", Stage::Review, json!({})),
        column("edit", Stage::Review, json!({"text": "better"})),
        column("reject", Stage::Review, json!({})),
        column("defer", Stage::Review, json!({"for_seconds": 600})),
        column("ask", Stage::Review, message()),
        column("request_changes", Stage::Review, message()),
        column("answer", Stage::Asked, message()),
    ]
}

fn other_actions() -> Vec<Column> {
    let column = |name, stage, body| Column { name, stage, body, is_of_agent: false };
    vec![
        column("assign", Stage::Review, json!({"assignee_type": "agent", "assignee_id": HELPER})),
        column("retry", Stage::Failed, json!({})),
        column("read", Stage::Review, json!({})),
        column("unread", Stage::Held, json!({})),
        column("cancel", Stage::Review, json!({})),
    ]
}

fn work() -> Vec<Column> {
    let column = |name, stage, body| Column { name, stage, body, is_of_agent: true };
    vec![
        column("claim", Stage::Assigned, json!({})),
        column("claim*", Stage::Open, json!({})),
        column("message", Stage::Held, json!({"text": "so it is"})),
        column("artifact", Stage::Held, json!({"name": "more", "text": "text"})),
        column("artifact*", Stage::Held, json!({"name": "note", "text": "other"})),
        column("complete", Stage::Held, json!({})),
        column("complete*", Stage::Held, json!({"review": false})),
        column("request_input", Stage::Held, json!({"message": "which?"})),
        column("fail", Stage::Held, json!({"error": "broken"})),
        column("release", Stage::Held, json!({})),
    ]
}

/// A kind of caller, and the credential that has delivered the output of the tasks.
struct Row {
    caller: &'static str,
    role: Role,
    delivered_by: &'static str,
    bearer: String,
    /// The agent for which the caller works.
    agent: &'static str,
    deliverer: String,
    /// Whether the deliverer is bound to the agent.
    by_agent: bool,
    /// The id of the key that the caller revokes after the delivery.
    revoked: Option<String>,
    is_own: bool,
}

impl Row {
    fn is_bound(&self) -> bool {
        self.caller.contains("bound")
    }
}

/// The server with its first workspace, the key of the owner, and the key of another user. The other user is the caller
/// in no row of the table.
struct Cast {
    server: Server,
    workspace: String,
    owner: String,
    other: String,
}

impl Cast {
    async fn start() -> Cast {
        let server = Server::start_with_others_deciding(&AGENTS.map(str::to_owned)).await.expect("a server");
        let workspace = first_workspace(&server).await;
        joined(&server, "dan", Role::Editor).await;
        let other = key_of(&server, &workspace, server.key("dan").expect("a token"), &json!({})).await.secret;
        let owner = server.key("owner").expect("the owner").to_owned();
        Cast { server, workspace, owner, other }
    }

    async fn key(&self, bearer: &str, more: Value) -> Made {
        key_of(&self.server, &self.workspace, bearer, &more).await
    }

    async fn post(&self, bearer: &str, path: &str, body: &Value) -> (u16, Value) {
        post_in(&self.server, &self.workspace, bearer, path, body).await
    }

    async fn done(&self, bearer: &str, path: &str, body: &Value) -> Value {
        let (status, answer) = self.post(bearer, path, body).await;
        assert!((200..300).contains(&status), "{path} {body}: {status} {answer}");
        answer
    }

    /// Adds a member with a role. Returns the rows of the table in which this member is the caller.
    async fn rows(&self, name: &str, role: Role) -> Vec<Row> {
        let caller = joined(&self.server, name, role.max(Role::Editor)).await;
        let session = self.server.key(name).expect("a token").to_owned();
        let key = self.key(&session, json!({})).await;
        let row = |caller, bearer: &str, delivered_by, deliverer: &str| Row {
            caller,
            role,
            delivered_by,
            bearer: bearer.to_owned(),
            agent: DRAFTER,
            deliverer: deliverer.to_owned(),
            by_agent: false,
            revoked: None,
            is_own: true,
        };
        let others = "another user";
        let mut rows = vec![
            Row { is_own: false, ..row("key", &key.secret, others, &self.other) },
            Row { is_own: false, ..row("session", &session, others, &self.other) },
        ];
        if role == Role::Viewer {
            let owner = self.server.workspace("owner").await.expect("the workspace").owner;
            owner.change_role(caller.user_id(), role).await.map(drop).expect("a viewer");
            return rows;
        }
        let agent = self.key(&session, json!({"agent_ids": [DRAFTER]})).await.secret;
        let helper = self.key(&session, json!({"agent_ids": [HELPER]})).await.secret;
        let bound = |caller, bearer: &str, delivered_by, deliverer: &str, by_agent| Row {
            is_own: false,
            by_agent,
            ..row(caller, bearer, delivered_by, deliverer)
        };
        rows.extend([
            bound("key bound to the agent", &agent, others, &self.other, false),
            bound("key bound to the agent", &agent, "the same key", &agent, true),
            Row { agent: HELPER, ..bound("key bound to another agent", &helper, others, &self.other, false) },
            Row { agent: HELPER, ..bound("key bound to another agent", &helper, "the agent's key", &agent, true) },
            bound("key", &key.secret, "the user's key bound to the agent", &agent, true),
            bound("session", &session, "the user's key bound to the agent", &agent, true),
        ]);
        let (child, heir_of) = (self.key(&key.secret, json!({})).await, self.key(&session, json!({})).await);
        let heir = self.key(&heir_of.secret, json!({})).await;
        let sibling = self.key(&other_session(name), json!({})).await;
        rows.extend([
            row("key", &key.secret, "the same key", &key.secret),
            row("key", &key.secret, "a key that it has created", &child.secret),
            row("key", &child.secret, "the key that created it", &key.secret),
            Row {
                revoked: Some(heir_of.id.clone()),
                ..row("key", &heir.secret, "the key that created it, revoked since", &heir_of.secret)
            },
            row("key", &key.secret, "another key of the user", &sibling.secret),
            row("key", &key.secret, "a session of the user", &other_session(name)),
            row("session", &session, "the same session", &session),
            row("session", &session, "another session of the user", &other_session(name)),
            row("session", &session, "a key of the user", &sibling.secret),
        ]);
        rows
    }

    /// Creates a task with output of the row's deliverer, and brings the task into a status.
    async fn task(&self, row: &Row, stage: Stage, metadata: &Value) -> String {
        let by = &row.deliverer;
        let about = self.server.clock.new_id();
        let artifact = json!({"name": "note", "text": "brief", "effect": {
            "aggregate_id": format!("article-{about}"), "event_type": "article.created",
            "payload": {"title": "brief"}}});
        let mut new = json!({"title": "Draft it", "assignee_type": "agent", "assignee_id": DRAFTER,
            "metadata": metadata});
        if !row.by_agent {
            new["artifacts"] = json!([artifact]);
        }
        let creator = if row.by_agent { &self.owner } else { by };
        let id = self.done(creator, "/mailbox", &new).await["id"].as_str().expect("an id").to_owned();
        let path = |verb: &str| format!("/mailbox/{id}/{verb}");
        self.done(by, &path("claim"), &json!({"agent_id": DRAFTER})).await;
        if row.by_agent {
            self.done(by, &path("artifacts"), &artifact).await;
        }
        let (verb, body) = match stage {
            Stage::Held => return id,
            Stage::Review => ("complete", json!({})),
            Stage::Asked => ("request-input", json!({"message": "which?"})),
            Stage::Failed => ("fail", json!({"error": "broken"})),
            Stage::Assigned | Stage::Open => ("release", json!({})),
        };
        self.done(by, &path(verb), &body).await;
        if matches!(stage, Stage::Open) {
            self.done(&self.owner, &path("assign"), &json!({"assignee_type": "none"})).await;
        }
        id
    }

    /// Returns the cells of a row. The row's caller performs the action of each column on a separate task.
    async fn cells(&self, row: &Row, columns: &[Column], metadata: &Value) -> Vec<String> {
        let mut tasks = Vec::with_capacity(columns.len());
        for column in columns {
            tasks.push(self.task(row, column.stage, metadata).await);
        }
        if let Some(id) = &row.revoked {
            let (status, answer) = delete(&self.server, &row.bearer, &format!("/keys/{id}")).await;
            assert_eq!(status, 204, "{answer}");
        }
        let mut cells = Vec::with_capacity(columns.len());
        for (column, id) in columns.iter().zip(&tasks) {
            let mut body = column.body.clone();
            if column.is_of_agent {
                body["agent_id"] = json!(row.agent);
            }
            let path = format!("/mailbox/{id}/{}", column.path());
            let (status, answer) = self.post(&row.bearer, &path, &body).await;
            cells.push(match status {
                200..300 => "yes".to_owned(),
                _ => format!("{status} {}", answer["code"].as_str().unwrap_or_default()),
            });
        }
        cells
    }
}

/// Returns a table in Markdown with aligned columns.
fn table(lines: &[Vec<String>]) -> String {
    let count = lines.first().map_or(0, Vec::len);
    let widths: Vec<usize> =
        (0..count).map(|column| lines.iter().map(|line| line[column].len()).max().unwrap_or(0)).collect();
    let mut text = String::new();
    for (number, line) in lines.iter().enumerate() {
        for (cell, width) in line.iter().zip(widths.iter().copied()) {
            write!(text, "| {cell:width$} ").expect("a text");
        }
        text.push_str("|\n");
        if number == 0 {
            widths.iter().for_each(|width| text.push_str(&format!("|{}", "-".repeat(width + 2))));
            text.push_str("|\n");
        }
    }
    text
}

/// Returns the lines of a table: the head, and one line for each row. Each line describes its row in three cells, and
/// then has the cells of the columns in `range`.
fn lines(rows: &[&Row], columns: &[Column], cells: &[Vec<String>], range: Range<usize>) -> Vec<Vec<String>> {
    let names = columns[range.clone()].iter().map(|column| column.name.to_owned());
    let head = ["caller", "role", "output by"].map(str::to_owned).into_iter().chain(names).collect();
    let line = |(row, cells): (&&Row, &Vec<String>)| {
        let first = [row.caller, row.role.name(), row.delivered_by].map(str::to_owned);
        first.into_iter().chain(cells[range.clone()].iter().cloned()).collect()
    };
    std::iter::once(head).chain(rows.iter().zip(cells).map(line)).collect()
}

/// Returns the required text of a cell, or `None` if the cell may have any text. An update of the file must not change
/// a required text.
fn expected(row: &Row, column: &Column) -> Option<&'static str> {
    let is_final = matches!(column.name, "approve" | "edit" | "reject");
    let is_of_others = !row.by_agent || row.agent == HELPER;
    Some(match column.name {
        _ if row.role == Role::Viewer => "403 insufficient_role",
        _ if row.is_bound() && !column.is_of_agent => "403 agent_key",
        _ if row.is_own && is_final => "403 own_delivery",
        _ if is_final => "yes",
        "complete*" if row.agent == DRAFTER => "409 review_required",
        "claim*" if row.is_bound() && is_of_others => "403 others_output",
        "artifact*" if row.is_bound() && row.agent == DRAFTER && is_of_others => "403 not_author",
        _ => return None,
    })
}

/// Returns a message for each cell that does not have its required text.
fn differences(rows: &[&Row], columns: &[Column], cells: &[Vec<String>]) -> Vec<String> {
    let mut wrong = Vec::new();
    for (row, cells) in rows.iter().zip(cells) {
        for (column, cell) in columns.iter().zip(cells) {
            let Some(expected) = expected(row, column).filter(|expected| cell != expected) else { continue };
            let at = format!("{}, {}, output by {}", row.caller, row.role.name(), row.delivered_by);
            wrong.push(format!("{at}, {}: expected {expected}, found {cell}", column.name));
        }
    }
    wrong
}

#[test]
fn the_table_has_a_column_for_every_action_that_a_caller_can_perform() {
    let columns: Vec<Column> = [decisions(), other_actions(), work()].into_iter().flatten().collect();
    let people = Action::VARIANTS.iter().copied().map(Act::Person);
    let is_scripted = |verb: &Verb| matches!(verb, Verb::Deliver | Verb::Decline | Verb::GiveUp);
    let agents = Verb::VARIANTS.iter().copied().filter(|verb| !is_scripted(verb)).map(Act::Agent);
    for act in people.chain(agents) {
        let is_it = |column: &Column| column.name.trim_end_matches('*') == act.name();
        assert!(columns.iter().any(is_it), "no column for {}", act.name());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn actions_of_callers_match_the_table() {
    let cast = Cast::start().await;
    let mut rows = Vec::new();
    for (name, role) in [("ada", Role::Owner), ("bob", Role::Editor), ("cleo", Role::Viewer)] {
        rows.extend(cast.rows(name, role).await);
    }
    let all: Vec<&Row> = rows.iter().collect();
    let columns: Vec<Column> = [decisions(), other_actions(), work()].into_iter().flatten().collect();
    let none = json!({});
    let cells = join_all(all.iter().map(|row| cast.cells(row, &columns, &none))).await;
    let mut failures = differences(&all, &columns, &cells);

    let required = json!({"review": {"required_role": "owner"}});
    let others: Vec<&Row> = rows.iter().filter(|row| !row.is_own).collect();
    let deciding = decisions();
    let restricted = join_all(others.iter().map(|row| cast.cells(row, &deciding, &required))).await;
    for (row, cells) in others.iter().zip(&restricted) {
        if cells.iter().any(|cell| cell == "yes") != (row.role == Role::Owner && !row.is_bound()) {
            failures.push(format!("{}, {}, owner required: {cells:?}", row.caller, row.role.name()));
        }
    }

    let (first, second) = (deciding.len(), deciding.len() + other_actions().len());
    let mut text = INTRODUCTION.to_owned();
    for (heading, range) in
        [("Decisions", 0..first), ("Other actions of people", first..second), ("Work of agents", second..columns.len())]
    {
        write!(text, "\n# {heading}\n\n{}", table(&lines(&all, &columns, &cells, range))).expect("a text");
    }
    text.push_str(WORK);
    let lines = lines(&others, &deciding, &restricted, 0..first);
    write!(text, "\n# Decisions that require the role owner\n\n{}", table(&lines)).expect("a text");
    failures.extend(compare(&root().join("tests/mailbox/deciders.md"), &text).err());
    all_well(failures);
}
