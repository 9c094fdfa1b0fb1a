-- The team's side: who holds what of each repository, on every machine. Applied by swarm_mcp/team/connection.py as the
-- role swarm_team_owner, which owns everything here and cannot log in. Machines call the functions at the end and have
-- no right to any table. What the answers look like is said in swarm_mcp/team/protocol.py, once.
--
-- Rules that everything below keeps:
-- * One who changes anything of a repository has its row (swarm_team.repositories) FOR UPDATE until the commit. So
--   versions are given in the order of commits, and nobody who reads version v can later meet a lower one.
-- * Rows are locked in this order: server, repository, machines. Never the other way.
-- * A lease is over only where this clock says so AND the one who asks proves that it has seen no new beat of it for a
--   whole lease, by the clock of its own machine (`silent`: the beat that it has seen last). This clock can be set.
-- * Times are clock_timestamp(): a transaction may have waited for a lock. Leases and times in answers are seconds.

-- ------------------------------------------------------------------------------------------------------- tables

-- The server as it was when a call last looked. Another system identifier or timeline: it is a copy, or has been
-- promoted, and may lack what was granted. `started`: when its last start was noticed; nobody could beat while it was
-- down, so that every lease counts as renewed then. `epoch` is made anew whenever all grants become void.
CREATE TABLE swarm_team.server (
  only_one boolean PRIMARY KEY DEFAULT true CHECK (only_one),
  epoch text NOT NULL,
  system bigint NOT NULL,
  timeline integer NOT NULL,
  postmaster timestamptz NOT NULL,
  started timestamptz NOT NULL);

-- Who may see whom: the members of a group role. A repository belongs to one circle; to another it does not exist.
CREATE TABLE swarm_team.circles (name text PRIMARY KEY, role name NOT NULL UNIQUE);

-- version  of the last change; mark: a number that only this change has, by which both sides know that they speak of
--          the same one (a server that was put back to an earlier state gives out its versions a second time)
-- floor    changes up to this version are not kept any more
-- era      how often the grants of this repository alone have become void
-- channel  where its changes are told (LISTEN); nobody can guess it
-- grace_until  until then only what was held before is granted
CREATE TABLE swarm_team.repositories (
  key bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  circle text NOT NULL REFERENCES swarm_team.circles,
  name text NOT NULL,
  version bigint NOT NULL DEFAULT 0,
  mark bigint NOT NULL DEFAULT 0,
  floor bigint NOT NULL DEFAULT 0,
  era integer NOT NULL DEFAULT 0,
  channel text NOT NULL DEFAULT 'swarm_' || replace(gen_random_uuid()::text, '-', ''),
  grace_until timestamptz NOT NULL DEFAULT to_timestamp(0),
  UNIQUE (circle, name));

-- A machine, and its mirror: good until `until`, known to have everything up to `acked`; no mirror where `lease` is 0.
-- incarnation   of the agent that speaks for it: an older one, and a copy of the machine, is refused
-- awaited_until after a start of the server: grants wait until then, or until this machine has been heard of
CREATE TABLE swarm_team.machines (
  repository bigint NOT NULL REFERENCES swarm_team.repositories ON DELETE CASCADE,
  machine text NOT NULL,
  member name NOT NULL,
  incarnation text NOT NULL,
  joined bigint NOT NULL,
  acked bigint NOT NULL,
  lease interval NOT NULL,
  until timestamptz NOT NULL,
  beats bigint NOT NULL DEFAULT 0,
  awaited_until timestamptz,
  PRIMARY KEY (repository, machine, member)) WITH (fillfactor = 50);

CREATE TABLE swarm_team.sessions (
  repository bigint NOT NULL REFERENCES swarm_team.repositories ON DELETE CASCADE,
  session text NOT NULL,
  machine text NOT NULL,
  member name NOT NULL,
  label text NOT NULL,
  joined bigint NOT NULL,
  lease interval NOT NULL,
  until timestamptz NOT NULL,
  beats bigint NOT NULL DEFAULT 0,
  PRIMARY KEY (repository, session)) WITH (fillfactor = 50);

CREATE TABLE swarm_team.locks (
  repository bigint NOT NULL,
  lock bigint NOT NULL,
  session text NOT NULL,
  agent text NOT NULL,
  place text COLLATE "C" NOT NULL,
  is_folder boolean NOT NULL,
  pattern text COLLATE "C" NOT NULL,
  base text COLLATE "C" NOT NULL,
  region text COLLATE "C" NOT NULL,
  mode text NOT NULL CHECK (mode IN ('exclusive', 'shared')),
  note text NOT NULL,
  ttl float8,
  expected_end bigint,
  task_id text,
  fence bigint NOT NULL,
  granted_at timestamptz NOT NULL,
  PRIMARY KEY (repository, lock),
  FOREIGN KEY (repository, session) REFERENCES swarm_team.sessions ON DELETE CASCADE);
CREATE INDEX locks_region ON swarm_team.locks (repository, region);
CREATE INDEX locks_session ON swarm_team.locks (repository, session);

CREATE TABLE swarm_team.waits (
  repository bigint NOT NULL,
  number bigint NOT NULL,
  session text NOT NULL,
  agent text NOT NULL,
  ticket text NOT NULL,
  mode text NOT NULL CHECK (mode IN ('exclusive', 'shared')),
  wants jsonb NOT NULL,
  since timestamptz NOT NULL,
  until timestamptz,
  PRIMARY KEY (repository, number),
  UNIQUE (repository, session, ticket),
  FOREIGN KEY (repository, session) REFERENCES swarm_team.sessions ON DELETE CASCADE);

-- The log, which replicas apply in order. `kind` and `body` are open: messages, tasks and values are to be more kinds,
-- with functions and tables of their own; a replica passes over kinds that it does not know. `mode` and `regions` are
-- there for kinds that may keep another off something.
CREATE TABLE swarm_team.changes (
  repository bigint NOT NULL REFERENCES swarm_team.repositories ON DELETE CASCADE,
  version bigint NOT NULL,
  mark bigint NOT NULL,
  kind text NOT NULL,
  session text NOT NULL,
  machine text NOT NULL,
  member name NOT NULL,
  mode text,
  regions text[] COLLATE "C",
  body jsonb NOT NULL,
  at timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (repository, version));

-- ---------------------------------------------------------------------------------------------- small questions

-- As protocol.regions_meet: whether one place is the other, or lies in it.
CREATE FUNCTION swarm_team.regions_meet(a text, b text) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
  SELECT a = b OR a = '' OR b = '' OR starts_with(a, b || '/') OR starts_with(b, a || '/') $$;

-- Every place over `place`, '' and itself too.
CREATE FUNCTION swarm_team.over(place text) RETURNS text[] LANGUAGE sql IMMUTABLE AS $$
  SELECT array_agg(array_to_string((string_to_array(place, '/'))[1:n], '/'))
    FROM generate_series(0, cardinality(string_to_array(place, '/'))) n $$;

-- Of what a server writes now: another one after each promotion of a replica.
CREATE FUNCTION swarm_team.timeline() RETURNS integer LANGUAGE sql STABLE AS $$
  SELECT ('x' || left(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_lsn()), 8))::bit(32)::integer $$;

CREATE FUNCTION swarm_team.seconds(p interval) RETURNS float8 LANGUAGE sql IMMUTABLE AS $$
  SELECT extract(epoch FROM p)::float8 $$;

-- A beat, as text to compare with. The version at which its owner joined is in it: one who joins anew counts anew.
CREATE FUNCTION swarm_team.beat_of(joined bigint, beats bigint) RETURNS text LANGUAGE sql IMMUTABLE AS $$
  SELECT joined || '.' || beats $$;

-- When a lease is over, by this clock.
CREATE FUNCTION swarm_team.ends(until timestamptz, lease interval) RETURNS timestamptz LANGUAGE sql STABLE AS $$
  SELECT greatest(until, s.started + lease) FROM swarm_team.server s $$;

-- Whether a last beat is so long ago that others should begin to count, or this clock has been put back since.
CREATE FUNCTION swarm_team.is_quiet(until timestamptz, lease interval) RETURNS boolean LANGUAGE sql VOLATILE AS $$
  SELECT until < clock_timestamp() + lease * 0.6 OR until > clock_timestamp() + lease * 1.01 $$;

CREATE FUNCTION swarm_team.member_of(p_circle text) RETURNS boolean LANGUAGE sql STABLE AS $$
  SELECT EXISTS (SELECT 1 FROM swarm_team.circles c JOIN pg_catalog.pg_roles r ON r.rolname = c.role
    WHERE c.name = p_circle AND pg_catalog.pg_has_role(session_user, r.oid, 'MEMBER')) $$;

CREATE FUNCTION swarm_team.epoch_of(r swarm_team.repositories) RETURNS text LANGUAGE sql STABLE AS $$
  SELECT concat_ws('.', s.epoch, s.system, s.timeline, r.era) FROM swarm_team.server s $$;

-- ------------------------------------------------------------------------------------------------- rows as told

CREATE FUNCTION swarm_team.session_row(s swarm_team.sessions) RETURNS jsonb LANGUAGE sql STABLE AS $$
  SELECT jsonb_build_object('session', s.session, 'machine', s.machine, 'member', s.member, 'label', s.label,
    'lease', swarm_team.seconds(s.lease), 'joined', s.joined) $$;

CREATE FUNCTION swarm_team.lock_row(l swarm_team.locks, s swarm_team.sessions) RETURNS jsonb LANGUAGE sql STABLE AS $$
  SELECT jsonb_build_object('lock', l.lock, 'fence', l.fence, 'session', l.session, 'machine', s.machine,
    'member', s.member, 'label', s.label, 'agent', l.agent, 'place', l.place, 'is_folder', l.is_folder,
    'pattern', l.pattern, 'base', l.base, 'region', l.region, 'mode', l.mode, 'note', l.note, 'ttl', l.ttl,
    'expected_end', l.expected_end, 'task_id', l.task_id, 'granted_at', extract(epoch FROM l.granted_at)::float8) $$;

CREATE FUNCTION swarm_team.wait_row(w swarm_team.waits, s swarm_team.sessions) RETURNS jsonb LANGUAGE sql STABLE AS $$
  SELECT jsonb_build_object('number', w.number, 'session', w.session, 'machine', s.machine, 'member', s.member,
    'label', s.label, 'agent', w.agent, 'ticket', w.ticket, 'mode', w.mode, 'wants', w.wants,
    'since', extract(epoch FROM w.since)::float8, 'until', extract(epoch FROM w.until)::float8) $$;

-- Everything of a repository, in one statement, so that it is of one moment; `p_machine` and `p_member` NULL: of all.
CREATE FUNCTION swarm_team.everything(p_repository bigint, p_machine text, p_member name) RETURNS jsonb
LANGUAGE sql STABLE AS $$
  WITH here AS (SELECT s FROM swarm_team.sessions s WHERE s.repository = p_repository
    AND (p_machine IS NULL OR (s.machine = p_machine AND s.member = p_member)))
  SELECT jsonb_build_object(
    'sessions', (SELECT coalesce(jsonb_agg(swarm_team.session_row(h.s) ORDER BY (h.s).joined), '[]') FROM here h),
    'locks', (SELECT coalesce(jsonb_agg(swarm_team.lock_row(l, h.s) ORDER BY l.fence), '[]')
      FROM swarm_team.locks l JOIN here h ON (h.s).session = l.session WHERE l.repository = p_repository),
    'waits', (SELECT coalesce(jsonb_agg(swarm_team.wait_row(w, h.s) ORDER BY w.number), '[]')
      FROM swarm_team.waits w JOIN here h ON (h.s).session = w.session WHERE w.repository = p_repository)) $$;

-- News: what one lacks who has everything up to `p_seen` (0: nothing). At most 500 changes. One statement each.
CREATE FUNCTION swarm_team.news(p_repository bigint, p_seen bigint) RETURNS jsonb LANGUAGE plpgsql STABLE AS $$
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
      FROM (SELECT * FROM swarm_team.changes x WHERE x.repository = r.key AND x.version > p_seen
        ORDER BY x.version LIMIT 500) c)
    END INTO answer FROM swarm_team.repositories r WHERE r.key = p_repository;
  RETURN answer;
END $$;

-- --------------------------------------------------------------------------------------------- changes, inside

-- Writes a change down; its version. The caller has the repository's row. What is to be told is left for `hint`.
-- Every 256 changes those are removed that nobody needs: older than the last 1000, and seen by every live mirror. Who
-- comes back with less is given everything instead.
CREATE FUNCTION swarm_team.log(p_repository bigint, p_kind text, s swarm_team.sessions, p_mode text, p_regions text[],
  p_body jsonb) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE r swarm_team.repositories; keep bigint;
BEGIN
  UPDATE swarm_team.repositories SET version = version + 1, mark = floor(random() * 9007199254740991)::bigint + 1
    WHERE key = p_repository RETURNING * INTO r;
  INSERT INTO swarm_team.changes (repository, version, mark, kind, session, machine, member, mode, regions, body)
    VALUES (p_repository, r.version, r.mark, p_kind, s.session, s.machine, s.member, p_mode, p_regions, p_body);
  PERFORM set_config('swarm_team.told', r.channel || ' ' || r.version, false);
  IF r.version % 256 = 0 THEN
    SELECT least(r.version - 1000, min(m.acked)) INTO keep FROM swarm_team.machines m
      WHERE m.repository = p_repository AND m.lease > '0' AND swarm_team.ends(m.until, m.lease) > clock_timestamp();
    IF keep > r.floor THEN
      DELETE FROM swarm_team.changes c WHERE c.repository = p_repository AND c.version <= keep;
      UPDATE swarm_team.repositories SET floor = keep WHERE key = p_repository;
    END IF;
  END IF;
  RETURN r.version;
END $$;

-- Removes a lock and says so; the version.
CREATE FUNCTION swarm_team.drop_lock(l swarm_team.locks, p_reason text, p_by text) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE s swarm_team.sessions;
BEGIN
  DELETE FROM swarm_team.locks k WHERE k.repository = l.repository AND k.lock = l.lock;
  SELECT * INTO s FROM swarm_team.sessions x WHERE x.repository = l.repository AND x.session = l.session;
  RETURN swarm_team.log(l.repository, 'unlock', s, l.mode, ARRAY[l.region],
    swarm_team.lock_row(l, s) || jsonb_build_object('reason', p_reason, 'by', p_by));
END $$;

CREATE FUNCTION swarm_team.drop_wait(w swarm_team.waits, p_reason text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE s swarm_team.sessions;
BEGIN
  DELETE FROM swarm_team.waits k WHERE k.repository = w.repository AND k.number = w.number;
  SELECT * INTO s FROM swarm_team.sessions x WHERE x.repository = w.repository AND x.session = w.session;
  RETURN swarm_team.log(w.repository, 'leave', s, NULL, NULL,
    swarm_team.wait_row(w, s) || jsonb_build_object('reason', p_reason));
END $$;

-- Removes a session with all that it holds and waits for; the version.
CREATE FUNCTION swarm_team.drop_session(s swarm_team.sessions, p_reason text) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE l swarm_team.locks; w swarm_team.waits;
BEGIN
  FOR l IN SELECT * FROM swarm_team.locks k WHERE k.repository = s.repository AND k.session = s.session LOOP
    PERFORM swarm_team.drop_lock(l, p_reason, '');
  END LOOP;
  FOR w IN SELECT * FROM swarm_team.waits k WHERE k.repository = s.repository AND k.session = s.session LOOP
    PERFORM swarm_team.drop_wait(w, p_reason);
  END LOOP;
  DELETE FROM swarm_team.sessions x WHERE x.repository = s.repository AND x.session = s.session;
  RETURN swarm_team.log(s.repository, 'gone', s, NULL, NULL,
    swarm_team.session_row(s) || jsonb_build_object('reason', p_reason));
END $$;

-- All that was granted in a repository is void. Versions go on far above any that may have been given out and lost, so
-- that fences still rise. For the lease of the slowest session (two minutes at most), or until every machine that was
-- there has said `hello` again and so knows, and for the lease of a mirror in any case, only what was held before is
-- granted: a machine that does not know yet goes on believing for as long.
CREATE FUNCTION swarm_team.void(p_repository bigint, p_seen bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE belief interval; mirror interval; last timestamptz;
BEGIN
  SELECT least(max(s.lease), '2 minutes') INTO belief FROM swarm_team.sessions s WHERE s.repository = p_repository;
  SELECT max(m.lease), max(m.until) INTO mirror, last FROM swarm_team.machines m
    WHERE m.repository = p_repository AND m.lease > '0';
  DELETE FROM swarm_team.sessions s WHERE s.repository = p_repository;  -- with their locks and places
  DELETE FROM swarm_team.changes c WHERE c.repository = p_repository;
  UPDATE swarm_team.machines m SET acked = 0, awaited_until =
      CASE WHEN m.until >= last - greatest(belief, mirror) * 2 THEN clock_timestamp() + greatest(belief, mirror) END
    WHERE m.repository = p_repository;
  UPDATE swarm_team.repositories SET version = greatest(version, p_seen) + 1048576, floor = greatest(version, p_seen)
      + 1048576, mark = floor(random() * 9007199254740991)::bigint + 1, era = era + 1,
      grace_until = clock_timestamp() + coalesce(mirror, '5 s')
    WHERE key = p_repository;
END $$;

-- The first thing that every call does: has the server been started, promoted or restored since the last one? After a
-- plain start nothing is lost, unless what was started is a copy. Machines know (their `mark` is not ours): so grants
-- wait until each that was there has been heard of, for the lease of its mirror at most.
CREATE FUNCTION swarm_team.note_start() RETURNS void LANGUAGE plpgsql AS $$
DECLARE s swarm_team.server; here bigint; r bigint;
BEGIN
  SELECT * INTO s FROM swarm_team.server;
  IF s.postmaster = pg_postmaster_start_time() AND s.timeline = swarm_team.timeline() THEN
    IF s.started > clock_timestamp() THEN  -- this clock was put back
      UPDATE swarm_team.server SET started = clock_timestamp() WHERE started > clock_timestamp();
    END IF;
    RETURN;
  END IF;
  SELECT * INTO s FROM swarm_team.server FOR UPDATE;
  IF s.postmaster = pg_postmaster_start_time() AND s.timeline = swarm_team.timeline() THEN RETURN; END IF;
  SELECT c.system_identifier INTO here FROM pg_control_system() c;
  IF s.system <> here OR s.timeline <> swarm_team.timeline() THEN
    FOR r IN SELECT key FROM swarm_team.repositories ORDER BY key FOR UPDATE LOOP
      PERFORM swarm_team.void(r, 0);
    END LOOP;
    s.epoch := gen_random_uuid()::text;
  ELSE
    PERFORM 1 FROM swarm_team.repositories ORDER BY key FOR UPDATE;
    UPDATE swarm_team.machines m SET awaited_until = clock_timestamp() + m.lease FROM
        (SELECT x.repository, max(x.until) AS last FROM swarm_team.machines x GROUP BY 1) t
      WHERE t.repository = m.repository AND m.lease > '0' AND m.until >= t.last - m.lease * 2;
  END IF;
  UPDATE swarm_team.server SET epoch = s.epoch, system = here, timeline = swarm_team.timeline(),
    postmaster = pg_postmaster_start_time(), started = clock_timestamp();
END $$;

-- Seconds for which only what was held before is granted.
CREATE FUNCTION swarm_team.grace(r swarm_team.repositories) RETURNS float8 LANGUAGE sql VOLATILE AS $$
  SELECT swarm_team.seconds(greatest('0', r.grace_until - clock_timestamp(), (SELECT max(m.awaited_until)
    FROM swarm_team.machines m WHERE m.repository = r.key) - clock_timestamp())) $$;

-- Whether one who has everything up to `p_seen` with this mark speaks of the changes that we have.
CREATE FUNCTION swarm_team.same_history(r swarm_team.repositories, p_seen bigint, p_mark bigint) RETURNS boolean
LANGUAGE sql STABLE AS $$
  SELECT CASE WHEN p_seen = 0 THEN true WHEN p_seen = r.version THEN p_mark = r.mark WHEN p_seen > r.version THEN false
    WHEN p_seen <= r.floor THEN true ELSE coalesce((SELECT c.mark = p_mark FROM swarm_team.changes c
      WHERE c.repository = r.key AND c.version = p_seen), false) END $$;

-- ------------------------------------------------------------------------------------------------ who may

CREATE FUNCTION swarm_team.refuse(p_words text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN RAISE EXCEPTION USING ERRCODE = 'ST003', MESSAGE = p_words; END $$;

-- An incarnation is AGENT.NUMBER: a name that this agent alone has, and how often it has connected. Whether p is later
-- than q, of the same agent. What was asked over an earlier connection may come late, when its asker has given up, has
-- asked something else since and believes that: it is refused like an older agent.
CREATE FUNCTION swarm_team.follows(p text, q text) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
  SELECT split_part(p, '.', 1) = split_part(q, '.', 1)
    AND split_part(p, '.', 2)::bigint > split_part(q, '.', 2)::bigint $$;

-- The machine's row, locked; refuses another's, an older agent, and one that has not said hello.
CREATE FUNCTION swarm_team.speaks(p_repository bigint, p_machine text, p_incarnation text)
RETURNS swarm_team.machines LANGUAGE plpgsql AS $$
DECLARE m swarm_team.machines;
BEGIN
  SELECT * INTO m FROM swarm_team.machines x WHERE x.repository = p_repository AND x.machine = p_machine
    AND x.member = session_user FOR UPDATE;
  IF NOT FOUND THEN RAISE EXCEPTION USING ERRCODE = 'ST002', MESSAGE = 'this machine has not said hello'; END IF;
  IF m.incarnation <> p_incarnation THEN
    IF NOT swarm_team.follows(p_incarnation, m.incarnation) THEN
      RAISE EXCEPTION USING ERRCODE = 'ST001', MESSAGE = format('another agent speaks for machine %s now', p_machine);
    END IF;
    UPDATE swarm_team.machines x SET incarnation = p_incarnation WHERE x.repository = p_repository
      AND x.machine = p_machine AND x.member = session_user;
  END IF;
  RETURN m;
END $$;

-- Begins a change: the repository's row, locked; NULL where the caller's epoch is over. Refuses who may not. To one
-- who is not in its circle a repository is not there.
CREATE FUNCTION swarm_team.enter(p_repository bigint, p_machine text, p_incarnation text, p_epoch text)
RETURNS swarm_team.repositories LANGUAGE plpgsql AS $$
DECLARE r swarm_team.repositories;
BEGIN
  PERFORM swarm_team.note_start();
  SELECT * INTO r FROM swarm_team.repositories WHERE key = p_repository FOR UPDATE;
  IF r.key IS NULL OR NOT swarm_team.member_of(r.circle) THEN
    RAISE EXCEPTION USING ERRCODE = 'insufficient_privilege', MESSAGE = 'no such repository';
  END IF;
  IF p_epoch <> swarm_team.epoch_of(r) THEN RETURN NULL; END IF;
  IF swarm_team.grace(r) > 120 THEN  -- it never is that long: this clock was put back
    UPDATE swarm_team.repositories x SET grace_until = least(x.grace_until, clock_timestamp() + interval '1 minute')
      WHERE x.key = p_repository RETURNING * INTO r;
    UPDATE swarm_team.machines m SET awaited_until = least(m.awaited_until, clock_timestamp() + interval '1 minute')
      WHERE m.repository = p_repository;
  END IF;
  PERFORM swarm_team.speaks(p_repository, p_machine, p_incarnation);
  RETURN r;
END $$;

-- A session of this machine that has not lapsed; NULL where there is none.
CREATE FUNCTION swarm_team.own_session(p_repository bigint, p_machine text, p_session text)
RETURNS swarm_team.sessions LANGUAGE sql VOLATILE AS $$
  SELECT * FROM swarm_team.sessions s WHERE s.repository = p_repository AND s.session = p_session
    AND s.machine = p_machine AND s.member = session_user
    AND swarm_team.ends(s.until, s.lease) > clock_timestamp() $$;

-- Refuses a Want that cannot be.
CREATE FUNCTION swarm_team.check_want(w jsonb) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
  IF jsonb_typeof(w) <> 'object' OR w ->> 'place' IS NULL OR w ->> 'region' IS NULL OR w ->> 'pattern' IS NULL
      OR w ->> 'base' IS NULL OR jsonb_typeof(w -> 'is_folder') IS DISTINCT FROM 'boolean' THEN
    PERFORM swarm_team.refuse('a want needs place, is_folder, pattern, base and region');
  END IF;
  IF octet_length(w ->> 'place') > 2000 OR octet_length(w ->> 'region') > 2400 OR octet_length(w ->> 'base') > 2000
      OR char_length(w ->> 'pattern') > 512 OR octet_length(coalesce(w ->> 'note', '')) > 2048
      OR char_length(coalesce(w ->> 'agent', '')) > 200 OR char_length(coalesce(w ->> 'task_id', '')) > 200 THEN
    PERFORM swarm_team.refuse('a path has at most 2000 bytes for the team, a pattern 512 letters, a note 2048 bytes');
  END IF;
  -- A region that is too small would meet too little. Letter case may change how long a name is, not how many there are.
  IF (w ->> 'pattern' = '' AND cardinality(string_to_array(w ->> 'place', '/'))
        <> cardinality(string_to_array(w ->> 'region', '/')))
      OR (w ->> 'pattern' <> '' AND (w ->> 'place' <> '' OR cardinality(string_to_array(w ->> 'region', '/'))
        > cardinality(string_to_array(w ->> 'base', '/')) + cardinality(string_to_array(w ->> 'pattern', '/')))) THEN
    PERFORM swarm_team.refuse('a want''s region is not that of its path or pattern');
  END IF;
END $$;

-- ----------------------------------------------------------------------------------------------------- the calls
-- p_repository, p_machine, p_incarnation, p_epoch: who asks; see `hello`. Errors: insufficient_privilege (may not),
-- ST001 (another agent speaks for this machine), ST002 (say hello first), ST003 (asked for what cannot be).

-- HelloAnswer. Registers a machine (makes the repository known in the caller's circle), with a mirror good for
-- p_lease seconds (0: it has none) that has everything up to p_acked with p_mark. p_epoch: that which the caller's
-- replica and grants are of, '' for one that has neither, or has given them up. `why` is 'epoch' where that is over:
-- nothing is registered then. From now on no other agent speaks for this machine.
CREATE FUNCTION swarm_team.hello(p_name text, p_circle text, p_machine text, p_incarnation text, p_epoch text,
  p_acked bigint, p_mark bigint, p_lease float8) RETURNS jsonb
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE circles text[]; r swarm_team.repositories; lease interval := make_interval(secs => p_lease);
BEGIN
  PERFORM swarm_team.note_start();
  IF char_length(p_name) NOT BETWEEN 1 AND 500 OR char_length(p_machine) NOT BETWEEN 1 AND 200
      OR p_incarnation !~ '^[0-9a-z]{8,80}\.[0-9]{1,15}$' OR p_lease NOT BETWEEN 0 AND 60 THEN
    PERFORM swarm_team.refuse('a repository''s name has 1 to 500 letters, a machine''s 1 to 200, a mirror''s lease 0 to 60 s');
  END IF;
  SELECT array_agg(c.name ORDER BY c.name) INTO circles FROM swarm_team.circles c
    WHERE (p_circle = '' OR c.name = p_circle) AND swarm_team.member_of(c.name);
  IF circles IS NULL THEN
    RAISE EXCEPTION USING ERRCODE = 'insufficient_privilege', MESSAGE = CASE p_circle WHEN '' THEN
      format('role %s is in no circle of this team', session_user) ELSE format('role %s is not in a circle %s',
      session_user, p_circle) END;
  END IF;
  IF cardinality(circles) > 1 AND (SELECT count(*) FROM swarm_team.repositories x
      WHERE x.circle = ANY (circles) AND x.name = p_name) = 1 THEN
    SELECT ARRAY[x.circle] INTO circles FROM swarm_team.repositories x WHERE x.circle = ANY (circles) AND x.name = p_name;
  END IF;
  IF cardinality(circles) > 1 THEN
    PERFORM swarm_team.refuse(format('you are in several circles, say which: %s', array_to_string(circles, ', ')));
  END IF;
  INSERT INTO swarm_team.repositories (circle, name) VALUES (circles[1], p_name) ON CONFLICT DO NOTHING;
  SELECT * INTO r FROM swarm_team.repositories x WHERE x.circle = circles[1] AND x.name = p_name FOR UPDATE;
  IF p_epoch = swarm_team.epoch_of(r) AND NOT swarm_team.same_history(r, p_acked, p_mark) THEN
    PERFORM swarm_team.void(r.key, p_acked);
    SELECT * INTO r FROM swarm_team.repositories x WHERE x.key = r.key;
  END IF;
  IF p_epoch NOT IN ('', swarm_team.epoch_of(r)) THEN
    RETURN '{"ok": false, "why": "epoch"}';
  END IF;
  IF EXISTS (SELECT 1 FROM swarm_team.machines m WHERE m.repository = r.key AND m.machine = p_machine
      AND m.member = session_user AND swarm_team.follows(m.incarnation, p_incarnation)) THEN
    RAISE EXCEPTION USING ERRCODE = 'ST001', MESSAGE = 'this agent has connected anew since it said that';
  END IF;
  INSERT INTO swarm_team.machines AS m (repository, machine, member, incarnation, joined, acked, lease, until)
    VALUES (r.key, p_machine, session_user, p_incarnation, r.version, p_acked, lease, clock_timestamp() + lease)
    ON CONFLICT (repository, machine, member) DO UPDATE SET incarnation = excluded.incarnation, acked = excluded.acked,
      lease = excluded.lease, until = excluded.until, beats = m.beats + 1, awaited_until = NULL;
  RETURN jsonb_build_object('ok', true, 'repository', r.key, 'circle', r.circle, 'channel', r.channel, 'protocol', 1,
    'schema', (SELECT max(number) FROM swarm_team.migrations), 'epoch', swarm_team.epoch_of(r),
    'news', swarm_team.news(r.key, CASE WHEN p_epoch = '' THEN 0 ELSE p_acked END));
END $$;

-- BeatAnswer. This machine lives, and its mirror has everything up to p_acked (NULL: it cannot apply what is new, and
-- is not to count as fresh). p_sessions: [{session, label, lease}] of those whose leases begin anew; one that is not
-- there joins. The mirror's row is written before the news are read: `settle` counts on it. Not flushed to the disk: a
-- crash may forget beats, not grants, and renews every lease.
CREATE FUNCTION swarm_team.beat(p_repository bigint, p_machine text, p_incarnation text, p_epoch text, p_acked bigint,
  p_mark bigint, p_sessions jsonb) RETURNS jsonb
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE r swarm_team.repositories; s swarm_team.sessions; told record; joined jsonb := '{}'; v bigint; changes boolean;
BEGIN
  PERFORM swarm_team.note_start();
  IF jsonb_array_length(p_sessions) > 1000 THEN PERFORM swarm_team.refuse('a machine has at most 1000 sessions'); END IF;
  SELECT * INTO r FROM swarm_team.repositories WHERE key = p_repository;
  IF r.key IS NULL OR NOT swarm_team.member_of(r.circle) THEN
    RAISE EXCEPTION USING ERRCODE = 'insufficient_privilege', MESSAGE = 'no such repository';
  END IF;
  SELECT EXISTS (SELECT 1 FROM jsonb_to_recordset(p_sessions) AS x(session text, label text, lease float8)
    LEFT JOIN swarm_team.sessions k ON k.repository = p_repository AND k.session = x.session
    WHERE k.session IS NULL OR (k.machine = p_machine AND k.member = session_user
      AND (k.label <> x.label OR k.lease <> make_interval(secs => x.lease)))) INTO changes;
  IF changes OR NOT swarm_team.same_history(r, coalesce(p_acked, 0), p_mark) THEN
    SELECT * INTO r FROM swarm_team.repositories WHERE key = p_repository FOR UPDATE;
    IF p_epoch = swarm_team.epoch_of(r) AND NOT swarm_team.same_history(r, coalesce(p_acked, 0), p_mark) THEN
      PERFORM swarm_team.void(p_repository, p_acked);
    END IF;
  ELSE
    SET LOCAL synchronous_commit = off;
  END IF;
  PERFORM swarm_team.speaks(p_repository, p_machine, p_incarnation);
  SELECT * INTO r FROM swarm_team.repositories WHERE key = p_repository;  -- as it is now that our row is locked
  IF p_epoch <> swarm_team.epoch_of(r) THEN
    RETURN '{"ok": false, "why": "epoch"}';
  END IF;
  UPDATE swarm_team.machines m SET beats = m.beats + 1, awaited_until = NULL,
      until = CASE WHEN p_acked IS NULL THEN m.until ELSE clock_timestamp() + m.lease END,
      acked = coalesce(p_acked, m.acked)
    WHERE m.repository = p_repository AND m.machine = p_machine AND m.member = session_user;
  FOR told IN SELECT * FROM jsonb_to_recordset(p_sessions) AS x(session text, label text, lease float8) LOOP
    UPDATE swarm_team.sessions k SET beats = k.beats + 1,
        until = clock_timestamp() + make_interval(secs => told.lease)
      WHERE k.repository = p_repository AND k.session = told.session AND k.machine = p_machine
        AND k.member = session_user RETURNING * INTO s;
    IF FOUND AND s.label = told.label AND s.lease = make_interval(secs => told.lease) THEN
      joined := joined || jsonb_build_object(s.session, s.joined);
      CONTINUE;
    END IF;
    CONTINUE WHEN NOT changes OR (s.session IS NULL AND EXISTS (SELECT 1 FROM swarm_team.sessions k
      WHERE k.repository = p_repository AND k.session = told.session));  -- another's; or it has gone just now
    IF told.session = '' OR char_length(told.session) > 200 OR told.label IS NULL OR char_length(told.label) > 1000
        OR coalesce(told.lease, 0) NOT BETWEEN 1 AND 2592000 THEN
      PERFORM swarm_team.refuse('a session''s name has 1 to 200 letters, its label at most 1000, its lease 1 s to 30 days');
    END IF;
    SELECT x.version + 1 INTO v FROM swarm_team.repositories x WHERE x.key = p_repository;
    INSERT INTO swarm_team.sessions AS k (repository, session, machine, member, label, joined, lease, until)
      VALUES (p_repository, told.session, p_machine, session_user, told.label, v, make_interval(secs => told.lease),
        clock_timestamp() + make_interval(secs => told.lease))
      ON CONFLICT (repository, session) DO UPDATE SET label = excluded.label, lease = excluded.lease
      RETURNING * INTO s;
    PERFORM swarm_team.log(p_repository, 'session', s, NULL, NULL, swarm_team.session_row(s));
    joined := joined || jsonb_build_object(s.session, s.joined);
  END LOOP;
  RETURN jsonb_build_object('ok', true, 'epoch', p_epoch, 'joined', joined,
    'news', swarm_team.news(p_repository, coalesce(p_acked, 0)), 'grace', swarm_team.grace(r),
    'settled', (SELECT least(x.version, min(m.acked)) FROM swarm_team.repositories x
      LEFT JOIN swarm_team.machines m ON m.repository = x.key AND m.lease > '0'
        AND (m.machine, m.member) <> (p_machine, session_user)
      WHERE x.key = p_repository GROUP BY x.version),
    'silent', (SELECT coalesce(jsonb_agg(q), '[]') FROM (
      SELECT jsonb_build_object('kind', 'session', 'id', k.session, 'beat', swarm_team.beat_of(k.joined, k.beats),
          'lease', swarm_team.seconds(k.lease)) AS q FROM swarm_team.sessions k
        WHERE k.repository = p_repository AND swarm_team.is_quiet(k.until, k.lease)
          AND (k.machine, k.member) <> (p_machine, session_user)
      UNION ALL
      SELECT swarm_team.mirror_heard(m) FROM swarm_team.machines m WHERE m.repository = p_repository
          AND m.lease > '0' AND swarm_team.is_quiet(m.until, m.lease)
          AND (m.machine, m.member) <> (p_machine, session_user)) x));
END $$;

-- Heard, of a mirror.
CREATE FUNCTION swarm_team.mirror_heard(m swarm_team.machines) RETURNS jsonb LANGUAGE sql STABLE AS $$
  SELECT jsonb_build_object('kind', 'mirror', 'id', m.member || '/' || m.machine,
    'beat', swarm_team.beat_of(m.joined, m.beats), 'lease', swarm_team.seconds(m.lease)) $$;

-- A lock of another session on a plain path that meets this one; NULL where there is none. Those in it and those on
-- folders over it are looked for apart: each by the index.
CREATE FUNCTION swarm_team.in_the_way(p_repository bigint, p_session text, p_place text, p_region text, p_mode text)
RETURNS swarm_team.locks LANGUAGE plpgsql STABLE AS $$
DECLARE hit swarm_team.locks;
BEGIN
  IF p_region <> '' THEN
    SELECT * INTO hit FROM swarm_team.locks k WHERE k.repository = p_repository
      AND k.region > (p_region || '/') COLLATE "C" AND k.region < (p_region || '0') COLLATE "C"
      AND k.session <> p_session AND k.pattern = '' AND NOT (k.mode = 'shared' AND p_mode = 'shared')
      AND swarm_team.regions_meet(k.place, p_place) LIMIT 1;
    IF FOUND THEN RETURN hit; END IF;
  END IF;
  SELECT * INTO hit FROM swarm_team.locks k WHERE k.repository = p_repository
    AND (p_region = '' OR k.region = ANY (swarm_team.over(p_region)))
    AND k.session <> p_session AND k.pattern = '' AND NOT (k.mode = 'shared' AND p_mode = 'shared')
    AND swarm_team.regions_meet(k.place, p_place) LIMIT 1;
  RETURN hit;
END $$;

-- AcquireAnswer. Grants all p_wants to a session of this machine, or none: a compare and set. What somebody else was
-- given, or has stood in line for, since p_seen (with p_mark), and touches the same region, has not been looked at by
-- the machine, which alone knows patterns and who may pass whom: `stale`. As a second line plain paths of others are
-- compared here too. Asked again for what it has, a session is told what it has been told before.
CREATE FUNCTION swarm_team.acquire(p_repository bigint, p_machine text, p_incarnation text, p_epoch text,
  p_session text, p_wants jsonb, p_seen bigint, p_mark bigint) RETURNS jsonb
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE r swarm_team.repositories; s swarm_team.sessions; l swarm_team.locks; hit swarm_team.locks; w jsonb; v bigint;
  had bigint[] := '{}'; fences bigint[] := '{}'; locks bigint[] := '{}'; asked text[] := '{}'; modes text[] := '{}';
  again boolean := true; of_hit swarm_team.sessions; at timestamptz;
BEGIN
  r := swarm_team.enter(p_repository, p_machine, p_incarnation, p_epoch);
  IF r.key IS NULL THEN RETURN '{"ok": false, "why": "epoch"}'; END IF;
  s := swarm_team.own_session(p_repository, p_machine, p_session);
  IF s.session IS NULL THEN RETURN '{"ok": false, "why": "session"}'; END IF;
  IF jsonb_array_length(p_wants) NOT BETWEEN 1 AND 200 THEN PERFORM swarm_team.refuse('1 to 200 locks at once'); END IF;
  FOR w IN SELECT jsonb_array_elements(p_wants) LOOP
    PERFORM swarm_team.check_want(w);
    SELECT k.* INTO l FROM swarm_team.locks k WHERE k.repository = p_repository AND k.session = p_session
      AND k.agent = w ->> 'agent' AND k.region = w ->> 'region' AND k.place = w ->> 'place'
      AND k.pattern = w ->> 'pattern' AND k.base = w ->> 'base';
    IF l.mode = w ->> 'mode' THEN had := had || l.lock; CONTINUE; END IF;
    had := had || NULL::bigint;
    again := again AND coalesce((w ->> 'again')::boolean, false);
    asked := asked || (w ->> 'region');
    modes := modes || (w ->> 'mode');
  END LOOP;
  IF cardinality(asked) > 0 THEN
    IF NOT again AND swarm_team.grace(r) > 0 THEN
      RETURN jsonb_build_object('ok', false, 'why', 'grace', 'seconds', swarm_team.grace(r));
    END IF;
    IF p_seen <> r.version OR p_mark <> r.mark THEN
      IF NOT swarm_team.same_history(r, p_seen, p_mark) THEN
        PERFORM swarm_team.void(p_repository, p_seen);
        RETURN '{"ok": false, "why": "epoch"}';
      END IF;
      IF p_seen < r.floor OR EXISTS (
          SELECT 1 FROM swarm_team.changes c, unnest(c.regions) theirs, unnest(asked, modes) AS own(region, mode)
          WHERE c.repository = p_repository AND c.version > p_seen AND c.kind IN ('lock', 'wait')
            AND c.session <> p_session AND NOT (c.mode = 'shared' AND own.mode = 'shared')
            AND swarm_team.regions_meet(theirs, own.region)) THEN
        RETURN jsonb_build_object('ok', false, 'why', 'stale', 'news', swarm_team.news(p_repository, p_seen));
      END IF;
    END IF;
    FOR w IN SELECT x FROM jsonb_array_elements(p_wants) WITH ORDINALITY AS e(x, n)
        WHERE had[n] IS NULL AND x ->> 'pattern' = '' LOOP
      hit := swarm_team.in_the_way(p_repository, p_session, w ->> 'place', w ->> 'region', w ->> 'mode');
      IF hit.lock IS NOT NULL THEN
        SELECT * INTO of_hit FROM swarm_team.sessions x WHERE x.repository = p_repository AND x.session = hit.session;
        RETURN jsonb_build_object('ok', false, 'why', 'held', 'by', swarm_team.lock_row(hit, of_hit));
      END IF;
    END LOOP;
  END IF;
  v := r.version;
  at := clock_timestamp();
  FOR w IN SELECT jsonb_array_elements(p_wants) LOOP
    SELECT k.* INTO l FROM swarm_team.locks k WHERE k.repository = p_repository AND k.session = p_session
      AND k.agent = w ->> 'agent' AND k.region = w ->> 'region' AND k.place = w ->> 'place'
      AND k.pattern = w ->> 'pattern' AND k.base = w ->> 'base';
    hit := l;
    l.note := coalesce(w ->> 'note', '');
    l.ttl := (w ->> 'ttl')::float8;
    l.expected_end := (w ->> 'expected_end')::bigint;
    l.task_id := w ->> 'task_id';
    l.is_folder := (w ->> 'is_folder')::boolean;
    IF l.mode IS DISTINCT FROM w ->> 'mode' THEN  -- a new grant
      l.mode := w ->> 'mode';
      l.fence := v + 1;
      l.granted_at := at;
    END IF;
    IF l.lock IS NULL THEN
      l := (p_repository, v + 1, p_session, w ->> 'agent', w ->> 'place', l.is_folder, w ->> 'pattern', w ->> 'base',
        w ->> 'region', l.mode, l.note, l.ttl, l.expected_end, l.task_id, l.fence, l.granted_at)::swarm_team.locks;
      INSERT INTO swarm_team.locks SELECT l.*;
    ELSIF l IS DISTINCT FROM hit THEN
      UPDATE swarm_team.locks k SET mode = l.mode, note = l.note, ttl = l.ttl, expected_end = l.expected_end,
          task_id = l.task_id, is_folder = l.is_folder, fence = l.fence, granted_at = l.granted_at
        WHERE k.repository = p_repository AND k.lock = l.lock;
    END IF;
    IF l IS DISTINCT FROM hit THEN
      v := swarm_team.log(p_repository, 'lock', s, l.mode, ARRAY[l.region], swarm_team.lock_row(l, s));
    END IF;
    fences := fences || l.fence;
    locks := locks || l.lock;
  END LOOP;
  RETURN jsonb_build_object('ok', true, 'fences', fences, 'locks', locks, 'version', v, 'settled', NOT EXISTS (
    SELECT 1 FROM swarm_team.machines m WHERE m.repository = p_repository AND m.lease > '0'
      AND (m.machine, m.member) <> (p_machine, session_user)));
END $$;

-- The version of the last removal, 0 where there was none. p_locks: [[lock, fence or null], ...]; only this machine's,
-- and only with that fence. p_reason: a word for others to read.
CREATE FUNCTION swarm_team.release(p_repository bigint, p_machine text, p_incarnation text, p_epoch text,
  p_locks jsonb, p_reason text) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE l swarm_team.locks; v bigint := 0;
BEGIN
  IF (swarm_team.enter(p_repository, p_machine, p_incarnation, p_epoch)).key IS NULL THEN RETURN 0; END IF;
  FOR l IN SELECT k.* FROM jsonb_array_elements(p_locks) x JOIN swarm_team.locks k ON k.repository = p_repository
      AND k.lock = (x ->> 0)::bigint AND k.fence = coalesce((x ->> 1)::bigint, k.fence)
      JOIN swarm_team.sessions s ON s.repository = p_repository AND s.session = k.session
      WHERE s.machine = p_machine AND s.member = session_user LOOP
    v := swarm_team.drop_lock(l, left(p_reason, 40), '');
  END LOOP;
  RETURN v;
END $$;

-- Gives a lock to another session, with a new fence: ChangeAnswer. Inside.
CREATE FUNCTION swarm_team.hand_over(l swarm_team.locks, s swarm_team.sessions, p_reason text, p_said text)
RETURNS jsonb LANGUAGE plpgsql AS $$
DECLARE was text := l.session; hit swarm_team.locks;
BEGIN
  SELECT k.* INTO hit FROM swarm_team.locks k WHERE k.repository = l.repository AND k.session = s.session
    AND k.region = l.region AND k.place = l.place AND k.pattern = l.pattern AND k.base = l.base AND k.agent = '';
  IF FOUND THEN
    RETURN jsonb_build_object('ok', false, 'why', 'held', 'by', swarm_team.lock_row(hit, s));
  END IF;
  SELECT version + 1, clock_timestamp() INTO l.fence, l.granted_at FROM swarm_team.repositories WHERE key = l.repository;
  l.session := s.session;
  l.agent := '';
  UPDATE swarm_team.locks k SET session = l.session, agent = '', fence = l.fence, granted_at = l.granted_at
    WHERE k.repository = l.repository AND k.lock = l.lock;
  PERFORM swarm_team.log(l.repository, 'lock', s, l.mode, ARRAY[l.region], swarm_team.lock_row(l, s)
    || jsonb_build_object('was', was, 'reason', p_reason, 'said', p_said));
  RETURN jsonb_build_object('ok', true, 'version', l.fence, 'fence', l.fence);
END $$;

-- ChangeAnswer. Hands a lock of this machine's over to another session that has not lapsed, on whatever machine.
CREATE FUNCTION swarm_team.transfer(p_repository bigint, p_machine text, p_incarnation text, p_epoch text,
  p_lock bigint, p_fence bigint, p_to text) RETURNS jsonb
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE l swarm_team.locks; s swarm_team.sessions;
BEGIN
  IF (swarm_team.enter(p_repository, p_machine, p_incarnation, p_epoch)).key IS NULL THEN
    RETURN '{"ok": false, "why": "epoch"}';
  END IF;
  SELECT k.* INTO l FROM swarm_team.locks k JOIN swarm_team.sessions o ON o.repository = p_repository
      AND o.session = k.session
    WHERE k.repository = p_repository AND k.lock = p_lock AND k.fence = p_fence AND o.machine = p_machine
      AND o.member = session_user;
  IF NOT FOUND THEN RETURN '{"ok": false, "why": "not_held"}'; END IF;
  SELECT * INTO s FROM swarm_team.sessions k WHERE k.repository = p_repository AND k.session = p_to
    AND swarm_team.ends(k.until, k.lease) > clock_timestamp();
  IF NOT FOUND THEN RETURN '{"ok": false, "why": "session"}'; END IF;
  RETURN swarm_team.hand_over(l, s, 'transferred', '');
END $$;

-- ChangeAnswer. Takes a lock of another's for a session of this machine: from one that has lapsed, and is silent by
-- p_silent ({session: beat}), or with p_force from a living one, for a p_reason that is told.
CREATE FUNCTION swarm_team.steal(p_repository bigint, p_machine text, p_incarnation text, p_epoch text,
  p_lock bigint, p_fence bigint, p_session text, p_reason text, p_force boolean, p_silent jsonb) RETURNS jsonb
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE r swarm_team.repositories; l swarm_team.locks; s swarm_team.sessions; holder swarm_team.sessions;
BEGIN
  r := swarm_team.enter(p_repository, p_machine, p_incarnation, p_epoch);
  IF r.key IS NULL THEN RETURN '{"ok": false, "why": "epoch"}'; END IF;
  s := swarm_team.own_session(p_repository, p_machine, p_session);
  IF s.session IS NULL THEN RETURN '{"ok": false, "why": "session"}'; END IF;
  IF p_force AND (p_reason = '' OR octet_length(p_reason) > 2048) THEN
    PERFORM swarm_team.refuse('to take a lock from the living wants a reason, of at most 2048 bytes');
  END IF;
  IF swarm_team.grace(r) > 0 THEN
    RETURN jsonb_build_object('ok', false, 'why', 'grace', 'seconds', swarm_team.grace(r));
  END IF;
  SELECT k.* INTO l FROM swarm_team.locks k WHERE k.repository = p_repository AND k.lock = p_lock AND k.fence = p_fence;
  IF NOT FOUND THEN RETURN '{"ok": false, "why": "not_held"}'; END IF;
  SELECT * INTO holder FROM swarm_team.sessions k WHERE k.repository = p_repository AND k.session = l.session
    FOR UPDATE;  -- a beat of its that is under way comes first, or reads the news after us
  IF NOT p_force AND (swarm_team.ends(holder.until, holder.lease) > clock_timestamp() OR coalesce(
      p_silent ->> holder.session, '') <> swarm_team.beat_of(holder.joined, holder.beats)) THEN
    RETURN jsonb_build_object('ok', false, 'why', 'held', 'by', swarm_team.lock_row(l, holder));
  END IF;
  RETURN swarm_team.hand_over(l, s, 'stolen', p_reason);
END $$;

-- WaitAnswer. A place in line for p_wants ([{place, is_folder, pattern, base, region}]), behind all that there are.
-- Asked again with the same p_ticket, it is the same place. p_left: seconds, NULL for any time. `stale` where another
-- machine has taken any place since p_seen: order here is order there, and one of two sees a circle.
CREATE FUNCTION swarm_team.wait(p_repository bigint, p_machine text, p_incarnation text, p_epoch text, p_session text,
  p_ticket text, p_wants jsonb, p_mode text, p_agent text, p_left float8, p_seen bigint, p_mark bigint) RETURNS jsonb
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE r swarm_team.repositories; s swarm_team.sessions; t swarm_team.waits; w jsonb; wants jsonb := '[]';
  regions text[] := '{}';
BEGIN
  r := swarm_team.enter(p_repository, p_machine, p_incarnation, p_epoch);
  IF r.key IS NULL THEN RETURN '{"ok": false, "why": "epoch"}'; END IF;
  s := swarm_team.own_session(p_repository, p_machine, p_session);
  IF s.session IS NULL THEN RETURN '{"ok": false, "why": "session"}'; END IF;
  SELECT * INTO t FROM swarm_team.waits k WHERE k.repository = p_repository AND k.session = p_session
    AND k.ticket = p_ticket;
  IF FOUND THEN RETURN jsonb_build_object('ok', true, 'number', t.number); END IF;
  IF p_mode NOT IN ('exclusive', 'shared') OR char_length(p_ticket) NOT BETWEEN 1 AND 200
      OR char_length(p_agent) > 200 OR jsonb_array_length(p_wants) NOT BETWEEN 1 AND 200 THEN
    PERFORM swarm_team.refuse('a place in line needs a ticket, a mode and 1 to 200 wants');
  END IF;
  FOR w IN SELECT jsonb_array_elements(p_wants) LOOP
    PERFORM swarm_team.check_want(w);
    regions := regions || (w ->> 'region');
    wants := wants || jsonb_build_object('place', w ->> 'place', 'is_folder', w -> 'is_folder', 'pattern',
      w ->> 'pattern', 'base', w ->> 'base', 'region', w ->> 'region');
  END LOOP;
  IF NOT swarm_team.same_history(r, p_seen, p_mark) THEN
    PERFORM swarm_team.void(p_repository, p_seen);
    RETURN '{"ok": false, "why": "epoch"}';
  END IF;
  IF p_seen < r.floor OR EXISTS (
      SELECT 1 FROM swarm_team.changes c WHERE c.repository = p_repository AND c.version > p_seen AND c.kind = 'wait'
        AND (c.machine, c.member) <> (p_machine, session_user)) THEN
    RETURN jsonb_build_object('ok', false, 'why', 'stale', 'news', swarm_team.news(p_repository, p_seen));
  END IF;
  t := (p_repository, r.version + 1, p_session, p_agent, p_ticket, p_mode, wants, clock_timestamp(),
    clock_timestamp() + make_interval(secs => p_left))::swarm_team.waits;
  INSERT INTO swarm_team.waits SELECT t.*;
  PERFORM swarm_team.log(p_repository, 'wait', s, p_mode, regions, swarm_team.wait_row(t, s));
  RETURN jsonb_build_object('ok', true, 'number', t.number);
END $$;

-- The version of the last removal, 0 where there was none: gives up this machine's places with these numbers.
CREATE FUNCTION swarm_team.leave(p_repository bigint, p_machine text, p_incarnation text, p_epoch text,
  p_numbers bigint[]) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE w swarm_team.waits; v bigint := 0;
BEGIN
  IF (swarm_team.enter(p_repository, p_machine, p_incarnation, p_epoch)).key IS NULL THEN RETURN 0; END IF;
  FOR w IN SELECT k.* FROM swarm_team.waits k JOIN swarm_team.sessions s ON s.repository = p_repository
      AND s.session = k.session
      WHERE k.repository = p_repository AND k.number = ANY (p_numbers) AND s.machine = p_machine
        AND s.member = session_user ORDER BY k.number LOOP
    v := swarm_team.drop_wait(w, 'left');
  END LOOP;
  RETURN v;
END $$;

-- The version of the last removal, 0 where there was none: sessions of this machine have ended.
CREATE FUNCTION swarm_team.end_sessions(p_repository bigint, p_machine text, p_incarnation text, p_epoch text,
  p_sessions text[], p_reason text) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE s swarm_team.sessions; v bigint := 0;
BEGIN
  IF (swarm_team.enter(p_repository, p_machine, p_incarnation, p_epoch)).key IS NULL THEN RETURN 0; END IF;
  FOR s IN SELECT * FROM swarm_team.sessions k WHERE k.repository = p_repository AND k.session = ANY (p_sessions)
      AND k.machine = p_machine AND k.member = session_user LOOP
    v := swarm_team.drop_session(s, left(p_reason, 40));
  END LOOP;
  RETURN v;
END $$;

-- Removes sessions of whatever machine whose leases are over by this clock, and that are silent by p_silent
-- ({session: beat}); the ids of those removed. Where this clock was put back, a lease begins anew once.
CREATE FUNCTION swarm_team.reap(p_repository bigint, p_machine text, p_incarnation text, p_epoch text, p_silent jsonb)
RETURNS jsonb
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE s swarm_team.sessions; found_ jsonb := '[]';
BEGIN
  IF (swarm_team.enter(p_repository, p_machine, p_incarnation, p_epoch)).key IS NULL THEN RETURN '[]'; END IF;
  UPDATE swarm_team.sessions k SET until = clock_timestamp() + k.lease
    WHERE k.repository = p_repository AND k.until > clock_timestamp() + k.lease * 1.01;
  FOR s IN SELECT * FROM swarm_team.sessions k WHERE k.repository = p_repository
      AND p_silent ->> k.session = swarm_team.beat_of(k.joined, k.beats)
      AND swarm_team.ends(k.until, k.lease) <= clock_timestamp() FOR UPDATE LOOP
    PERFORM swarm_team.drop_session(s, 'lapsed');
    found_ := found_ || to_jsonb(s.session);
  END LOOP;
  RETURN found_;
END $$;

-- {ok, lagging: [Heard]}: whether every live mirror of another machine has p_version; waits for it for p_seconds at
-- most. A mirror that has not counts as dead where its lease is over by this clock, and it is silent by p_silent
-- ({member/machine: beat}). Before that is believed its row is locked: a beat that is under way either is seen here,
-- or reads the news after us, which have p_version in them.
CREATE FUNCTION swarm_team.settle(p_repository bigint, p_machine text, p_epoch text, p_version bigint,
  p_seconds float8, p_silent jsonb) RETURNS jsonb
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE stop timestamptz := clock_timestamp() + make_interval(secs => least(p_seconds, 10)); nap float8 := 0.001;
  r swarm_team.repositories; behind swarm_team.machines[]; live jsonb;
BEGIN
  PERFORM swarm_team.note_start();
  UPDATE swarm_team.machines m SET until = clock_timestamp() + m.lease
    WHERE m.repository = p_repository AND m.until > clock_timestamp() + m.lease * 1.01;
  LOOP
    SELECT * INTO r FROM swarm_team.repositories WHERE key = p_repository;
    IF r.key IS NULL OR NOT swarm_team.member_of(r.circle) THEN
      RAISE EXCEPTION USING ERRCODE = 'insufficient_privilege', MESSAGE = 'no such repository';
    END IF;
    IF p_epoch <> swarm_team.epoch_of(r) THEN RETURN '{"ok": false, "why": "epoch", "lagging": []}'; END IF;
    SELECT array_agg(m), jsonb_agg(swarm_team.mirror_heard(m)) FILTER (WHERE NOT swarm_team.is_over(m, p_silent))
      INTO behind, live FROM swarm_team.machines m WHERE m.repository = p_repository AND m.lease > '0'
        AND m.acked < p_version AND (m.machine, m.member) <> (p_machine, session_user);
    IF live IS NULL AND r.grace_until <= clock_timestamp() THEN
      IF behind IS NULL THEN RETURN '{"ok": true, "lagging": []}'; END IF;
      PERFORM 1 FROM swarm_team.machines m WHERE m.repository = p_repository AND m.lease > '0'
        AND m.acked < p_version AND (m.machine, m.member) <> (p_machine, session_user)
        ORDER BY m.machine, m.member FOR UPDATE;
      SELECT jsonb_agg(swarm_team.mirror_heard(m)) INTO live FROM swarm_team.machines m
        WHERE m.repository = p_repository AND m.lease > '0' AND m.acked < p_version
          AND (m.machine, m.member) <> (p_machine, session_user) AND NOT swarm_team.is_over(m, p_silent);
      IF live IS NULL THEN  -- those that have been away for long are forgotten: they will say hello again
        DELETE FROM swarm_team.machines m WHERE m.repository = p_repository AND m.lease > '0'
          AND m.acked < p_version AND (m.machine, m.member) <> (p_machine, session_user)
          AND m.until < clock_timestamp() - interval '10 minutes' AND swarm_team.is_over(m, p_silent)
          AND NOT EXISTS (SELECT 1 FROM swarm_team.sessions s WHERE s.repository = p_repository
            AND s.machine = m.machine AND s.member = m.member);
        RETURN '{"ok": true, "lagging": []}';
      END IF;
      RETURN jsonb_build_object('ok', false, 'lagging', live);  -- which lets go of the rows
    END IF;
    IF clock_timestamp() >= stop THEN RETURN jsonb_build_object('ok', false, 'lagging', coalesce(live, '[]')); END IF;
    PERFORM pg_sleep(nap);
    nap := least(nap * 1.5, 0.02);
  END LOOP;
END $$;

-- Whether a mirror's lease is over: by this clock, and by what the one who asks has seen.
CREATE FUNCTION swarm_team.is_over(m swarm_team.machines, p_silent jsonb) RETURNS boolean LANGUAGE sql VOLATILE AS $$
  SELECT swarm_team.ends(m.until, m.lease) <= clock_timestamp()
    AND coalesce(p_silent ->> (m.member || '/' || m.machine), '') = swarm_team.beat_of(m.joined, m.beats) $$;

-- Snapshot of what this machine has.
CREATE FUNCTION swarm_team.mine(p_repository bigint, p_machine text) RETURNS jsonb
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  PERFORM 1 FROM swarm_team.repositories r WHERE r.key = p_repository AND swarm_team.member_of(r.circle);
  IF NOT FOUND THEN RAISE EXCEPTION USING ERRCODE = 'insufficient_privilege', MESSAGE = 'no such repository'; END IF;
  RETURN swarm_team.everything(p_repository, p_machine, session_user);
END $$;

-- News with everything, of a repository that the caller may see; NULL where there is none. Registers nothing.
CREATE FUNCTION swarm_team.look(p_name text, p_circle text) RETURNS jsonb
LANGUAGE sql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT swarm_team.news(r.key, 0) FROM swarm_team.repositories r
    WHERE r.name = p_name AND (p_circle = '' OR r.circle = p_circle) AND swarm_team.member_of(r.circle)
    ORDER BY r.key LIMIT 1 $$;

-- [MachineRow], of a repository that the caller may see.
CREATE FUNCTION swarm_team.machines_of(p_name text, p_circle text) RETURNS jsonb
LANGUAGE sql VOLATILE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
  SELECT coalesce(jsonb_agg(jsonb_build_object('machine', m.machine, 'member', m.member, 'acked', m.acked,
      'lease', swarm_team.seconds(m.lease), 'left', swarm_team.seconds(m.until - clock_timestamp()),
      'sessions', (SELECT count(*) FROM swarm_team.sessions s WHERE s.repository = m.repository
        AND s.machine = m.machine AND s.member = m.member)) ORDER BY m.machine, m.member), '[]')
    FROM swarm_team.machines m JOIN swarm_team.repositories r ON r.key = m.repository
    WHERE r.name = p_name AND (p_circle = '' OR r.circle = p_circle) AND swarm_team.member_of(r.circle) $$;

-- This machine has no mirror any more (its replica does not count as fresh already). Its sessions stay.
CREATE FUNCTION swarm_team.rest(p_repository bigint, p_machine text, p_incarnation text, p_epoch text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF (swarm_team.enter(p_repository, p_machine, p_incarnation, p_epoch)).key IS NULL THEN RETURN; END IF;
  UPDATE swarm_team.machines m SET lease = '0', until = clock_timestamp()
    WHERE m.repository = p_repository AND m.machine = p_machine AND m.member = session_user;
END $$;

-- This machine leaves, with all its sessions.
CREATE FUNCTION swarm_team.part(p_repository bigint, p_machine text, p_incarnation text, p_epoch text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE s swarm_team.sessions;
BEGIN
  IF (swarm_team.enter(p_repository, p_machine, p_incarnation, p_epoch)).key IS NULL THEN RETURN; END IF;
  FOR s IN SELECT * FROM swarm_team.sessions k WHERE k.repository = p_repository AND k.machine = p_machine
      AND k.member = session_user LOOP
    PERFORM swarm_team.drop_session(s, 'left');
  END LOOP;
  DELETE FROM swarm_team.machines m
    WHERE m.repository = p_repository AND m.machine = p_machine AND m.member = session_user;
END $$;

-- Tells those who listen of what the last call on this connection has changed. Apart from it, and after its commit:
-- NOTIFY holds one lock of the whole server while it commits, which is not to wait for a disk.
CREATE FUNCTION swarm_team.hint() RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE told text := current_setting('swarm_team.told', true);
BEGIN
  IF coalesce(told, '') = '' THEN RETURN; END IF;
  SET LOCAL synchronous_commit = off;
  PERFORM pg_notify(split_part(told, ' ', 1), split_part(told, ' ', 2));
  PERFORM set_config('swarm_team.told', '', false);
END $$;

REVOKE ALL ON ALL TABLES IN SCHEMA swarm_team FROM PUBLIC;
REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA swarm_team FROM PUBLIC;
GRANT USAGE ON SCHEMA swarm_team TO swarm_team_member;
GRANT EXECUTE ON FUNCTION swarm_team.hello, swarm_team.beat, swarm_team.acquire, swarm_team.release,
  swarm_team.transfer, swarm_team.steal, swarm_team.wait, swarm_team.leave, swarm_team.end_sessions, swarm_team.reap,
  swarm_team.settle, swarm_team.mine, swarm_team.look, swarm_team.machines_of, swarm_team.rest, swarm_team.part,
  swarm_team.hint TO swarm_team_member;
