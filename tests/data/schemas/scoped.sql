-- A middle-aged file: scopes are there; leases, priorities, progress, owners, events and the unique indexes are not.
CREATE TABLE instances (id TEXT PRIMARY KEY, scope TEXT NOT NULL DEFAULT '', directory TEXT NOT NULL, root TEXT NOT NULL DEFAULT '',
  pid INTEGER NOT NULL, label TEXT, registered_at INTEGER NOT NULL DEFAULT (unixepoch()),
  heartbeat INTEGER NOT NULL DEFAULT (unixepoch()));
CREATE TABLE messages (id INTEGER PRIMARY KEY AUTOINCREMENT, scope TEXT NOT NULL DEFAULT '', sender TEXT NOT NULL, recipient TEXT,
  content TEXT NOT NULL, created_at INTEGER NOT NULL DEFAULT (unixepoch()), read INTEGER NOT NULL DEFAULT 0);
CREATE TABLE tasks (id TEXT PRIMARY KEY, scope TEXT NOT NULL DEFAULT '', type TEXT NOT NULL, title TEXT NOT NULL, description TEXT,
  requester TEXT NOT NULL, assignee TEXT, status TEXT NOT NULL DEFAULT 'open', files TEXT, result TEXT,
  created_at INTEGER NOT NULL DEFAULT (unixepoch()), updated_at INTEGER NOT NULL DEFAULT (unixepoch()),
  changed_at INTEGER NOT NULL DEFAULT 0, depends_on TEXT, idempotency_key TEXT);
CREATE TABLE context (id TEXT PRIMARY KEY, scope TEXT NOT NULL DEFAULT '', instance_id TEXT NOT NULL, file TEXT NOT NULL,
  type TEXT NOT NULL, content TEXT NOT NULL, created_at INTEGER NOT NULL DEFAULT (unixepoch()));
CREATE TABLE kv (scope TEXT NOT NULL DEFAULT '', key TEXT NOT NULL, value TEXT NOT NULL,
  updated_at INTEGER NOT NULL DEFAULT (unixepoch()), PRIMARY KEY (scope, key));
CREATE TABLE kv_scope_updates (scope TEXT PRIMARY KEY, changed_at INTEGER NOT NULL);
CREATE INDEX context_scope_file_idx ON context(scope, file);
INSERT INTO instances (id, scope, directory, root, pid, label, registered_at, heartbeat) VALUES ('i1', '/s', '/s/sub', '/s', 7, 'old', 100, 100);
INSERT INTO messages (id, scope, sender, recipient, content, created_at, read) VALUES (5, '/s', 'i1', 'i1', 'hello', 100, 0);
INSERT INTO tasks (id, scope, type, title, requester, status, created_at, updated_at, depends_on, idempotency_key)
  VALUES ('t1', '/s', 'fix', 'T', 'i1', 'open', 100, 1000, '[]', 'key'), ('t2', '/s', 'fix', 'U', 'i1', 'open', 100, 1000, NULL, 'other');
INSERT INTO context (id, scope, instance_id, file, type, content, created_at) VALUES ('l1', '/s', 'i1', '/s/f', 'lock', 'note', 100);
INSERT INTO kv (scope, key, value, updated_at) VALUES ('/s', 'a', '1', 50);
