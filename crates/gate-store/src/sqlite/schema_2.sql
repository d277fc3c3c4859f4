-- Schema 2.

-- The pools that give out no work, by their owner's word; a pool that is not here does.
CREATE TABLE paused_pools (
    pool TEXT PRIMARY KEY,
    since INTEGER NOT NULL,
    reason TEXT CHECK (length(reason) BETWEEN 1 AND 200)
) STRICT, WITHOUT ROWID;

-- How many jobs of a pool wait for their next attempt, without looking at one of them.
CREATE INDEX jobs_waiting_by_pool ON jobs (pool) WHERE status = 'retry_wait' AND ready = 0;

-- What proves that a new connection may go on with an attempt, as a digest; absent where the Worker
-- does not offer that.
ALTER TABLE attempts ADD COLUMN attach_digest TEXT CHECK (length(attach_digest) = 71);

CREATE TRIGGER attempt_keeps_its_token BEFORE UPDATE OF attach_digest ON attempts
BEGIN
    SELECT RAISE (ABORT, 'what an attempt was granted with is immutable');
END;

-- A lease that its Worker has not begun can be taken back, as if it had never been granted: its row
-- goes, and a first one leaves the job pending again.
DROP TRIGGER attempts_stay;
CREATE TRIGGER attempts_stay BEFORE DELETE ON attempts
WHEN OLD.status <> 'leased' OR EXISTS (SELECT 1 FROM evidence WHERE attempt = OLD.seq)
BEGIN
    SELECT RAISE (ABORT, 'an attempt that has begun is never deleted');
END;

DROP TRIGGER job_takes_an_edge;
CREATE TRIGGER job_takes_an_edge BEFORE UPDATE ON jobs
WHEN NOT (
    (OLD.status = NEW.status AND (OLD.status = 'pending' OR OLD.status = 'leased' OR OLD.status = 'retry_wait'))
    OR (OLD.status IN ('pending', 'retry_wait') AND NEW.status IN ('leased', 'cancelled'))
    OR (
        OLD.status = 'leased'
        AND (NEW.status = 'retry_wait' OR NEW.status = 'succeeded' OR NEW.status = 'failed' OR NEW.status = 'cancelled')
    )
    OR (OLD.status = 'leased' AND NEW.status = 'pending' AND OLD.attempts = 1 AND NEW.attempts = 0)
)
BEGIN
    SELECT CASE
        WHEN OLD.status = NEW.status THEN RAISE (ABORT, 'a terminal job is immutable')
        ELSE RAISE (ABORT, 'a job cannot take this edge')
    END;
END;
