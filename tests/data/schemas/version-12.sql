-- Our file before facts of events, version 12.
CREATE TABLE context (
        id TEXT PRIMARY KEY, scope TEXT NOT NULL DEFAULT '', instance_id TEXT NOT NULL, file TEXT NOT NULL,
        type TEXT NOT NULL, content TEXT NOT NULL, task_id TEXT,
        created_at INTEGER NOT NULL DEFAULT (unixepoch()), path_key TEXT, mode TEXT, agent TEXT, pattern TEXT,
        base TEXT, ttl REAL, renewed REAL, booted TEXT, wall_until REAL, expected_end INTEGER, fence INTEGER,
        repository TEXT, warned INTEGER, machine TEXT, team_fence INTEGER, takes TEXT);
INSERT INTO "context" VALUES('l1','/s','i2','/s/f','lock','note','t2',100,'/s/f',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
CREATE TABLE events (
        id INTEGER PRIMARY KEY AUTOINCREMENT, scope TEXT NOT NULL, type TEXT NOT NULL, actor TEXT, subject TEXT,
        payload TEXT, created_at INTEGER NOT NULL DEFAULT (unixepoch()));
INSERT INTO "events" VALUES(9,'/s','kv.set','i1','a','{"value":"1"}',100);
CREATE TABLE instances (
        id TEXT PRIMARY KEY, scope TEXT NOT NULL DEFAULT '', directory TEXT NOT NULL,
        root TEXT NOT NULL DEFAULT '', file_root TEXT NOT NULL DEFAULT '', pid INTEGER NOT NULL, label TEXT,
        registered_at INTEGER NOT NULL DEFAULT (unixepoch()), heartbeat INTEGER NOT NULL DEFAULT (unixepoch()),
        adopted INTEGER NOT NULL DEFAULT 1, lease_until INTEGER);
INSERT INTO "instances" VALUES('i1','/s','/s','/s','/s',7,'old',100,100,1,NULL);
INSERT INTO "instances" VALUES('i2','/s','/s/sub','/s','/s/sub',8,NULL,101,101,0,99999999999);
CREATE TABLE kv (
        scope TEXT NOT NULL DEFAULT '', key TEXT NOT NULL, value TEXT NOT NULL, owner_identity TEXT,
        updated_at INTEGER NOT NULL DEFAULT (unixepoch()), PRIMARY KEY (scope, key));
INSERT INTO "kv" VALUES('/s','a','1','identity:x',50);
CREATE TABLE kv_scope_updates (scope TEXT PRIMARY KEY, changed_at INTEGER NOT NULL);
INSERT INTO "kv_scope_updates" VALUES('/s',50001);
CREATE TABLE messages (
        id INTEGER PRIMARY KEY AUTOINCREMENT, scope TEXT NOT NULL DEFAULT '', sender TEXT NOT NULL,
        recipient TEXT, content TEXT NOT NULL, created_at INTEGER NOT NULL DEFAULT (unixepoch()),
        read INTEGER NOT NULL DEFAULT 0);
INSERT INTO "messages" VALUES(5,'/s','i1','i2','hello',100,0);
INSERT INTO "messages" VALUES(6,'/s','system','i1','read',100,1);
CREATE TABLE swarm_alterations (
        id INTEGER PRIMARY KEY AUTOINCREMENT, scope TEXT NOT NULL, file TEXT NOT NULL, path_key TEXT NOT NULL,
        writer_id TEXT, writer_label TEXT, holder_id TEXT NOT NULL, tool TEXT, command TEXT, kind TEXT NOT NULL,
        kept TEXT, altered_at INTEGER NOT NULL);
INSERT INTO "swarm_alterations" VALUES(1,'/s','/s/f','/s/f','i2','theirs','i1','Bash','make','changed','',99999999999);
CREATE TABLE swarm_deliveries (
        message_id INTEGER PRIMARY KEY, host TEXT NOT NULL, pid INTEGER NOT NULL, start TEXT NOT NULL,
        taken_at INTEGER NOT NULL);
INSERT INTO "swarm_deliveries" VALUES(5,'h',7,'1',100);
CREATE TABLE swarm_denials (
        instance_id TEXT NOT NULL, path_key TEXT NOT NULL, scope TEXT NOT NULL, file TEXT NOT NULL,
        holder_id TEXT NOT NULL, tool TEXT, denied_at INTEGER NOT NULL, path TEXT, times INTEGER,
        PRIMARY KEY (instance_id, path_key));
INSERT INTO "swarm_denials" VALUES('i1','/s/f','/s','/s/f','i2','Write',99999999999,NULL,NULL);
CREATE TABLE swarm_fence (last INTEGER NOT NULL);
INSERT INTO "swarm_fence" VALUES(17);
CREATE TABLE swarm_lapses (
        instance_id TEXT NOT NULL, file TEXT NOT NULL, agent TEXT NOT NULL DEFAULT '', path_key TEXT, pattern TEXT,
        base TEXT, fence INTEGER, lapsed_at INTEGER NOT NULL, taken_fence INTEGER, taken_by TEXT, taken_label TEXT,
        message_id INTEGER, PRIMARY KEY (instance_id, file, agent));
CREATE TABLE swarm_notices (message_id INTEGER PRIMARY KEY, instance_id TEXT NOT NULL, file TEXT);
INSERT INTO "swarm_notices" VALUES(5,'i1','/s/a');
CREATE TABLE swarm_runs (
        id TEXT PRIMARY KEY, scope TEXT NOT NULL, task_id TEXT, instance_id TEXT NOT NULL, requester TEXT,
        harness TEXT NOT NULL, model TEXT, cwd TEXT NOT NULL, state TEXT NOT NULL, control TEXT, session_id TEXT,
        session_params TEXT, record TEXT, host TEXT, supervisor_pid INTEGER, supervisor_start TEXT,
        child_pid INTEGER, child_start TEXT, client_pid INTEGER, client_start TEXT, cost_usd REAL, usage TEXT,
        result TEXT, started_at INTEGER NOT NULL, updated_at INTEGER NOT NULL, ended_at INTEGER);
CREATE TABLE swarm_questions (
        id INTEGER PRIMARY KEY, task_id TEXT NOT NULL, asked_by TEXT NOT NULL, question TEXT NOT NULL,
        asked_at INTEGER NOT NULL, answer TEXT, answered_at INTEGER, told_at INTEGER);
INSERT INTO "swarm_questions" VALUES(1,'t2','i2','which?',100,NULL,NULL,NULL);
CREATE TABLE swarm_schema (version INTEGER NOT NULL);
INSERT INTO "swarm_schema" VALUES(12);
CREATE TABLE swarm_sessions (
        runtime TEXT NOT NULL, session_id TEXT NOT NULL, instance_id TEXT NOT NULL UNIQUE, host TEXT,
        client_pid INTEGER, client_start TEXT, state TEXT NOT NULL, last_seen INTEGER NOT NULL,
        lease_seconds INTEGER NOT NULL, terminal_pid INTEGER, terminal_start TEXT, other_clients TEXT,
        PRIMARY KEY (runtime, session_id));
INSERT INTO "swarm_sessions" VALUES('codex','x1','i2',NULL,NULL,NULL,'idle',99999999999,0,NULL,NULL,NULL);
CREATE TABLE swarm_team_documents (
        repository TEXT NOT NULL, kind TEXT NOT NULL, key TEXT NOT NULL, version INTEGER NOT NULL, body TEXT,
        noted_at INTEGER NOT NULL, PRIMARY KEY (repository, kind, key));
CREATE TABLE swarm_team_repositories (
        id TEXT PRIMARY KEY, epoch TEXT, version INTEGER NOT NULL DEFAULT 0, mark INTEGER NOT NULL DEFAULT 0,
        fresh_until REAL, booted TEXT, state TEXT NOT NULL, said_at INTEGER, scope TEXT);
CREATE TABLE swarm_team_trees (top TEXT PRIMARY KEY, repository TEXT NOT NULL);
CREATE TABLE swarm_upkeep (what TEXT PRIMARY KEY, done_at INTEGER NOT NULL, place TEXT);
INSERT INTO "swarm_upkeep" VALUES('pass',100,'');
CREATE TABLE swarm_waiters (
        ticket INTEGER PRIMARY KEY AUTOINCREMENT, instance_id TEXT NOT NULL, agent TEXT NOT NULL DEFAULT '',
        scope TEXT NOT NULL, host TEXT NOT NULL, pid INTEGER NOT NULL, start TEXT NOT NULL, mode TEXT NOT NULL,
        wants TEXT NOT NULL, since REAL NOT NULL, until REAL, fence INTEGER NOT NULL DEFAULT 0, seen REAL, machine TEXT, team_ticket INTEGER);
CREATE TABLE tasks (
        id TEXT PRIMARY KEY, scope TEXT NOT NULL DEFAULT '', type TEXT NOT NULL, title TEXT NOT NULL,
        description TEXT, requester TEXT NOT NULL, assignee TEXT, status TEXT NOT NULL DEFAULT 'open',
        files TEXT, result TEXT, created_at INTEGER NOT NULL DEFAULT (unixepoch()),
        updated_at INTEGER NOT NULL DEFAULT (unixepoch()), changed_at INTEGER NOT NULL DEFAULT 0,
        priority INTEGER NOT NULL DEFAULT 0, depends_on TEXT, idempotency_key TEXT, parent_task_id TEXT,
        review_of_task_id TEXT, fixes_task_id TEXT, progress_summary TEXT, progress_updated_at INTEGER,
        blocked_reason TEXT, expected_next_update_at INTEGER,
        tracker_required INTEGER NOT NULL DEFAULT 0, tracker_provider TEXT);
INSERT INTO "tasks" VALUES('t1','/s','fix','T','why','i1',NULL,'open','["/s/f"]',NULL,100,1000,1000001,3,NULL,'key',NULL,NULL,NULL,NULL,NULL,NULL,NULL,1,'linear');
INSERT INTO "tasks" VALUES('t2','/s','test','U',NULL,'i1','i2','blocked',NULL,NULL,100,1000,1000002,0,'["t1"]',NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,0,NULL);
CREATE TABLE ui_commands (
        id INTEGER PRIMARY KEY AUTOINCREMENT, scope TEXT NOT NULL, created_by TEXT, kind TEXT NOT NULL,
        payload TEXT NOT NULL,
        status TEXT NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'running', 'done', 'failed')),
        claimed_by TEXT, result TEXT, error TEXT, created_at INTEGER NOT NULL DEFAULT (unixepoch()),
        started_at INTEGER, completed_at INTEGER,
        CHECK (status = 'pending' OR claimed_by IS NOT NULL),
        CHECK (status <> 'pending' OR started_at IS NULL),
        CHECK (status NOT IN ('done', 'failed') OR completed_at IS NOT NULL));
INSERT INTO "ui_commands" VALUES(3,'/s',NULL,'move_node','{}','pending',NULL,NULL,NULL,1795845323,NULL,NULL);
CREATE INDEX messages_scope_recipient_read_idx ON messages(scope, recipient, read, id);
CREATE INDEX messages_created_at_idx ON messages(created_at);
CREATE INDEX instances_scope_idx ON instances(scope);
CREATE INDEX instances_heartbeat_idx ON instances(heartbeat);
CREATE INDEX tasks_scope_status_idx ON tasks(scope, status);
CREATE INDEX tasks_scope_assignee_idx ON tasks(scope, assignee);
CREATE INDEX tasks_scope_changed_at_idx ON tasks(scope, changed_at);
CREATE INDEX tasks_scope_review_of_task_id_idx ON tasks(scope, review_of_task_id) WHERE review_of_task_id IS NOT NULL;
CREATE INDEX tasks_scope_fixes_task_id_idx ON tasks(scope, fixes_task_id) WHERE fixes_task_id IS NOT NULL;
CREATE INDEX tasks_scope_expected_next_update_idx ON tasks(scope, expected_next_update_at) WHERE expected_next_update_at IS NOT NULL;
CREATE INDEX context_task_lock_idx ON context(scope, instance_id, task_id) WHERE type = 'lock' AND task_id IS NOT NULL;
CREATE INDEX events_scope_id_idx ON events(scope, id);
CREATE INDEX events_created_at_idx ON events(created_at);
CREATE INDEX ui_commands_scope_status_id_idx ON ui_commands(scope, status, id);
CREATE INDEX swarm_lock_key_idx ON context(path_key) WHERE type = 'lock';
CREATE INDEX swarm_lock_name_idx ON context(lower(replace(file, rtrim(file, replace(file, '/', '')), ''))) WHERE type = 'lock' AND path_key IS NULL;
CREATE INDEX swarm_lock_holder_idx ON context(instance_id) WHERE type = 'lock';
CREATE INDEX swarm_denial_key_idx ON swarm_denials(path_key);
CREATE INDEX swarm_alteration_key_idx ON swarm_alterations(path_key, id);
CREATE INDEX swarm_alteration_time_idx ON swarm_alterations(altered_at);
CREATE INDEX swarm_question_open_idx ON swarm_questions(id) WHERE answer IS NULL;
CREATE INDEX swarm_question_task_idx ON swarm_questions(task_id);
CREATE INDEX swarm_run_task_idx ON swarm_runs(task_id, started_at) WHERE task_id IS NOT NULL;
CREATE INDEX swarm_run_time_idx ON swarm_runs(started_at);
CREATE INDEX swarm_run_live_idx ON swarm_runs(instance_id) WHERE state <> 'ended';
CREATE INDEX swarm_run_ended_idx ON swarm_runs(ended_at) WHERE ended_at IS NOT NULL;
CREATE INDEX swarm_lock_lease_idx ON context(instance_id, ttl) WHERE type = 'lock' AND ttl IS NOT NULL;
CREATE INDEX swarm_lock_due_idx ON context(booted, renewed + ttl * 0.8) WHERE type = 'lock' AND ttl IS NOT NULL;
CREATE INDEX swarm_notice_idx ON swarm_notices(instance_id);
CREATE INDEX swarm_lock_agent_idx ON context(agent) WHERE type = 'lock' AND agent IS NOT NULL;
CREATE INDEX swarm_lock_repository_idx ON context(repository) WHERE type = 'lock' AND repository IS NOT NULL;
CREATE INDEX swarm_denial_time_idx ON swarm_denials(denied_at);
CREATE INDEX swarm_kv_key_idx ON kv(key, scope);
CREATE INDEX swarm_legacy_idx ON context(id) WHERE type <> 'lock';
CREATE INDEX swarm_task_queue_idx ON tasks(scope, priority DESC, created_at, id, requester, assignee) WHERE status = 'open';
CREATE INDEX swarm_task_type_idx ON tasks(scope, type, priority DESC, created_at, id, requester, assignee) WHERE status = 'open';
CREATE INDEX swarm_task_held_idx ON tasks(scope, assignee, priority DESC, created_at, id) WHERE status IN ('claimed', 'in_progress');
CREATE INDEX swarm_task_waiting_idx ON tasks(scope, status, assignee, depends_on) WHERE status IN ('blocked', 'approval_required');
CREATE INDEX swarm_task_ended_idx ON tasks(updated_at) WHERE status IN ('done', 'failed', 'cancelled');
CREATE UNIQUE INDEX context_lock_idx ON context(scope, file) WHERE type = 'lock';
CREATE UNIQUE INDEX tasks_idempotency_key_idx ON tasks(scope, idempotency_key) WHERE idempotency_key IS NOT NULL;
CREATE INDEX swarm_lock_spelling_idx ON context(file) WHERE type = 'lock' AND path_key IS NOT file;
CREATE INDEX swarm_lock_folder_idx ON context(path_key) WHERE type = 'lock' AND base IS NOT NULL;
CREATE INDEX swarm_run_page_idx ON swarm_runs(scope, started_at);
CREATE INDEX swarm_instance_page_idx ON instances(scope, registered_at);
CREATE INDEX swarm_task_page_idx ON tasks(scope || '', priority DESC, created_at, id);
CREATE INDEX swarm_task_status_idx ON tasks(scope || '', status, priority DESC, created_at, id);
CREATE INDEX swarm_task_age_idx ON tasks(scope || '', created_at);
CREATE INDEX swarm_kv_owner_idx ON kv(scope, key, owner_identity);
CREATE INDEX swarm_lock_team_idx ON context(team_fence) WHERE type = 'lock' AND team_fence IS NOT NULL;
CREATE INDEX swarm_team_unposted_idx ON swarm_team_documents(repository, kind) WHERE version = 0;
PRAGMA user_version = 1;
