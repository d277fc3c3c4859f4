-- A plugin exists from its first release on.
CREATE TABLE plugins (
  seq INTEGER PRIMARY KEY,
  plugin_id TEXT NOT NULL UNIQUE,
  updated_at INTEGER NOT NULL
) STRICT;

-- Bytes by digest. `pending` rows stand for bytes that may be there or not: they are written before the
-- bytes and left behind by whatever is interrupted, so that nothing has to be searched for.
CREATE TABLE artifacts (
  seq INTEGER PRIMARY KEY,
  digest BLOB NOT NULL UNIQUE CHECK (length(digest) = 32),
  blake3 BLOB NOT NULL CHECK (length(blake3) = 32),
  bytes INTEGER NOT NULL CHECK (bytes >= 0),
  unpacked_bytes INTEGER NOT NULL CHECK (unpacked_bytes >= 0),
  files INTEGER NOT NULL CHECK (files >= 0),
  plugin_id TEXT NOT NULL,
  version TEXT,
  description TEXT,
  manifest BLOB NOT NULL,
  state TEXT NOT NULL CHECK (state IN ('pending', 'kept', 'released')),
  uploaded_at INTEGER NOT NULL
) STRICT;
-- What is released is never looked for by age.
CREATE INDEX artifacts_waiting ON artifacts (uploaded_at) WHERE state <> 'released';

CREATE TABLE releases (
  seq INTEGER PRIMARY KEY,
  release_id BLOB NOT NULL UNIQUE CHECK (length(release_id) = 16),
  plugin INTEGER NOT NULL REFERENCES plugins (seq),
  artifact INTEGER NOT NULL UNIQUE REFERENCES artifacts (seq),
  published_at INTEGER NOT NULL,
  publisher TEXT NOT NULL,
  yanked_at INTEGER,
  yanked_reason TEXT,
  UNIQUE (plugin, seq),
  CHECK (yanked_at IS NOT NULL OR yanked_reason IS NULL)
) STRICT;

-- The second key makes a channel that points at another plugin's release impossible.
CREATE TABLE channels (
  plugin INTEGER NOT NULL,
  channel TEXT NOT NULL,
  release INTEGER NOT NULL,
  moved_at INTEGER NOT NULL,
  PRIMARY KEY (plugin, channel),
  FOREIGN KEY (plugin, release) REFERENCES releases (plugin, seq)
) STRICT, WITHOUT ROWID;
CREATE INDEX channels_by_release ON channels (release);

CREATE TABLE receipts (
  artifact INTEGER PRIMARY KEY REFERENCES artifacts (seq),
  digest BLOB NOT NULL CHECK (length(digest) = 32),
  bytes INTEGER NOT NULL CHECK (bytes >= 0),
  stored_at INTEGER NOT NULL,
  stored_by TEXT NOT NULL
) STRICT;

-- What a page of the catalog shows, one row a plugin that is listed.
CREATE TABLE catalog (
  seq INTEGER PRIMARY KEY REFERENCES plugins (seq),
  plugin_id TEXT NOT NULL,
  description TEXT,
  folded TEXT NOT NULL,
  publisher TEXT NOT NULL,
  updated_at INTEGER NOT NULL,
  channels TEXT NOT NULL
) STRICT;
-- A search that matches much walks this index alone.
CREATE INDEX catalog_walk ON catalog (plugin_id, folded);
-- A search for something rare asks this one, for its rarest trigram alone: no positions are kept. Folding of case is
-- done before, so that it is ASCII's.
CREATE VIRTUAL TABLE search USING fts5 (
  text, content = '', contentless_delete = 1, detail = none, tokenize = 'trigram case_sensitive 1'
);
-- How many plugins hold a trigram, so that what a search costs is known before it is made.
CREATE TABLE trigrams (gram TEXT PRIMARY KEY, n INTEGER NOT NULL CHECK (n >= 0)) STRICT, WITHOUT ROWID;

CREATE TABLE installations (
  installation_id TEXT PRIMARY KEY,
  host TEXT NOT NULL,
  plugin INTEGER NOT NULL,
  release INTEGER NOT NULL,
  status TEXT NOT NULL CHECK (status IN ('installed', 'updated', 'failed', 'removed')),
  error TEXT,
  reported_at INTEGER NOT NULL,
  reported_by TEXT NOT NULL,
  FOREIGN KEY (plugin, release) REFERENCES releases (plugin, seq)
) STRICT, WITHOUT ROWID;
CREATE INDEX installations_by_plugin ON installations (plugin, installation_id);
CREATE INDEX installations_by_host ON installations (host, installation_id);

-- Counting a million rows for every report would be the report's whole cost.
CREATE TABLE counts (what TEXT PRIMARY KEY, n INTEGER NOT NULL) STRICT, WITHOUT ROWID;
INSERT INTO counts (what, n) VALUES ('installations', 0);
