-- Servers of the past, and clocks that are set after a failover.
--
-- A machine names the server that it knows (its epoch: lineage.era). A server that was put back to an earlier state does
-- not know all of these: what such a machine names is of a future that is lost here, and everything becomes void. It was
-- noticed by the changes of the log alone before, and not where the machine knows an epoch that is not ours.

-- Lineages ('epoch.system.timeline') that machines may still name: those that this server has had, those of other
-- servers for which everything has become void once, and '*' after an administrator's --new-epoch.
CREATE TABLE swarm_team.former (
  repository bigint NOT NULL REFERENCES swarm_team.repositories ON DELETE CASCADE,
  lineage text NOT NULL,
  PRIMARY KEY (repository, lineage));

CREATE FUNCTION swarm_team.note_former() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  INSERT INTO swarm_team.former SELECT r.key, concat_ws('.', OLD.epoch, OLD.system, OLD.timeline)
    FROM swarm_team.repositories r ON CONFLICT DO NOTHING;
  RETURN NULL;
END $$;
CREATE TRIGGER note_former AFTER UPDATE ON swarm_team.server FOR EACH ROW
  WHEN ((OLD.epoch, OLD.system, OLD.timeline) IS DISTINCT FROM (NEW.epoch, NEW.system, NEW.timeline))
  EXECUTE FUNCTION swarm_team.note_former();

-- Makes everything void where a machine names an epoch of a lost future, so that its grants are above ours from then on.
-- Refuses it where it knows a later timeline of this very server: then a replica was promoted, and this is the primary
-- of before.
CREATE FUNCTION swarm_team.judge_epoch(p_repository bigint, p_epoch text, p_acked bigint) RETURNS void
LANGUAGE plpgsql AS $$
DECLARE r swarm_team.repositories; s swarm_team.server; parts text[] := string_to_array(p_epoch, '.'); theirs text;
BEGIN
  IF p_epoch !~ '^[0-9a-f-]{1,40}\.-?[0-9]{1,20}\.[0-9]{1,9}\.[0-9]{1,9}$' THEN RETURN; END IF;
  SELECT * INTO r FROM swarm_team.repositories x WHERE x.key = p_repository FOR UPDATE;
  SELECT * INTO s FROM swarm_team.server;
  theirs := array_to_string(parts[1:3], '.');
  IF theirs = concat_ws('.', s.epoch, s.system, s.timeline) THEN
    IF parts[4]::integer > r.era THEN
      PERFORM swarm_team.void(p_repository, p_acked);
      UPDATE swarm_team.repositories x SET era = parts[4]::integer + 1 WHERE x.key = p_repository;
    END IF;
    RETURN;
  END IF;
  IF EXISTS (SELECT 1 FROM swarm_team.former f WHERE f.repository = p_repository AND f.lineage = theirs) THEN RETURN; END IF;
  IF parts[2] = s.system::text AND parts[3]::integer > s.timeline AND NOT EXISTS (
      SELECT 1 FROM swarm_team.former f WHERE f.repository = p_repository AND f.lineage = '*') THEN
    RAISE EXCEPTION USING ERRCODE = 'ST004', MESSAGE = format('it is older than one that this machine knows (timeline'
      ' %s, not %s): stop it, or `swarm-mcp team init SERVER --new-epoch` where it is to lead again', s.timeline, parts[3]);
  END IF;
  PERFORM swarm_team.void(p_repository, p_acked);
  INSERT INTO swarm_team.former VALUES (p_repository, theirs);
END $$;

-- As in 0001, after a look at the epoch that is named.
ALTER FUNCTION swarm_team.hello(text, text, text, text, text, bigint, bigint, float8) RENAME TO hello_there;
CREATE FUNCTION swarm_team.hello(p_name text, p_circle text, p_machine text, p_incarnation text, p_epoch text,
  p_acked bigint, p_mark bigint, p_lease float8) RETURNS jsonb
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE key_ bigint;
BEGIN
  PERFORM swarm_team.note_start();
  FOR key_ IN SELECT x.key FROM swarm_team.repositories x WHERE x.name = p_name AND (p_circle = '' OR x.circle = p_circle)
      AND swarm_team.member_of(x.circle) ORDER BY x.key LOOP
    PERFORM swarm_team.judge_epoch(key_, p_epoch, p_acked);
  END LOOP;
  RETURN swarm_team.hello_there(p_name, p_circle, p_machine, p_incarnation, p_epoch, p_acked, p_mark, p_lease);
END $$;

-- How long a machine is waited for. Whether that is over is for both clocks to say, as with leases: ours may be set.
ALTER TABLE swarm_team.machines ADD COLUMN awaited_for interval;
CREATE FUNCTION swarm_team.note_awaited() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  NEW.awaited_for := CASE WHEN NEW.awaited_until IS NULL THEN NULL ELSE least('2 minutes',
    greatest(OLD.awaited_for, NEW.awaited_until - clock_timestamp())) END;
  RETURN NEW;
END $$;
CREATE TRIGGER note_awaited BEFORE UPDATE OF awaited_until ON swarm_team.machines FOR EACH ROW
  WHEN (OLD.awaited_until IS DISTINCT FROM NEW.awaited_until) EXECUTE FUNCTION swarm_team.note_awaited();

-- As in 0001, until `end_wait`, or for a day: agents of before 0004 do not call it.
CREATE OR REPLACE FUNCTION swarm_team.grace(r swarm_team.repositories) RETURNS float8 LANGUAGE sql VOLATILE AS $$
  SELECT swarm_team.seconds(greatest('0', r.grace_until - clock_timestamp(), (
    SELECT max(greatest(m.awaited_until - clock_timestamp(), '1 s')) FROM swarm_team.machines m
      WHERE m.repository = r.key AND m.awaited_until > clock_timestamp() - interval '1 day'))) $$;

-- As in 0001. But a machine that joined after the state that is here cannot be waited for by name, and it may believe as
-- long as any: so for as long as that nothing new is granted, whoever has been heard of.
CREATE OR REPLACE FUNCTION swarm_team.void(p_repository bigint, p_seen bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE belief interval; mirror interval; last timestamptz;
BEGIN
  SELECT coalesce(least(max(s.lease), '2 minutes'), '1 minute') INTO belief FROM swarm_team.sessions s
    WHERE s.repository = p_repository;
  SELECT max(m.lease), max(m.until) INTO mirror, last FROM swarm_team.machines m
    WHERE m.repository = p_repository AND m.lease > '0';
  belief := greatest(belief, mirror);
  DELETE FROM swarm_team.sessions s WHERE s.repository = p_repository;  -- with their locks and places
  DELETE FROM swarm_team.changes c WHERE c.repository = p_repository;
  UPDATE swarm_team.machines m SET acked = 0, awaited_until =
      CASE WHEN m.until >= last - belief * 2 THEN clock_timestamp() + belief END
    WHERE m.repository = p_repository;
  UPDATE swarm_team.repositories SET version = greatest(version, p_seen) + 1048576, floor = greatest(version, p_seen)
      + 1048576, mark = floor(random() * 9007199254740991)::bigint + 1, era = era + 1,
      grace_until = clock_timestamp() + belief
    WHERE key = p_repository;
END $$;

-- As in 0001; `silent` also has the machines that are waited for, until somebody's clock and ours say that it was enough.
ALTER FUNCTION swarm_team.beat(bigint, text, text, text, bigint, bigint, jsonb) RENAME TO beat_of_all;
CREATE FUNCTION swarm_team.beat(p_repository bigint, p_machine text, p_incarnation text, p_epoch text, p_acked bigint,
  p_mark bigint, p_sessions jsonb) RETURNS jsonb
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE answer jsonb;
BEGIN
  answer := swarm_team.beat_of_all(p_repository, p_machine, p_incarnation, p_epoch, p_acked, p_mark, p_sessions);
  IF NOT (answer ->> 'ok')::boolean THEN RETURN answer; END IF;
  RETURN answer || jsonb_build_object('silent', (answer -> 'silent') || (SELECT coalesce(jsonb_agg(jsonb_build_object(
      'kind', 'awaited', 'id', m.member || '/' || m.machine, 'beat', swarm_team.beat_of(m.joined, m.beats),
      'lease', swarm_team.seconds(m.awaited_for))), '[]')
    FROM swarm_team.machines m WHERE m.repository = p_repository AND m.awaited_until IS NOT NULL));
END $$;

-- Ends the wait for machines that are silent by p_silent ({member/machine: beat}), where it is over by this clock, too.
CREATE FUNCTION swarm_team.end_wait(p_repository bigint, p_machine text, p_incarnation text, p_epoch text, p_silent jsonb)
RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
  IF (swarm_team.enter(p_repository, p_machine, p_incarnation, p_epoch)).key IS NULL THEN RETURN; END IF;
  UPDATE swarm_team.machines m SET awaited_until = NULL WHERE m.repository = p_repository
    AND m.awaited_until <= clock_timestamp()
    AND p_silent ->> (m.member || '/' || m.machine) = swarm_team.beat_of(m.joined, m.beats);
END $$;

REVOKE ALL ON swarm_team.former FROM PUBLIC;
REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA swarm_team FROM PUBLIC;
REVOKE EXECUTE ON FUNCTION swarm_team.hello_there, swarm_team.beat_of_all FROM swarm_team_member;
GRANT EXECUTE ON FUNCTION swarm_team.hello, swarm_team.beat, swarm_team.end_wait TO swarm_team_member;
