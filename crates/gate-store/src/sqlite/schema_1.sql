-- Schema 1. Times are nanoseconds since 1970, ids are text as on the wire. Every invariant of the
-- machines has a constraint, an index or a trigger here, so that a mistake above fails instead of
-- being stored.
--
-- Three values or more are compared one by one: SQLite puts a longer list behind IN into a temporary
-- table each time a constraint or trigger runs, which took a third of the writer's time.

CREATE TABLE policies (
    seq INTEGER PRIMARY KEY,
    digest TEXT NOT NULL UNIQUE,
    canonical TEXT NOT NULL CHECK (length(canonical) <= 16384)
) STRICT;

-- What a job asks for, apart from the job: a job's row changes often, this never does.
CREATE TABLE works (
    seq INTEGER PRIMARY KEY,
    kind TEXT NOT NULL CHECK (kind IN ('coding', 'legacy')),
    body TEXT NOT NULL
) STRICT;

CREATE TABLE slots (
    seq INTEGER PRIMARY KEY,
    worker TEXT NOT NULL,
    slot INTEGER NOT NULL CHECK (slot BETWEEN 0 AND 63),
    pool TEXT NOT NULL,
    generation TEXT NOT NULL CHECK (length(generation) = 32),
    connected INTEGER NOT NULL CHECK (connected IN (0, 1)),
    last_seen INTEGER NOT NULL,
    UNIQUE (worker, slot)
) STRICT;

CREATE TABLE jobs (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE CHECK (length(id) = 32),
    kind TEXT NOT NULL CHECK (kind IN ('coding', 'legacy')),
    status TEXT NOT NULL
        CHECK (
            status = 'pending' OR status = 'leased' OR status = 'retry_wait'
            OR status = 'succeeded' OR status = 'failed' OR status = 'cancelled'
        ),
    -- A slot may take the job now: it is pending, or it waits and its time has come.
    ready INTEGER NOT NULL CHECK (ready IN (0, 1)),
    pool TEXT NOT NULL,
    priority INTEGER NOT NULL CHECK (priority BETWEEN -100 AND 100),
    policy INTEGER NOT NULL REFERENCES policies (seq),
    work INTEGER NOT NULL REFERENCES works (seq),
    repository_id TEXT,
    base_sha TEXT CHECK (length(base_sha) = 40),
    source_ref TEXT,
    retry_of TEXT REFERENCES jobs (id),
    attempts INTEGER NOT NULL CHECK (attempts BETWEEN 0 AND 100),
    last_attempt INTEGER REFERENCES attempts (seq),
    candidate_sha TEXT CHECK (length(candidate_sha) = 40),
    failure_code TEXT
        CHECK (
            failure_code = 'invalid_task' OR failure_code = 'scoped_test_failed'
            OR failure_code = 'max_attempts_exceeded' OR failure_code = 'cancelled'
        ),
    retry_at INTEGER,
    created_at INTEGER NOT NULL,
    updated_at INTEGER NOT NULL,
    CHECK ((kind = 'coding') = (repository_id IS NOT NULL)),
    CHECK ((kind = 'coding') = (base_sha IS NOT NULL)),
    CHECK ((attempts = 0) = (last_attempt IS NULL)),
    CHECK ((status = 'pending') <= (attempts = 0)),
    CHECK ((status = 'leased' OR status = 'retry_wait' OR status = 'succeeded' OR status = 'failed') <= (attempts > 0)),
    CHECK ((status = 'pending') <= (ready = 1)),
    CHECK (ready <= (status IN ('pending', 'retry_wait'))),
    CHECK ((status = 'retry_wait') = (retry_at IS NOT NULL)),
    CHECK ((status IN ('failed', 'cancelled')) = (failure_code IS NOT NULL)),
    CHECK ((status = 'cancelled') = (failure_code IS 'cancelled')),
    CHECK ((candidate_sha IS NOT NULL) = (status = 'succeeded' AND kind = 'coding'))
) STRICT;

CREATE INDEX jobs_claimable ON jobs (pool, priority DESC, created_at, id) WHERE ready = 1;
CREATE INDEX jobs_waiting ON jobs (retry_at) WHERE status = 'retry_wait' AND ready = 0;
CREATE INDEX jobs_by_status ON jobs (status);
CREATE INDEX jobs_by_repository ON jobs (repository_id) WHERE repository_id IS NOT NULL;

CREATE TABLE attempts (
    seq INTEGER PRIMARY KEY,
    id TEXT NOT NULL CHECK (length(id) = 32),
    job INTEGER NOT NULL REFERENCES jobs (seq),
    ordinal INTEGER NOT NULL CHECK (ordinal BETWEEN 1 AND 100),
    slot INTEGER NOT NULL REFERENCES slots (seq),
    generation TEXT NOT NULL CHECK (length(generation) = 32),
    status TEXT NOT NULL
        CHECK (
            status = 'leased' OR status = 'succeeded' OR status = 'terminal_failed'
            OR status = 'retryable_failed' OR status = 'expired' OR status = 'cancelled'
        ),
    leased_at INTEGER NOT NULL,
    deadline_at INTEGER NOT NULL,
    completed_at INTEGER,
    failure_code TEXT,
    failure_disposition TEXT CHECK (failure_disposition IN ('terminal', 'retryable')),
    candidate_sha TEXT CHECK (length(candidate_sha) = 40),
    result TEXT,
    UNIQUE (job, ordinal),
    CHECK ((status = 'leased') = (completed_at IS NULL)),
    CHECK ((failure_code IS NULL) = (failure_disposition IS NULL)),
    CHECK ((status = 'terminal_failed' OR status = 'retryable_failed' OR status = 'cancelled') = (failure_code IS NOT NULL)),
    CHECK ((candidate_sha IS NOT NULL OR result IS NOT NULL) = (status = 'succeeded'))
) STRICT;

CREATE UNIQUE INDEX one_live_attempt_per_job ON attempts (job) WHERE status = 'leased';
CREATE UNIQUE INDEX one_live_attempt_per_slot ON attempts (slot) WHERE status = 'leased';

CREATE TABLE evidence (
    seq INTEGER PRIMARY KEY,
    attempt INTEGER NOT NULL REFERENCES attempts (seq),
    evidence_id TEXT NOT NULL CHECK (length(evidence_id) = 32),
    record TEXT NOT NULL,
    bound_at INTEGER NOT NULL,
    UNIQUE (attempt, evidence_id)
) STRICT;

CREATE TABLE events (
    seq INTEGER PRIMARY KEY,
    job INTEGER NOT NULL REFERENCES jobs (seq),
    kind TEXT NOT NULL,
    detail TEXT NOT NULL,
    at INTEGER NOT NULL
) STRICT;

CREATE INDEX events_of_job ON events (job);

CREATE TABLE idempotency_keys (
    seq INTEGER PRIMARY KEY,
    key TEXT NOT NULL UNIQUE CHECK (length(key) BETWEEN 1 AND 128),
    body TEXT NOT NULL,
    job INTEGER NOT NULL REFERENCES jobs (seq)
) STRICT;

CREATE TRIGGER job_starts_pending BEFORE INSERT ON jobs WHEN NEW.status <> 'pending'
BEGIN
    SELECT RAISE (ABORT, 'a job starts as pending');
END;

CREATE TRIGGER job_takes_an_edge BEFORE UPDATE ON jobs
WHEN NOT (
    (OLD.status = NEW.status AND (OLD.status = 'pending' OR OLD.status = 'leased' OR OLD.status = 'retry_wait'))
    OR (OLD.status IN ('pending', 'retry_wait') AND NEW.status IN ('leased', 'cancelled'))
    OR (
        OLD.status = 'leased'
        AND (NEW.status = 'retry_wait' OR NEW.status = 'succeeded' OR NEW.status = 'failed' OR NEW.status = 'cancelled')
    )
)
BEGIN
    SELECT CASE
        WHEN OLD.status = NEW.status THEN RAISE (ABORT, 'a terminal job is immutable')
        ELSE RAISE (ABORT, 'a job cannot take this edge')
    END;
END;

CREATE TRIGGER job_keeps_its_promise
BEFORE UPDATE OF seq, id, kind, pool, priority, policy, work, repository_id, base_sha, source_ref, retry_of, created_at
ON jobs
BEGIN
    SELECT RAISE (ABORT, 'what a job was submitted with is immutable');
END;

CREATE TRIGGER attempt_starts_leased BEFORE INSERT ON attempts
WHEN NEW.status <> 'leased' OR NEW.ordinal <> (SELECT attempts + 1 FROM jobs WHERE seq = NEW.job)
BEGIN
    SELECT RAISE (ABORT, 'an attempt starts as leased, with the next ordinal');
END;

CREATE TRIGGER attempt_is_terminal BEFORE UPDATE ON attempts WHEN OLD.status <> 'leased'
BEGIN
    SELECT RAISE (ABORT, 'a terminal attempt is immutable');
END;

CREATE TRIGGER attempt_keeps_its_name BEFORE UPDATE OF seq, id, job, ordinal, slot, leased_at ON attempts
BEGIN
    SELECT RAISE (ABORT, 'what an attempt was granted with is immutable');
END;

CREATE TRIGGER evidence_is_immutable BEFORE UPDATE ON evidence
BEGIN
    SELECT RAISE (ABORT, 'evidence is immutable');
END;

CREATE TRIGGER events_are_immutable BEFORE UPDATE ON events
BEGIN
    SELECT RAISE (ABORT, 'the journal is immutable');
END;

CREATE TRIGGER policies_are_immutable BEFORE UPDATE ON policies
BEGIN
    SELECT RAISE (ABORT, 'a policy is immutable');
END;

CREATE TRIGGER works_are_immutable BEFORE UPDATE ON works
BEGIN
    SELECT RAISE (ABORT, 'the work of a job is immutable');
END;

CREATE TRIGGER jobs_stay BEFORE DELETE ON jobs
BEGIN
    SELECT RAISE (ABORT, 'a job is never deleted');
END;

CREATE TRIGGER attempts_stay BEFORE DELETE ON attempts
BEGIN
    SELECT RAISE (ABORT, 'an attempt is never deleted');
END;

CREATE TRIGGER evidence_stays BEFORE DELETE ON evidence
BEGIN
    SELECT RAISE (ABORT, 'evidence is never deleted');
END;

CREATE TRIGGER events_stay BEFORE DELETE ON events
BEGIN
    SELECT RAISE (ABORT, 'the journal is never cut');
END;

CREATE TRIGGER idempotency_keys_are_immutable BEFORE UPDATE ON idempotency_keys
BEGIN
    SELECT RAISE (ABORT, 'an idempotency key stands for its job for good');
END;
