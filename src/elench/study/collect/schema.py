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
    text,
)
from sqlalchemy.engine import Connection, Engine, Row, create_engine

StoredRow = Row[Any]
"""A row of any of these tables; its columns are its attributes."""
VERSION = "2"
metadata = MetaData()

facts = Table("facts", metadata, Column("name", Text, primary_key=True), Column("value", Text, nullable=False))

tasks = Table(
    "tasks",
    metadata,
    Column("id", Text, primary_key=True),
    Column("raters", Integer, nullable=False),  # ratings that pass the quality control, as planned
    Column("extra", Integer, nullable=False, server_default="0"),  # asked for since
)

raters = Table(
    "raters",
    metadata,
    Column("id", Text, primary_key=True),  # a pseudonym: keyed hash of the worker id
    Column("source", Text, nullable=False),
    Column("worker", Text),  # the id itself, only when the study keeps it
    Column("arrived", Float, nullable=False),
    Column("device", Text),  # keyed hash of the browser's cookie
    Column("trained", Integer),
    Column("qualified", Integer),  # 1 passed, 0 failed, NULL not tested
    Column("qualification", Float),  # share of right answers
    Column("standing", Text, nullable=False, server_default=""),  # stopped, excluded, readmitted
    Column("judged", Integer, nullable=False, server_default="0"),  # submitted tasks that the verdict has seen
)

assignments = Table(
    "assignments",
    metadata,
    Column("id", Text, primary_key=True),
    Column("task", Text, ForeignKey("tasks.id"), nullable=False),
    Column("rater", Text, ForeignKey("raters.id"), nullable=False),
    # One of the task's planned places. The unique constraint makes over-assignment impossible whatever the code does;
    # work that expired, was returned or failed the quality control gives its place back (NULL).
    Column("slot", Integer),
    Column("state", Text, nullable=False),  # open, submitted, expired, returned
    Column("session", Text, nullable=False),
    Column("order", Text, nullable=False),  # JSON: screens in the rater's order, each a list of places of items
    Column("platform", Text, nullable=False),  # JSON: how the rater arrived
    Column("code", Text, nullable=False),
    Column("feedback", Text, nullable=False),
    Column("assigned", Float, nullable=False),
    Column("expires", Float, nullable=False),
    Column("submitted", Float),
    UniqueConstraint("task", "slot"),
    # A rater never has a task twice, unless they returned it before finishing.
    Index("assignments_once", "task", "rater", unique=True, sqlite_where=text("state <> 'returned'"),
          postgresql_where=text("state <> 'returned'")),
    Index("assignments_rater", "rater"),
    Index("assignments_state", "state", "expires"),
)  # fmt: skip

ratings = Table(
    "ratings",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("assignment", Text, ForeignKey("assignments.id"), nullable=False),
    Column("item", Text, nullable=False),  # key of the item: what was shown, not where
    Column("criterion", Text, nullable=False),
    Column("answer", Text, nullable=False),  # slider position, place of the chosen label, rank, words, free text
    Column("value", Float),  # what the answer counts; NULL for free text
    Column("tab", Text, nullable=False, server_default=""),  # browser tab that sent it
    Column("seconds", Float),  # for which the item had been in view, as far as the browser tells
    Column("at", Float, nullable=False),
    Index("ratings_assignment", "assignment"),
)

steps = Table(
    "steps",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("rater", Text, ForeignKey("raters.id"), nullable=False),
    Column("step", Text, nullable=False),  # consent, check, before, after
    Column("field", Text, nullable=False),
    Column("value", Text, nullable=False),
    Column("at", Float, nullable=False),
    Index("steps_rater", "rater"),
)

messages = Table(
    "messages",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("rater", Text, ForeignKey("raters.id"), nullable=False),
    Column("author", Text, nullable=False),  # rater, researcher
    Column("text", Text, nullable=False),
    Column("at", Float, nullable=False),
    Index("messages_rater", "rater"),
)

events = Table(
    "events",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=True),
    Column("at", Float, nullable=False),
    Column("actor", Text, nullable=False),  # researcher, command, server
    Column("action", Text, nullable=False),
    Column("subject", Text, nullable=False),
    Column("detail", Text, nullable=False),
)

invitations = Table(
    "invitations",
    metadata,
    Column("secret", Text, primary_key=True),
    Column("name", Text, nullable=False),
    Column("at", Float, nullable=False),
)

sessions = Table(
    "sessions", metadata, Column("id", Text, primary_key=True), Column("ends", Float, nullable=False)
)  # of researchers who are signed in

_SQLITE_GUARD = """CREATE TRIGGER {table}_no_{what} BEFORE {what} ON {table}
BEGIN SELECT RAISE(ABORT, '{table} are append-only'); END"""
_POSTGRES_GUARD = """CREATE OR REPLACE FUNCTION {table}_append_only() RETURNS trigger AS $$
BEGIN RAISE EXCEPTION '{table} are append-only'; END $$ LANGUAGE plpgsql;
CREATE TRIGGER {table}_guard BEFORE UPDATE OR DELETE ON {table}
FOR EACH ROW EXECUTE FUNCTION {table}_append_only()"""


def _ddl(statement: str, dialect: str) -> Any:
    return DDL(statement).execute_if(dialect=dialect)  # type: ignore[no-untyped-call]


for _table in (ratings, steps, messages, events):
    for _what in ("UPDATE", "DELETE"):
        event.listen(_table, "after_create", _ddl(_SQLITE_GUARD.format(table=_table.name, what=_what), "sqlite"))
    event.listen(_table, "after_create", _ddl(_POSTGRES_GUARD.format(table=_table.name), "postgresql"))


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
