-- Documents: messages, tasks, values and traces of each repository, versioned by its log. What they look like, and what
-- `put` answers, is said in swarm_mcp/team/protocol.py. The rules of 0001_team.sql hold here too.

-- version, based  of the last change, and the version that it was based on; machine, member: who made it
-- until           when it is to be removed, NULL for never
-- size            of the body, in bytes
CREATE TABLE swarm_team.documents (
  repository bigint NOT NULL REFERENCES swarm_team.repositories ON DELETE CASCADE,
  kind text NOT NULL CHECK (kind IN ('message', 'task', 'value', 'trace')),
  key text COLLATE "C" NOT NULL,
  version bigint NOT NULL,
  based bigint NOT NULL,
  machine text NOT NULL,
  member name NOT NULL,
  at timestamptz NOT NULL,
  until timestamptz,
  size integer NOT NULL,
  body jsonb NOT NULL,
  PRIMARY KEY (repository, kind, key));
CREATE INDEX documents_until ON swarm_team.documents (repository, until) WHERE until IS NOT NULL;

-- Bytes of the bodies of all its documents: a replica that has nothing is given all of them in one answer.
ALTER TABLE swarm_team.repositories ADD COLUMN documents_size bigint NOT NULL DEFAULT 0;

-- Bytes of a change's document, NULL for everything else, which is small.
ALTER TABLE swarm_team.changes ADD COLUMN size integer;

CREATE FUNCTION swarm_team.document_row(d swarm_team.documents) RETURNS jsonb LANGUAGE sql STABLE AS $$
  SELECT jsonb_build_object('kind', d.kind, 'key', d.key, 'version', d.version, 'body', d.body, 'machine', d.machine,
    'member', d.member, 'at', extract(epoch FROM d.at)::float8) $$;

-- As in 0001, with documents where it is of all machines.
CREATE OR REPLACE FUNCTION swarm_team.everything(p_repository bigint, p_machine text, p_member name) RETURNS jsonb
LANGUAGE sql STABLE AS $$
  WITH here AS (SELECT s FROM swarm_team.sessions s WHERE s.repository = p_repository
    AND (p_machine IS NULL OR (s.machine = p_machine AND s.member = p_member)))
  SELECT jsonb_build_object(
    'sessions', (SELECT coalesce(jsonb_agg(swarm_team.session_row(h.s) ORDER BY (h.s).joined), '[]') FROM here h),
    'locks', (SELECT coalesce(jsonb_agg(swarm_team.lock_row(l, h.s) ORDER BY l.fence), '[]')
      FROM swarm_team.locks l JOIN here h ON (h.s).session = l.session WHERE l.repository = p_repository),
    'waits', (SELECT coalesce(jsonb_agg(swarm_team.wait_row(w, h.s) ORDER BY w.number), '[]')
      FROM swarm_team.waits w JOIN here h ON (h.s).session = w.session WHERE w.repository = p_repository))
    || CASE WHEN p_machine IS NOT NULL THEN '{}' ELSE jsonb_build_object(
      'documents', (SELECT coalesce(jsonb_agg(swarm_team.document_row(d) ORDER BY d.version), '[]')
        FROM swarm_team.documents d WHERE d.repository = p_repository)) END $$;

-- As in 0001, but no answer has much more than a mebibyte: changes of documents may be large.
CREATE OR REPLACE FUNCTION swarm_team.news(p_repository bigint, p_seen bigint) RETURNS jsonb
LANGUAGE plpgsql STABLE AS $$
DECLARE answer jsonb;
BEGIN
  SELECT CASE WHEN p_seen = r.version THEN
      jsonb_build_object('version', r.version, 'mark', r.mark, 'changes', '[]'::jsonb, 'more', false)
    WHEN p_seen = 0 OR p_seen < r.floor OR p_seen > r.version THEN
      jsonb_build_object('version', r.version, 'mark', r.mark, 'changes', '[]'::jsonb, 'more', false,
        'all', swarm_team.everything(r.key, NULL, NULL))
    ELSE (SELECT jsonb_build_object('version', max(c.version), 'mark', (array_agg(c.mark ORDER BY c.version DESC))[1],
        'changes', jsonb_agg(jsonb_build_object('version', c.version, 'kind', c.kind, 'session', c.session,
          'machine', c.machine, 'member', c.member, 'body', c.body) ORDER BY c.version),
        'more', max(c.version) < r.version)
      FROM (SELECT x.*, sum(x.bytes) OVER (ORDER BY x.version) - x.bytes AS before
          FROM (SELECT k.*, coalesce(k.size, 0) AS bytes FROM swarm_team.changes k
            WHERE k.repository = r.key AND k.version > p_seen ORDER BY k.version LIMIT 500) x) c
      WHERE c.before < 1048576)
    END INTO answer FROM swarm_team.repositories r WHERE r.key = p_repository;
  RETURN answer;
END $$;

-- Removes a document and says so; the version. The caller has the repository's row.
CREATE FUNCTION swarm_team.drop_document(d swarm_team.documents, p_machine text, p_member name, p_reason text)
RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE teller swarm_team.sessions; told jsonb; v bigint;
BEGIN
  teller.session := '';
  teller.machine := p_machine;
  teller.member := p_member;
  DELETE FROM swarm_team.documents k WHERE k.repository = d.repository AND k.kind = d.kind AND k.key = d.key;
  UPDATE swarm_team.repositories r SET documents_size = r.documents_size - d.size WHERE r.key = d.repository
    RETURNING r.version + 1 INTO v;
  told := swarm_team.document_row(d) - 'body' || jsonb_build_object('version', v, 'machine', p_machine, 'member',
    p_member, 'at', extract(epoch FROM clock_timestamp())::float8, 'reason', p_reason);
  RETURN swarm_team.log(d.repository, 'document_gone', teller, NULL, NULL, told);
END $$;

-- [PutAnswer], in the order of p_items ([{kind, key, seen, body, again}]): each a compare and set of its own. p_seen
-- and p_mark: of the caller's replica. A few of the documents whose time is over are removed first.
CREATE FUNCTION swarm_team.put(p_repository bigint, p_machine text, p_incarnation text, p_epoch text, p_items jsonb,
  p_seen bigint, p_mark bigint) RETURNS jsonb
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE r swarm_team.repositories; d swarm_team.documents; i jsonb; answers jsonb := '[]';
BEGIN
  IF jsonb_typeof(p_items) <> 'array' OR jsonb_array_length(p_items) NOT BETWEEN 1 AND 200 THEN
    PERFORM swarm_team.refuse('1 to 200 documents at once');
  END IF;
  r := swarm_team.enter(p_repository, p_machine, p_incarnation, p_epoch);
  IF r.key IS NOT NULL AND NOT swarm_team.same_history(r, p_seen, p_mark) THEN
    PERFORM swarm_team.void(p_repository, p_seen);
    r := NULL;
  END IF;
  IF r.key IS NULL THEN
    RETURN (SELECT jsonb_agg('{"ok": false, "why": "epoch"}'::jsonb) FROM jsonb_array_elements(p_items));
  END IF;
  FOR d IN SELECT * FROM swarm_team.documents k WHERE k.repository = p_repository AND k.until < clock_timestamp()
      ORDER BY k.until LIMIT 50 LOOP
    PERFORM swarm_team.drop_document(d, d.machine, d.member, 'expired');
  END LOOP;
  FOR i IN SELECT jsonb_array_elements(p_items) LOOP
    answers := answers || jsonb_build_array(swarm_team.put_one(p_repository, p_machine, i));
  END LOOP;
  RETURN answers;
END $$;

-- PutAnswer of one item. Inside.
CREATE FUNCTION swarm_team.put_one(p_repository bigint, p_machine text, i jsonb) RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE r swarm_team.repositories; was swarm_team.documents; d swarm_team.documents; teller swarm_team.sessions;
  is_mine boolean; error text := ''; left_ float8; holder text;
BEGIN
  SELECT * INTO r FROM swarm_team.repositories WHERE key = p_repository;
  d := (p_repository, i ->> 'kind', i ->> 'key', r.version + 1, coalesce((i ->> 'seen')::bigint, 0), p_machine,
    session_user, clock_timestamp(), NULL, octet_length(i ->> 'body'), nullif(i -> 'body', 'null'))
    ::swarm_team.documents;
  IF d.kind IS NULL OR d.key IS NULL OR d.kind NOT IN ('message', 'task', 'value', 'trace')
      OR octet_length(d.key) NOT BETWEEN 1 AND 512 OR d.size > 262144 THEN
    RETURN '{"ok": false, "why": "refused", "error": "its kind, key or size is none that a document may have"}';
  END IF;
  SELECT * INTO was FROM swarm_team.documents k WHERE k.repository = p_repository AND k.kind = d.kind
    AND k.key = d.key;
  is_mine := coalesce(was.machine = p_machine AND was.member = session_user, false);
  IF was.body IS NULL AND d.body IS NULL AND d.kind <> 'message' THEN
    RETURN '{"ok": true, "version": 0}';
  END IF;
  IF was.body = d.body AND is_mine AND (d.kind = 'message' OR was.based = d.based) THEN
    RETURN jsonb_build_object('ok', true, 'version', was.version);
  END IF;
  IF d.kind = 'message' AND d.body IS NULL THEN
    RETURN '{"ok": false, "why": "refused", "error": "a message is not taken back"}';
  END IF;
  IF coalesce(was.version, 0) <> (CASE d.kind WHEN 'message' THEN 0 ELSE d.based END) THEN
    RETURN jsonb_build_object('ok', false, 'why', 'stale', 'version', coalesce(was.version, 0), 'body', was.body,
      'machine', coalesce(was.machine, ''), 'member', coalesce(was.member, ''));
  END IF;
  IF d.kind = 'message' AND EXISTS (SELECT 1 FROM swarm_team.sessions s WHERE s.repository = p_repository
      AND s.session = d.body ->> 'sender' AND (s.machine, s.member) <> (p_machine, session_user)) THEN
    RETURN '{"ok": false, "why": "refused", "error": "a message''s sender is a session of another machine"}';
  END IF;
  IF d.kind = 'task' AND was.version IS NOT NULL AND d.body IS NOT NULL THEN
    left_ := swarm_team.grace(r);
    IF left_ > 0 AND NOT coalesce((i ->> 'again')::boolean, false) THEN
      RETURN jsonb_build_object('ok', false, 'why', 'grace', 'seconds', left_);
    END IF;
    holder := d.body ->> 'assignee';
    IF d.body ->> 'status' IN ('claimed', 'in_progress') AND holder <> ''
        AND holder IS DISTINCT FROM was.body ->> 'assignee' AND NOT EXISTS (SELECT 1 FROM swarm_team.sessions s
          WHERE s.repository = p_repository AND s.session = holder) THEN
      RETURN '{"ok": false, "why": "session"}';
    END IF;
  END IF;
  IF d.body IS NULL THEN
    RETURN jsonb_build_object('ok', true, 'version', swarm_team.drop_document(was, p_machine, session_user, 'removed'));
  END IF;
  IF d.size > coalesce(was.size, 0) AND r.documents_size + d.size - coalesce(was.size, 0) > 16777216 THEN
    RETURN '{"ok": false, "why": "refused",
      "error": "the team has 16 MiB of documents for this repository, which is all it keeps"}';
  END IF;
  d.until := d.at + CASE WHEN d.kind = 'message' THEN interval '1 day' WHEN d.kind = 'trace' THEN interval '2 hours'
    WHEN d.kind = 'task' AND d.body ->> 'status' IN ('done', 'failed', 'cancelled') THEN interval '2 days' END;
  IF was.version IS NULL THEN
    INSERT INTO swarm_team.documents SELECT d.*;
  ELSE
    UPDATE swarm_team.documents k SET version = d.version, based = d.based, machine = d.machine, member = d.member,
        at = d.at, until = d.until, size = d.size, body = d.body
      WHERE k.repository = p_repository AND k.kind = d.kind AND k.key = d.key;
  END IF;
  UPDATE swarm_team.repositories x SET documents_size = x.documents_size + d.size - coalesce(was.size, 0)
    WHERE x.key = p_repository;
  teller.session := '';
  teller.machine := p_machine;
  teller.member := session_user;
  PERFORM swarm_team.log(p_repository, 'document', teller, NULL, NULL, swarm_team.document_row(d));
  UPDATE swarm_team.changes c SET size = d.size WHERE c.repository = p_repository AND c.version = d.version;
  RETURN jsonb_build_object('ok', true, 'version', d.version);
END $$;

REVOKE ALL ON ALL TABLES IN SCHEMA swarm_team FROM PUBLIC;
REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA swarm_team FROM PUBLIC;
GRANT EXECUTE ON FUNCTION swarm_team.put TO swarm_team_member;
