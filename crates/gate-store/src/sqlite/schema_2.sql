-- Schema 2.

-- The pools that give out no work, by their owner's word; a pool that is not here does.
CREATE TABLE paused_pools (
    pool TEXT PRIMARY KEY,
    since INTEGER NOT NULL,
    reason TEXT CHECK (length(reason) BETWEEN 1 AND 200)
) STRICT, WITHOUT ROWID;
