//! Measures the mailbox with many tasks in memory: lists by each filter, on the first page and on a late page, and the
//! workload of all agents.

use std::sync::Arc;
use std::time::Instant;

use foldwork_engine::Store;
use foldwork_engine::model::event::StreamExpectation;
use foldwork_engine::model::facts::{Assignee, Priority};
use foldwork_engine::model::task::{SourceType, Status};
use foldwork_engine::workspace::PageLimit;
use foldwork_engine::workspace::mailbox::tasks::{NewTask, TaskFilter, TaskLimit};
use foldwork_engine::workspace::mailbox::{ApprovalOverrides, TaskCommand};
use foldwork_engine::workspace::projects::NewProject;
use foldwork_tests::agents::agents;
use foldwork_tests::clock::FixedClock;
use foldwork_tests::handles::{Handles, enter};
use foldwork_tests::program::Times;
use futures_util::{StreamExt, stream};
use strum::VariantArray;

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

const AGENTS: usize = 100;
const CONCURRENCY: usize = 512;
const ROUNDS: usize = 200;
const PAGE: usize = 50;

async fn open() -> Handles {
    let names: Vec<String> = (0..AGENTS).map(|number| format!("a{number}")).collect();
    let store = Store::connect("mem://").await.expect("a store");
    let plugins = agents(&names).expect("agents");
    let clock = Arc::new(FixedClock::default());
    let engine = foldwork_engine::Engine::open(store, clock, foldwork_engine::EngineSettings::default(), plugins).await;
    let engine = engine.expect("an engine");
    let key = engine.first_start(None).await.expect("a start").expect("an empty store").key;
    enter(&engine, &key).await.expect("a workspace")
}

fn task(number: usize) -> NewTask {
    NewTask {
        title: format!("Task {number}"),
        priority: Priority::VARIANTS[number % 4],
        assignee: (!number.is_multiple_of(3)).then(|| Assignee::Agent(format!("agent-a{}", number % AGENTS).into())),
        project: number.is_multiple_of(10).then(|| "docs".to_owned()),
        source_type: Some([SourceType::Api, SourceType::Agent, SourceType::Event][number % 3]),
        ..NewTask::default()
    }
}

/// Returns the command for the task with this number, or `None` if the task is not changed. Most tasks become final, as
/// in a real mailbox.
fn command(number: usize) -> Option<TaskCommand> {
    match number % 20 {
        0 => None,
        1 => Some(TaskCommand::Defer { until: None, reason: None }),
        2..=4 => Some(TaskCommand::Reject { reason: None }),
        5 => Some(TaskCommand::Read),
        _ => Some(TaskCommand::Approve { comment: None, accepted: ApprovalOverrides::default() }),
    }
}

async fn fill(workspace: &Handles, count: usize) {
    let project = NewProject { name: "Docs".into(), ..NewProject::default() };
    workspace.writer.create_project(project).await.expect("a project");
    let make = |number: usize| async move {
        let task = workspace.writer.create_task(task(number)).await.expect("a task").0;
        if let Some(command) = command(number) {
            workspace.writer.act_on_task(task.id.as_str(), command, StreamExpectation::Any).await.expect("an action");
        }
    };
    stream::iter((0..count).map(make)).buffer_unordered(CONCURRENCY).collect::<()>().await;
}

fn filters() -> Vec<(&'static str, TaskFilter)> {
    let statuses =
        |open: bool| Some(Status::VARIANTS.iter().copied().filter(|status| status.is_open() == open).collect());
    let plain = TaskFilter::default;
    vec![
        ("all", plain()),
        ("status=pending", TaskFilter { statuses: Some(vec![Status::Pending]), ..plain() }),
        ("status=open", TaskFilter { statuses: statuses(true), ..plain() }),
        ("status=closed", TaskFilter { statuses: statuses(false), ..plain() }),
        ("status=in_progress (none is)", TaskFilter { statuses: Some(vec![Status::InProgress]), ..plain() }),
        ("assignee_id", TaskFilter { assignee_id: Some("agent-a7".into()), ..plain() }),
        ("assignee_id (nobody)", TaskFilter { assignee_id: Some("agent-none".into()), ..plain() }),
        ("assignee_type=agent", TaskFilter { assignee_type: Some(Some("agent")), ..plain() }),
        ("assignee_type=none", TaskFilter { assignee_type: Some(None), ..plain() }),
        ("project_id", TaskFilter { project: Some("docs".into()), ..plain() }),
        ("source_type=event", TaskFilter { source_type: Some(SourceType::Event), ..plain() }),
        ("unread=true", TaskFilter { unread: Some(true), ..plain() }),
        ("unread=false", TaskFilter { unread: Some(false), ..plain() }),
        ("priority=urgent", TaskFilter { priorities: Some(vec![Priority::Urgent]), ..plain() }),
        (
            "status=pending, agent, unread, urgent",
            TaskFilter {
                statuses: Some(vec![Status::Pending]),
                assignee_id: Some("agent-a43".into()),
                unread: Some(true),
                priorities: Some(vec![Priority::Urgent]),
                ..plain()
            },
        ),
    ]
}

/// Runs an operation repeatedly. Prints the median and the 99th percentile of the durations, and the number of results.
async fn measure<F: Future<Output = usize>>(name: &str, found: impl Fn() -> F) {
    let (mut times, mut count) = (Vec::with_capacity(ROUNDS), 0);
    for _ in 0..ROUNDS {
        let began = Instant::now();
        count = found().await;
        times.push(began.elapsed());
    }
    let times = Times::new(times);
    let ms = |part: f64| times.quantile(part).as_secs_f64() * 1e3;
    println!("{name}: {count}, p50 {:.3} ms, p99 {:.3} ms", ms(0.5), ms(0.99));
}

async fn measure_list(workspace: &Handles, name: &str, filter: &TaskFilter, before: Option<u64>) {
    let list = || async {
        workspace.reader.list_tasks(filter, before, TaskLimit::tasks(PAGE)).await.expect("a page").items.len()
    };
    measure(name, list).await;
}

fn main() {
    let count = std::env::args().filter_map(|argument| argument.parse().ok()).next().unwrap_or(100_000);
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let workspace = open().await;
        let began = Instant::now();
        fill(&workspace, count).await;
        println!("{count} tasks created and processed in {:.1} s", began.elapsed().as_secs_f64());
        let began = Instant::now();
        workspace.reader.list_tasks(&TaskFilter::default(), None, TaskLimit::tasks(PAGE)).await.expect("a page");
        println!("first list, which builds the columns: {:.1} ms", began.elapsed().as_secs_f64() * 1e3);
        measure("the roster", || async {
            workspace.reader.roster(None, PageLimit::NONE).await.expect("a roster").items.len()
        })
        .await;
        let late = workspace.reader.position() / 10;
        for (name, filter) in filters() {
            measure_list(&workspace, name, &filter, None).await;
            measure_list(&workspace, &format!("{name}, a late page"), &filter, Some(late)).await;
        }
    });
}
