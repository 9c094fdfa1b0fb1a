-- After a loss machines keep the rows of another one until it has been heard of. A machine that has named all that it
-- has says so: what it has not named then is gone.
CREATE FUNCTION swarm_team.complete(p_repository bigint, p_machine text, p_incarnation text, p_epoch text) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE s swarm_team.sessions;
BEGIN
  IF (swarm_team.enter(p_repository, p_machine, p_incarnation, p_epoch)).key IS NULL THEN RETURN; END IF;
  s.session := '';
  s.machine := p_machine;
  s.member := session_user;
  PERFORM swarm_team.log(p_repository, 'complete', s, NULL, NULL,
    jsonb_build_object('machine', p_machine, 'member', session_user));
END $$;

-- As in 0001, but sooner for a long lease: whoever is to say that it is over counts from when it first hears of this.
CREATE OR REPLACE FUNCTION swarm_team.is_quiet(until timestamptz, lease interval) RETURNS boolean LANGUAGE sql VOLATILE AS $$
  SELECT until < clock_timestamp() + lease - least(lease * 0.4, interval '2.4 s')
    OR until > clock_timestamp() + lease * 1.01 $$;

REVOKE EXECUTE ON ALL FUNCTIONS IN SCHEMA swarm_team FROM PUBLIC;
GRANT EXECUTE ON FUNCTION swarm_team.complete TO swarm_team_member;
