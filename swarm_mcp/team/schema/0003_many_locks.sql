-- What a grant costs no longer grows with the number of locks that others have in the repository, or its session in it.
--
-- A connection keeps its plans for long, and one that was made when there were hardly any locks has to be right with
-- thousands. Where a table is small all its indexes look alike. So here is one that these queries alone can use, and
-- the only one that they can use: `repository + 0` is of no other.
DROP INDEX swarm_team.locks_region;
CREATE INDEX locks_region ON swarm_team.locks ((repository + 0), region);

-- What a session has of a want; all NULL for nothing.
CREATE FUNCTION swarm_team.own_lock(p_repository bigint, p_session text, p_want jsonb) RETURNS swarm_team.locks
LANGUAGE plpgsql STABLE AS $$
DECLARE l swarm_team.locks; asked_region text := p_want ->> 'region';
BEGIN
  SELECT k.* INTO l FROM swarm_team.locks k WHERE k.repository + 0 = p_repository AND k.region = asked_region
    AND k.session = p_session AND k.agent = p_want ->> 'agent' AND k.place = p_want ->> 'place'
    AND k.pattern = p_want ->> 'pattern' AND k.base = p_want ->> 'base';
  RETURN l;
END $$;

-- As in 0001.
CREATE OR REPLACE FUNCTION swarm_team.in_the_way(p_repository bigint, p_session text, p_place text, p_region text,
  p_mode text) RETURNS swarm_team.locks LANGUAGE plpgsql STABLE AS $$
DECLARE hit swarm_team.locks; first text := p_region || '/'; behind text := p_region || '0';
  over_it text[] := swarm_team.over(p_region);
BEGIN
  IF p_region = '' THEN
    SELECT * INTO hit FROM swarm_team.locks k WHERE k.repository + 0 = p_repository
      AND k.session <> p_session AND k.pattern = '' AND NOT (k.mode = 'shared' AND p_mode = 'shared')
      AND swarm_team.regions_meet(k.place, p_place) LIMIT 1;
    RETURN hit;
  END IF;
  SELECT * INTO hit FROM swarm_team.locks k WHERE k.repository + 0 = p_repository
    AND k.region > first AND k.region < behind
    AND k.session <> p_session AND k.pattern = '' AND NOT (k.mode = 'shared' AND p_mode = 'shared')
    AND swarm_team.regions_meet(k.place, p_place) LIMIT 1;
  IF FOUND THEN RETURN hit; END IF;
  SELECT * INTO hit FROM swarm_team.locks k WHERE k.repository + 0 = p_repository AND k.region = ANY (over_it)
    AND k.session <> p_session AND k.pattern = '' AND NOT (k.mode = 'shared' AND p_mode = 'shared')
    AND swarm_team.regions_meet(k.place, p_place) LIMIT 1;
  RETURN hit;
END $$;

-- As in 0001, with `own_lock`, and never with a scan of all locks.
CREATE OR REPLACE FUNCTION swarm_team.acquire(p_repository bigint, p_machine text, p_incarnation text, p_epoch text,
  p_session text, p_wants jsonb, p_seen bigint, p_mark bigint) RETURNS jsonb
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp SET enable_seqscan = off AS $$
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
    l := swarm_team.own_lock(p_repository, p_session, w);
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
    l := swarm_team.own_lock(p_repository, p_session, w);
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

REVOKE EXECUTE ON FUNCTION swarm_team.own_lock FROM PUBLIC;
