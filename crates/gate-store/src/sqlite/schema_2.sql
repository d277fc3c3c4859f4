-- Schema 2.

-- The pools that give out no work, by their owner's word; a pool that is not here does.
CREATE TABLE paused_pools (
    pool TEXT PRIMARY KEY,
    since INTEGER NOT NULL,
    reason TEXT CHECK (length(reason) BETWEEN 1 AND 200)
) STRICT, WITHOUT ROWID;

-- How many jobs of a pool wait for their next attempt, without looking at one of them.
CREATE INDEX jobs_waiting_by_pool ON jobs (pool) WHERE status = 'retry_wait' AND ready = 0;
