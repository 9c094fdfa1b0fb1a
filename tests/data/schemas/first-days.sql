-- A file of the first implementation's first days: no scopes, no leases, no progress, `kv` by key alone.
CREATE TABLE instances (id TEXT PRIMARY KEY, directory TEXT NOT NULL, pid INTEGER NOT NULL, label TEXT,
  registered_at INTEGER NOT NULL DEFAULT (unixepoch()), heartbeat INTEGER NOT NULL DEFAULT (unixepoch()));
CREATE TABLE messages (id INTEGER PRIMARY KEY AUTOINCREMENT, sender TEXT NOT NULL, recipient TEXT, content TEXT NOT NULL,
  created_at INTEGER NOT NULL DEFAULT (unixepoch()), read INTEGER NOT NULL DEFAULT 0);
CREATE TABLE tasks (id TEXT PRIMARY KEY, type TEXT NOT NULL, title TEXT NOT NULL, description TEXT,
  requester TEXT NOT NULL, assignee TEXT, status TEXT NOT NULL DEFAULT 'open', files TEXT, result TEXT,
  created_at INTEGER NOT NULL DEFAULT (unixepoch()), updated_at INTEGER NOT NULL DEFAULT (unixepoch()));
CREATE TABLE context (id TEXT PRIMARY KEY, instance_id TEXT NOT NULL, file TEXT NOT NULL, type TEXT NOT NULL,
  content TEXT NOT NULL, created_at INTEGER NOT NULL DEFAULT (unixepoch()));
CREATE TABLE kv (key TEXT PRIMARY KEY, value TEXT NOT NULL, updated_at INTEGER NOT NULL DEFAULT (unixepoch()));
INSERT INTO instances (id, directory, pid, label) VALUES ('i1', '/old', 7, 'old');
INSERT INTO messages (sender, recipient, content) VALUES ('i1', 'i1', 'hello');
INSERT INTO tasks (id, type, title, requester, updated_at) VALUES ('t1', 'fix', 'T', 'i1', 1000);
INSERT INTO context (id, instance_id, file, type, content) VALUES ('l1', 'i1', '/old/f', 'lock', 'note');
INSERT INTO kv (key, value, updated_at) VALUES ('a', '1', 50), ('b', '2', 60);
