"""The tables of a study, the same on SQLite and PostgreSQL."""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    DDL,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    UniqueConstraint,
    event,
)
from sqlalchemy.engine import Connection, Engine, create_engine

metadata = MetaData()

facts = Table("facts", metadata, Column("name", Text, primary_key=True), Column("value", Text, nullable=False))

tasks = Table("tasks", metadata, Column("id", Text, primary_key=True), Column("raters", Integer, nullable=False))

raters = Table(
    "raters",
    metadata,
    Column("id", Text, primary_key=True),  # a pseudonym: keyed hash of the worker id
    Column("source", Text, nullable=False),
    Column("worker", Text),  # the id itself, only when the study keeps it
    Column("arrived", Float, nullable=False),
    Column("qualified", Integer),  # 1 passed, 0 failed, NULL not tested
    Column("qualification", Float),  # share of right answers
)

assignments = Table(
    "assignments",
    metadata,
    Column("id", Text, primary_key=True),
    Column("task", Text, ForeignKey("tasks.id"), nullable=False),
    Column("rater", Text, ForeignKey("raters.id"), nullable=False),
    # One of the task's planned places. The unique constraint makes over-assignment impossible whatever the code does;
    # an expired assignment gives its place back (NULL).
    Column("slot", Integer),
    Column("state", Text, nullable=False),  # open, submitted, expired
    Column("session", Text, nullable=False),
    Column("order", Text, nullable=False),  # JSON: which item the rater sees first, second, ...
    Column("platform", Text, nullable=False),  # JSON: how the rater arrived
    Column("code", Text, nullable=False),
    Column("feedback", Text, nullable=False),
    Column("assigned", Float, nullable=False),
    Column("expires", Float, nullable=False),
    Column("submitted", Float),
    UniqueConstraint("task", "slot"),
    UniqueConstraint("task", "rater"),  # a rater never sees a task twice
    Index("assignments_rater", "rater"),
    Index("assignments_state", "state", "expires"),
)

ratings = Table(
    "ratings",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("assignment", Text, ForeignKey("assignments.id"), nullable=False),
    Column("item", Integer, nullable=False),  # place in the plan's task, not in the rater's order
    Column("criterion", Text, nullable=False),
    Column("answer", Integer, nullable=False),  # slider position, or place of the chosen label
    Column("value", Float, nullable=False),  # what the answer counts
    Column("at", Float, nullable=False),
    Index("ratings_assignment", "assignment"),
)

_SQLITE_GUARD = """CREATE TRIGGER ratings_no_{what} BEFORE {what} ON ratings
BEGIN SELECT RAISE(ABORT, 'ratings are append-only'); END"""
_POSTGRES_GUARD = """CREATE OR REPLACE FUNCTION ratings_append_only() RETURNS trigger AS $$
BEGIN RAISE EXCEPTION 'ratings are append-only'; END $$ LANGUAGE plpgsql;
CREATE TRIGGER ratings_guard BEFORE UPDATE OR DELETE ON ratings
FOR EACH ROW EXECUTE FUNCTION ratings_append_only()"""


def _ddl(statement: str, dialect: str) -> Any:
    return DDL(statement).execute_if(dialect=dialect)  # type: ignore[no-untyped-call]


for _what in ("UPDATE", "DELETE"):
    _guard = _ddl(_SQLITE_GUARD.format(what=_what), "sqlite")
    event.listen(ratings, "after_create", _guard)
event.listen(ratings, "after_create", _ddl(_POSTGRES_GUARD, "postgresql"))


def open_engine(url: str) -> Engine:
    """An engine on which a committed rating is on disk: SQLite in WAL mode with full fsync, or PostgreSQL."""
    if url.startswith("postgres://"):
        url = "postgresql://" + url.removeprefix("postgres://")
    if url.startswith("postgresql://"):
        url = "postgresql+psycopg://" + url.removeprefix("postgresql://")
        # As many connections as the server has threads (40), so that no request waits for one.
        return create_engine(url, pool_size=20, max_overflow=20, pool_timeout=120, pool_pre_ping=True)
    engine = create_engine(url, connect_args={"timeout": 30, "check_same_thread": False}, pool_size=16)

    @event.listens_for(engine, "connect")
    def _settings(connection: Any, _record: Any) -> None:
        connection.isolation_level = None  # we say BEGIN ourselves, below
        for line in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON", "busy_timeout=30000"):
            connection.execute(f"PRAGMA {line}")

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        immediate = connection.get_execution_options().get("writes")
        connection.exec_driver_sql("BEGIN IMMEDIATE" if immediate else "BEGIN")

    return engine
