"""Runs the story with the client that openapi-python-client generates."""

import base64
import os
import sys
from collections.abc import Callable
from typing import Any, TypeVar
from urllib.parse import urljoin

import httpx
from client import AuthenticatedClient, Client
from client.api.agents import create_agent, get_roster
from client.api.aggregates import (
    append_event,
    define_type,
    get_type_schema,
    query_aggregates,
    search_aggregates,
)
from client.api.articles import create_article, get_article, list_articles, publish_article
from client.api.files import create_file, get_file
from client.api.keys import create_key
from client.api.mailbox import approve_task, create_task, get_task
from client.api.workspace import create_project, get_workspace, list_projects
from client.models import (
    Agent,
    AgentRoster,
    AggregateType,
    AggregateTypeSchema,
    AppendResponse,
    ApprovedTask,
    ApproveTask,
    Article,
    AssigneeType,
    CreateAgent,
    CreateArticle,
    CreateKey,
    CreateProject,
    CreateTask,
    CreatedKey,
    Error,
    FieldDefinition,
    FieldType,
    FileLink,
    Project,
    ProjectPage,
    QueryBody,
    QueryBodyPipelineItem,
    QueryResult,
    Scope,
    SearchBody,
    SearchResult,
    StoredFile,
    StreamEvent,
    StreamEventPayloadType0,
    StreamEvents,
    Task,
    TaskPriority,
    TypeDefinition,
    UploadFile,
    WholeTask,
)
from client.types import Response

BASE, KEY, RUN = (os.environ[name] for name in ("FOLDWORK_BASE", "FOLDWORK_TOKEN", "FOLDWORK_RUN"))
BYTES = b"Flour, water, salt, time.\n"
SLUG = f"python-{RUN}"
T = TypeVar("T")


def opened(token: str) -> AuthenticatedClient:
    return AuthenticatedClient(base_url=BASE, token=token, raise_on_unexpected_status=True)


OWNER = opened(KEY)
MADE: dict[str, str] = {}


def got(response: Response[Any], kind: type[T], status: int = 200) -> T:
    """Checks the type of a response and returns the response."""
    assert response.status_code == status, f"{response.status_code}: {response.content!r}"
    assert isinstance(response.parsed, kind), f"{response.parsed!r} is no {kind.__name__}"
    return response.parsed


def refused(response: Response[Any], status: int, code: str) -> None:
    """Checks the status, the code and the common fields of an error."""
    error = got(response, Error, status)
    assert error.code == code, error
    assert error.error and error.request_id


def a_project() -> None:
    body = CreateProject(name="Python", slug=SLUG, description=None)
    made = got(create_project.sync_detailed(client=OWNER, body=body), Project, 201)
    assert made.slug == SLUG and made.description is None
    MADE["project"] = made.id
    listed = got(list_projects.sync_detailed(client=OWNER, limit=200), ProjectPage)
    assert any(known.id == made.id for known in listed.data)


def a_type() -> None:
    body = TypeDefinition(
        type_name="ticket",
        display_name="Ticket",
        traits=["content-bearing"],
        fields=[
            FieldDefinition(name="subject", type_=FieldType.STRING, required=True, label=True),
            FieldDefinition(name="points", type_=FieldType.NUMBER),
        ],
    )
    response = define_type.sync_detailed(client=OWNER, body=body)
    made = got(response, AggregateType, response.status_code)
    assert len(made.fields) == 2
    schema = got(get_type_schema.sync_detailed("ticket", client=OWNER), AggregateTypeSchema)
    assert any(field.name == "subject" and field.required for field in schema.fields)


def an_event() -> None:
    body = StreamEvent(
        aggregate_type="ticket",
        event_type="ticket.created",
        project_id=SLUG,
        payload=StreamEventPayloadType0.from_dict({"subject": f"Leaking tap {RUN}", "points": 3}),
    )
    made = got(append_event.sync_detailed(f"ticket:{SLUG}", client=OWNER, body=body), AppendResponse, 201)
    assert made.version == 1 and made.payload["points"] == 3


def several_events() -> None:
    def points(number: int) -> StreamEvent:
        payload = StreamEventPayloadType0.from_dict({"points": number})
        return StreamEvent(event_type="ticket.updated", payload=payload)

    body = StreamEvents(events=[points(4), points(3)])
    made = got(append_event.sync_detailed(f"ticket:{SLUG}", client=OWNER, body=body), AppendResponse, 201)
    assert made.version == 3 and made.appended == 2 and isinstance(made.data, list)
    assert [event.payload["points"] for event in made.data] == [4, 3]


def an_article() -> None:
    body = CreateArticle(
        project_id=SLUG, title=f"Kneading dough {RUN}", body="# Dough", slug=SLUG, tags=["bread", "basics"]
    )
    made = got(create_article.sync_detailed(client=OWNER, body=body, idempotency_key=SLUG), Article, 201)
    assert made.status == "draft" and made.published_at is None
    MADE["article"] = made.aggregate_id
    again = got(create_article.sync_detailed(client=OWNER, body=body, idempotency_key=SLUG), Article, 200)
    assert again.aggregate_id == made.aggregate_id


def publishing() -> None:
    published = got(publish_article.sync_detailed(MADE["article"], client=OWNER), Article)
    assert published.status == "published" and published.published_at is not None
    known = get_article.sync_detailed(MADE["article"], client=OWNER, if_none_match=f'"{published.version}"')
    assert known.status_code == 304


def a_query() -> None:
    stages: list[dict[str, Any]] = [
        {"$match": {"aggregate_type": "ticket", "project_id": MADE["project"]}},
        {"$fold": {}},
        {"$project": {"subject": 1, "double": {"$multiply": ["$points", 2]}}},
    ]
    body = QueryBody(pipeline=[QueryBodyPipelineItem.from_dict(stage) for stage in stages])
    found = got(query_aggregates.sync_detailed(client=OWNER, body=body), QueryResult)
    assert found.count == 1 and found.results[0]["double"] == 6


def a_search() -> None:
    body = SearchBody(query=f"kneeding dough {RUN}", type_="article", project_id=SLUG, limit=5)
    found = got(search_aggregates.sync_detailed(client=OWNER, body=body), SearchResult)
    assert found.results[0].aggregate_id == MADE["article"]


def a_file() -> None:
    data = base64.b64encode(BYTES).decode()
    body = UploadFile(filename="dough.txt", data=data, mime_type="text/plain", project_id=SLUG)
    made = got(create_file.sync_detailed(client=OWNER, body=body), StoredFile, 201)
    assert made.path.count("/") > 2
    link = got(get_file.sync_detailed(made.path, client=OWNER), FileLink)
    assert httpx.get(urljoin(BASE, link.url)).raise_for_status().content == BYTES


def an_agent_and_a_task() -> None:
    bakes = CreateAgent(name=f"Baker {SLUG}", description="Bakes.", subscribed_traits=[])
    agent = got(create_agent.sync_detailed(client=OWNER, body=bakes), Agent, 201)
    body = CreateTask(
        title="Bake it",
        assignee_type=AssigneeType.AGENT,
        assignee_id=agent.id,
        priority=TaskPriority.HIGH,
        project_id=SLUG,
    )
    made = got(create_task.sync_detailed(client=OWNER, body=body), Task, 201)
    assert made.status == "pending"
    roster = got(get_roster.sync_detailed(client=OWNER), AgentRoster)
    assert any(entry.agent_id == agent.id and entry.pending == 1 for entry in roster.data)
    approval = ApproveTask(comment="Well done")
    approved = got(approve_task.sync_detailed(made.id, client=OWNER, body=approval), ApprovedTask)
    assert approved.status == "approved"
    whole = got(get_task.sync_detailed(made.id, client=OWNER), WholeTask)
    assert any(entry.event_type == "task.approved" for entry in whole.timeline)
    refused(approve_task.sync_detailed(made.id, client=OWNER, body=approval), 409, "task_state_conflict")


def invalid() -> None:
    refused(list_articles.sync_detailed(client=OWNER, cursor="nonsense"), 400, "invalid_cursor")


def unauthenticated() -> None:
    nobody: Any = Client(base_url=BASE, raise_on_unexpected_status=True)
    refused(get_workspace.sync_detailed(client=nobody), 401, "unauthenticated")


def without_scope() -> None:
    body = CreateKey(name="reader", scopes=[Scope.APIREAD])
    made = got(create_key.sync_detailed(client=OWNER, body=body), CreatedKey, 201)
    assert isinstance(made.key, str)
    response = create_project.sync_detailed(client=opened(made.key), body=CreateProject(name="Refused"))
    refused(response, 403, "insufficient_scope")


def not_there() -> None:
    refused(get_article.sync_detailed("not-there", client=OWNER), 404, "not_found")


def in_conflict() -> None:
    response = create_project.sync_detailed(client=OWNER, body=CreateProject(name="Again", slug=SLUG))
    refused(response, 409, "slug_taken")


STEPS: list[Callable[[], None]] = [
    a_project,
    a_type,
    an_event,
    several_events,
    an_article,
    publishing,
    a_query,
    a_search,
    a_file,
    an_agent_and_a_task,
    invalid,
    unauthenticated,
    without_scope,
    not_there,
    in_conflict,
]


def main() -> None:
    for step in STEPS:
        try:
            step()
        except Exception:
            print(f"openapi-python-client: {step.__name__}: FAILED", file=sys.stderr, flush=True)
            raise
    print(f"openapi-python-client: {len(STEPS)} steps passed")


if __name__ == "__main__":
    main()
