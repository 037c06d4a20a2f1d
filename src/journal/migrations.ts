/** A run's state as people see it. Part of released steps, so it must not change. */
const stateOf = (row: 'runs' | 'old' | 'new'): string =>
  `CASE WHEN ${row}.resting IS NOT NULL THEN ${row}.resting WHEN ${row}.step = 'done' THEN 'done'
        WHEN ${row}.step = 'pending' THEN 'queued' ELSE 'sending' END`;

/**
 * The tables of the journal, as numbered steps: step n brings a journal of version n-1 to version n. A released step
 * is never edited; a change is a new step at the end.
 */
export const MIGRATIONS: readonly string[] = [
  `
  -- One row a run: who it is, how far it has come, and what the notebook calls it.
  CREATE TABLE runs (
    id          INTEGER PRIMARY KEY,
    instrument  TEXT NOT NULL,
    sha256      TEXT NOT NULL,
    copy        TEXT NOT NULL,      -- the path, where equal bytes at other paths are runs of their own
    refiling    INTEGER NOT NULL,
    reference   TEXT NOT NULL UNIQUE,
    path        TEXT NOT NULL,
    size        INTEGER NOT NULL,
    modified_ms INTEGER NOT NULL,
    backlog     INTEGER NOT NULL,   -- 1: was there before we watched; goes after what comes in live
    mapping     TEXT NOT NULL,      -- fingerprint of the mapping that read the file; empty: none has, yet
    step        TEXT NOT NULL CHECK (step IN ('pending', 'creating', 'created', 'described', 'done')),
    resting     TEXT CHECK (resting IN ('quarantined', 'held', 'ignored')),
    failure     TEXT,
    reason      TEXT,
    server      TEXT,
    floor       INTEGER,            -- the highest id known on the server when the intent was recorded
    intent_at   INTEGER,
    unseen      INTEGER NOT NULL DEFAULT 0,   -- earlier creations of it that were lost before any id was known
    experiment  INTEGER,
    adopted     INTEGER NOT NULL DEFAULT 0,   -- 1: a person said that this experiment is the run's
    attempts    INTEGER NOT NULL DEFAULT 0,
    due_at      INTEGER NOT NULL DEFAULT 0,
    added_at    INTEGER NOT NULL,
    updated_at  INTEGER NOT NULL,
    UNIQUE (instrument, sha256, copy, refiling),
    UNIQUE (server, experiment)
  ) STRICT;
  CREATE INDEX runs_open ON runs (instrument, backlog, id) WHERE step <> 'done' AND resting IS NULL;
  CREATE INDEX runs_due ON runs (due_at) WHERE step <> 'done' AND resting IS NULL;

  -- What is to be sent. Kept apart from runs, so that looking through runs stays cheap.
  CREATE TABLE drafts (
    run   INTEGER PRIMARY KEY REFERENCES runs (id) ON DELETE CASCADE,
    title TEXT NOT NULL,
    date  TEXT NOT NULL,
    body  TEXT NOT NULL,
    tags  TEXT NOT NULL             -- a JSON array
  ) STRICT;
  CREATE TABLE comments (
    run       INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    n         INTEGER NOT NULL,
    text      TEXT NOT NULL,
    intent_at INTEGER,
    comment   INTEGER,              -- its id in the notebook
    PRIMARY KEY (run, n)
  ) STRICT, WITHOUT ROWID;

  -- The quick look: a file with the same size, time and inode is not hashed again.
  CREATE TABLE files (
    instrument TEXT NOT NULL,
    path       TEXT NOT NULL,
    size       INTEGER NOT NULL,
    mtime_ns   INTEGER NOT NULL,
    inode      INTEGER NOT NULL,
    verdict    TEXT NOT NULL CHECK (verdict IN ('taken', 'skipped', 'asked')),
    run        INTEGER REFERENCES runs (id) ON DELETE CASCADE,
    PRIMARY KEY (instrument, path)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX files_run ON files (run);

  CREATE TABLE instruments (
    name          TEXT PRIMARY KEY,
    first_scan_at INTEGER NOT NULL,
    asked         INTEGER NOT NULL  -- how many old files wait for an answer
  ) STRICT;

  -- What the runs of an instrument look like: the tables, columns and units that a new one is held against.
  CREATE TABLE shapes (
    instrument TEXT PRIMARY KEY,
    mapping    TEXT NOT NULL,       -- fingerprint of the mapping that read them
    shapes     TEXT NOT NULL,       -- a JSON array, mostly of one; of more where the mapping has alternatives
    run        INTEGER REFERENCES runs (id) ON DELETE SET NULL   -- the first that looked so
  ) STRICT;

  -- Runs that did not look like those before them.
  CREATE TABLE drifts (
    run     INTEGER PRIMARY KEY REFERENCES runs (id) ON DELETE CASCADE,
    at      INTEGER NOT NULL,
    changes TEXT NOT NULL,          -- a JSON array of what was gone or had another unit, in words
    shape   TEXT NOT NULL           -- what the run looks like, as JSON
  ) STRICT;

  CREATE TABLE servers (
    url            TEXT PRIMARY KEY,
    highest        INTEGER,         -- the highest experiment id seen there
    dialect        TEXT CHECK (dialect IN ('v2', 'elabftw')),
    keeps_title    INTEGER,         -- whether a creation's title is kept; null until one was read back
    keeps_comments INTEGER,         -- whether comments hold the text we send; null until one was read back
    blank          TEXT,            -- what a new experiment looks like there, where titles are not kept
    sweep          INTEGER,         -- below this id an experiment may lie whose creation was lost before any id was known
    halted         TEXT             -- why nothing is sent there until a person has recovered the journal
  ) STRICT;

  -- Experiments of ours that no run uses: the next one takes them before it makes another.
  CREATE TABLE spares (
    server     TEXT NOT NULL,
    experiment INTEGER NOT NULL,
    reference  TEXT,                -- whose provisional title it bears
    PRIMARY KEY (server, experiment)
  ) STRICT, WITHOUT ROWID;

  -- What people ask through commands: the process that holds the journal carries it out between steps, and answers.
  CREATE TABLE inbox (
    id      INTEGER PRIMARY KEY,
    at      INTEGER NOT NULL,
    request TEXT NOT NULL,          -- JSON
    answer  TEXT                    -- JSON; null until it was carried out or refused
  ) STRICT;
  CREATE INDEX inbox_unanswered ON inbox (id) WHERE answer IS NULL;

  CREATE TABLE history (
    id     INTEGER PRIMARY KEY,
    run    INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    at     INTEGER NOT NULL,
    event  TEXT NOT NULL,
    detail TEXT
  ) STRICT;
  CREATE INDEX history_run ON history (run, id);
  `,
  // The server was restored to an older state: the lowest id that it assigned twice, or that is gone.
  'ALTER TABLE servers ADD COLUMN set_back INTEGER;',
  // Earlier readings of a run's file: the notebook may have one of them.
  `
  CREATE TABLE earlier_drafts (
    run   INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    title TEXT NOT NULL,
    date  TEXT NOT NULL,
    body  TEXT NOT NULL
  ) STRICT;
  CREATE INDEX earlier_drafts_run ON earlier_drafts (run);
  `,
  // The number of runs by state and by hour, counted as they change: the page must not read all runs.
  `
  CREATE TABLE tallies (
    instrument TEXT NOT NULL,
    state      TEXT NOT NULL,
    runs       INTEGER NOT NULL,
    PRIMARY KEY (instrument, state)
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE hours (
    instrument TEXT NOT NULL,
    hour       INTEGER NOT NULL,    -- since 1970
    runs       INTEGER NOT NULL,
    PRIMARY KEY (instrument, hour)
  ) STRICT, WITHOUT ROWID;
  INSERT INTO tallies SELECT instrument, ${stateOf('runs')}, count(*) FROM runs GROUP BY 1, 2;
  INSERT INTO hours SELECT instrument, added_at / 3600000, count(*) FROM runs GROUP BY 1, 2;
  CREATE TRIGGER runs_counted AFTER INSERT ON runs BEGIN
    INSERT INTO tallies VALUES (new.instrument, ${stateOf('new')}, 1)
      ON CONFLICT DO UPDATE SET runs = runs + 1;
    INSERT INTO hours VALUES (new.instrument, new.added_at / 3600000, 1)
      ON CONFLICT DO UPDATE SET runs = runs + 1;
  END;
  CREATE TRIGGER runs_recounted AFTER UPDATE OF step, resting ON runs
    WHEN ${stateOf('old')} <> ${stateOf('new')} BEGIN
    UPDATE tallies SET runs = runs - 1 WHERE instrument = old.instrument AND state = ${stateOf('old')};
    INSERT INTO tallies VALUES (new.instrument, ${stateOf('new')}, 1)
      ON CONFLICT DO UPDATE SET runs = runs + 1;
  END;
  CREATE TRIGGER runs_uncounted AFTER DELETE ON runs BEGIN
    UPDATE tallies SET runs = runs - 1 WHERE instrument = old.instrument AND state = ${stateOf('old')};
  END;
  CREATE INDEX runs_instrument ON runs (instrument);
  CREATE INDEX runs_resting ON runs (resting) WHERE resting IS NOT NULL;
  `,
  // The id of a comment that disappeared from the notebook: it is looked for, and posted again.
  'ALTER TABLE comments ADD COLUMN gone INTEGER;',
  // Raised alarms and unsent notices: a restart neither repeats nor forgets one.
  `
  CREATE TABLE alarms (
    kind       TEXT NOT NULL,
    instrument TEXT,                -- null: it concerns all of them
    since      INTEGER NOT NULL,
    text       TEXT NOT NULL
  ) STRICT;
  CREATE TABLE notices (
    id         INTEGER PRIMARY KEY,
    kind       TEXT NOT NULL,
    instrument TEXT,
    since      INTEGER NOT NULL,
    text       TEXT NOT NULL,
    channel    TEXT NOT NULL,
    state      TEXT NOT NULL CHECK (state IN ('raised', 'over')),
    at         INTEGER NOT NULL,
    attempts   INTEGER NOT NULL,
    due_at     INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX runs_resting_of ON runs (instrument, resting) WHERE resting IS NOT NULL;
  `,
  // Done runs to be remapped, and the earlier readings that the notebook may have until it is revised.
  `
  CREATE TABLE remaps (
    run        INTEGER PRIMARY KEY REFERENCES runs (id) ON DELETE CASCADE,
    instrument TEXT NOT NULL,
    path       TEXT NOT NULL        -- the file that is read
  ) STRICT;
  CREATE INDEX remaps_path ON remaps (instrument, path);
  ALTER TABLE earlier_drafts ADD COLUMN tags TEXT NOT NULL DEFAULT '[]';
  ALTER TABLE earlier_drafts ADD COLUMN written INTEGER NOT NULL DEFAULT 0;   -- 1: the notebook had all of it
  CREATE TABLE earlier_comments (
    run     INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    n       INTEGER NOT NULL,
    text    TEXT NOT NULL,
    comment INTEGER                 -- its id, where the run has no comment of this number any more
  ) STRICT;
  CREATE INDEX earlier_comments_run ON earlier_comments (run, n);
  `,
  // The intake half (files, instruments) no longer refers to the outbox half (all other tables): a file is known by the
  // content of its run. `matched` replaces a query from outbox to intake.
  `
  ALTER TABLE runs RENAME COLUMN resting TO parked;
  ALTER TABLE servers RENAME COLUMN set_back TO restored_from;
  ALTER TABLE instruments RENAME COLUMN asked TO backlog;
  -- 1: a file with the content of this run, which was recovered from the notebook, was seen
  ALTER TABLE runs ADD COLUMN matched INTEGER NOT NULL DEFAULT 0;
  UPDATE runs SET matched = 1 WHERE mapping = '' AND id IN (SELECT run FROM files);
  CREATE TABLE seen_files (
    instrument TEXT NOT NULL,
    path       TEXT NOT NULL,
    size       INTEGER NOT NULL,
    mtime_ns   INTEGER NOT NULL,    -- -1: to be hashed again
    inode      INTEGER NOT NULL,
    verdict    TEXT NOT NULL CHECK (verdict IN ('taken', 'skipped', 'backlog')),
    sha256     TEXT,                -- fingerprint of the run that was taken from it
    copy       TEXT NOT NULL,       -- as in runs
    PRIMARY KEY (instrument, path)
  ) STRICT, WITHOUT ROWID;
  INSERT INTO seen_files
    SELECT files.instrument, files.path, files.size, mtime_ns, inode, iif(verdict = 'asked', 'backlog', verdict),
           sha256, ifnull(copy, '') FROM files LEFT JOIN runs ON runs.id = files.run;
  DROP TABLE files;
  ALTER TABLE seen_files RENAME TO files;
  CREATE INDEX files_content ON files (sha256) WHERE sha256 IS NOT NULL;
  `,
  // What the server stored differently from what was sent, such as markup that it cleaned up: fingerprints, as JSON.
  `
  ALTER TABLE drafts ADD COLUMN stored TEXT;
  ALTER TABLE earlier_drafts ADD COLUMN stored TEXT;
  `,
  // One row: the id of the journal in origin lines, and the number of its last note in the file beside it.
  'CREATE TABLE identity (id TEXT NOT NULL, noted INTEGER NOT NULL DEFAULT 0) STRICT;',
  // The floor of a run is below all of its creations, and ids are remembered that were only read.
  `
  ALTER TABLE servers ADD COLUMN seen INTEGER;           -- the highest experiment id of any owner that was read
  ALTER TABLE servers ADD COLUMN sweep_from INTEGER;     -- unseen creations may have left experiments from here to sweep
  ALTER TABLE servers ADD COLUMN sweep_count INTEGER;    -- how many, at most
  UPDATE servers SET sweep_from = 0, sweep_count = 10 WHERE sweep IS NOT NULL;
  UPDATE runs SET floor = NULL WHERE unseen > 0 AND step = 'creating';
  `,
  // The user that our experiments belong to, as the server shows it.
  'ALTER TABLE servers ADD COLUMN owner TEXT;',
  // What `recover` and reconciliation found out about a server.
  `
  ALTER TABLE servers ADD COLUMN unconfirmed INTEGER;    -- the last id that recover read, until a creation shows the end
  ALTER TABLE servers ADD COLUMN shared INTEGER;         -- 1: somebody else creates experiments as the user of our key
  `,
  // What the file has and the draft does not, as a JSON list; null if that is not known.
  'ALTER TABLE drafts ADD COLUMN omits TEXT;',
  // When content or attributes of a file last changed; null if that is not known yet.
  'ALTER TABLE files ADD COLUMN ctime_ns INTEGER;',
  // The raw files of runs, to be attached once the run is done.
  `
  CREATE TABLE attachments (
    run       INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    n         INTEGER NOT NULL,
    name      TEXT NOT NULL,        -- in the notebook
    path      TEXT NOT NULL,
    sha256    TEXT NOT NULL,
    size      INTEGER NOT NULL,
    intent_at INTEGER,
    upload    INTEGER,              -- its id in the notebook
    refused   INTEGER NOT NULL,     -- 1: it is not attached, for this reason
    reason    TEXT,                 -- or why the last attempt failed
    attempts  INTEGER NOT NULL DEFAULT 0,
    due_at    INTEGER,              -- null: not to be uploaded, or not yet
    PRIMARY KEY (run, n)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX attachments_due ON attachments (due_at) WHERE due_at IS NOT NULL;
  CREATE INDEX attachments_open ON attachments (sha256) WHERE upload IS NULL AND refused = 0;
  CREATE TRIGGER attachments_ready AFTER UPDATE OF step ON runs WHEN new.step = 'done' AND old.step <> 'done' BEGIN
    UPDATE attachments SET due_at = 0 WHERE run = new.id AND upload IS NULL AND refused = 0;
  END;
  `,
  // What only eLabFTW has of an experiment, as JSON; null if the mapping has none of it.
  'ALTER TABLE drafts ADD COLUMN extras TEXT; ALTER TABLE earlier_drafts ADD COLUMN extras TEXT;',
  // A done run says why one of its raw files is not attached.
  `
  DROP TRIGGER attachments_ready;
  CREATE TRIGGER attachments_ready AFTER UPDATE OF step ON runs WHEN new.step = 'done' AND old.step <> 'done' BEGIN
    UPDATE attachments SET due_at = 0 WHERE run = new.id AND upload IS NULL AND refused = 0;
    UPDATE runs SET failure = 'file', reason = (SELECT reason FROM attachments WHERE run = new.id AND refused = 1
      ORDER BY n LIMIT 1) WHERE id = new.id AND new.id IN (SELECT run FROM attachments WHERE run = new.id AND refused = 1);
  END;
  `,
  // The plots of runs are attached and shown in the body.
  `
  ALTER TABLE attachments ADD COLUMN kind TEXT NOT NULL DEFAULT 'raw' CHECK (kind IN ('raw', 'plot', 'surplus'));
  ALTER TABLE attachments ADD COLUMN place INTEGER;      -- of a plot, in the body of the draft
  ALTER TABLE attachments ADD COLUMN description TEXT;   -- of a plot, in words
  ALTER TABLE attachments ADD COLUMN image TEXT;         -- the markup that shows the plot in the body, if it is there
  -- 1: the draft adds a plot, or a note about attached files, and nothing else
  ALTER TABLE earlier_drafts ADD COLUMN addition INTEGER NOT NULL DEFAULT 0;
  DROP TRIGGER attachments_ready;
  CREATE TRIGGER attachments_ready AFTER UPDATE OF step ON runs WHEN new.step = 'done' AND old.step <> 'done' BEGIN
    UPDATE attachments SET due_at = 0 WHERE run = new.id AND refused = 0 AND (upload IS NULL OR kind = 'surplus');
    UPDATE runs SET failure = 'file', reason = (SELECT reason FROM attachments WHERE run = new.id AND refused = 1
      AND kind = 'raw' ORDER BY n LIMIT 1) WHERE id = new.id
      AND new.id IN (SELECT run FROM attachments WHERE run = new.id AND refused = 1 AND kind = 'raw');
  END;
  `,
  // The oldest upload that waits is looked for every second.
  'CREATE INDEX attachments_waiting ON attachments (run) WHERE due_at IS NOT NULL;',
  // What is filed instead if the raw file is not attached after all: body, comments and omits, as JSON.
  'ALTER TABLE drafts ADD COLUMN unattached TEXT;',
  // Under `changed: revise`, the contents of a file are versions of one run.
  `
  CREATE TABLE paths (
    instrument TEXT NOT NULL,
    path       TEXT NOT NULL,
    run        INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    PRIMARY KEY (instrument, path)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX paths_run ON paths (run);
  -- Of runs whose file has changed: all versions, the first one included.
  CREATE TABLE versions (
    run         INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    n           INTEGER NOT NULL,
    sha256      TEXT NOT NULL,
    size        INTEGER NOT NULL,
    modified_ms INTEGER NOT NULL,
    at          INTEGER NOT NULL,     -- when it was read
    filed_at    INTEGER,              -- when the notebook had all of it
    unread      INTEGER,              -- it could not be read: the quarantined run that has it
    PRIMARY KEY (run, n)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX versions_content ON versions (sha256);
  -- The fingerprints of earlier versions of a raw file: one of them may be attached, and is replaced. A JSON array.
  ALTER TABLE attachments ADD COLUMN earlier TEXT;
  `,
  // Files to move or delete after their run is filed.
  `
  CREATE TABLE sources (
    run      INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    n        INTEGER NOT NULL,
    path     TEXT NOT NULL,
    location TEXT NOT NULL,         -- the path for the file system; hex:… if it is not UTF-8
    sha256   TEXT NOT NULL,
    identity TEXT NOT NULL,         -- device, inode and time of the file that was hashed
    hidden   INTEGER NOT NULL DEFAULT 0,    -- 1: it may have its private name
    decided  TEXT CHECK (decided IN ('move', 'delete')),   -- recorded before the file is moved or deleted
    target   TEXT,                  -- where it is moved to, as location
    due_at   INTEGER,               -- null: settled, or not yet
    attempts INTEGER NOT NULL DEFAULT 0,
    reason   TEXT,                  -- why the last attempt failed
    outcome  TEXT,                  -- moved, deleted, gone, changed, kept; null: not settled
    moved_to TEXT,                  -- for people
    erased   INTEGER NOT NULL DEFAULT 0,    -- 1: the row is removed once the file has its own name again
    PRIMARY KEY (run, n)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX sources_due ON sources (due_at) WHERE due_at IS NOT NULL;
  CREATE INDEX sources_hidden ON sources (run) WHERE hidden = 1;
  CREATE INDEX sources_path ON sources (path);
  CREATE TRIGGER sources_ready AFTER UPDATE OF step ON runs WHEN new.step = 'done' AND old.step <> 'done' BEGIN
    UPDATE sources SET due_at = 0 WHERE run = new.id AND outcome IS NULL AND erased = 0;
  END;
  `,
  // 1: it replaced another draft in the journal, and was not sent to the notebook since.
  'ALTER TABLE drafts ADD COLUMN unsent INTEGER NOT NULL DEFAULT 0;',
  // Files are looked for by path in the runs, and a backlog that waits among all files.
  `
  CREATE INDEX runs_path ON runs (path);
  CREATE INDEX files_backlog ON files (instrument) WHERE verdict = 'backlog';
  `,
  // Files that keep growing: `growing` belongs to the intake half, the other two to the outbox half.
  `
  CREATE TABLE growing (
    id         INTEGER PRIMARY KEY AUTOINCREMENT,   -- the generation: from its first line until other content takes its place
    instrument TEXT NOT NULL,
    path       TEXT NOT NULL,       -- where it grew
    place      TEXT,                -- where it is since it was rotated
    state      TEXT NOT NULL CHECK (state IN ('open', 'rotated', 'closed')),
    inode      INTEGER NOT NULL,
    base       INTEGER NOT NULL,    -- where its lines begin in the file
    offset     INTEGER NOT NULL,    -- up to here they were taken
    lines      INTEGER NOT NULL,    -- their number
    head       BLOB NOT NULL,       -- the first bytes of the file
    tail       BLOB NOT NULL,       -- those before the offset
    low        INTEGER,             -- the smallest size since the file became shorter than that
    header     BLOB,                -- what appended lines are parsed with; null until there is a reading
    header_end INTEGER NOT NULL DEFAULT 0,
    start      TEXT,                -- hash of the lines up to the first reading
    nth        INTEGER NOT NULL DEFAULT 0,   -- how many generations before it at this path began alike
    unfinished INTEGER NOT NULL DEFAULT 0,   -- bytes of the line at its end that is not finished
    note       TEXT,                -- why its lines wait, or how it ended
    began_at   INTEGER NOT NULL,
    looked_at  INTEGER NOT NULL,
    grown_at   INTEGER
  ) STRICT;
  CREATE INDEX growing_path ON growing (instrument, path);
  CREATE INDEX growing_open ON growing (id) WHERE state <> 'closed';
  CREATE INDEX growing_place ON growing (instrument, place) WHERE place IS NOT NULL;
  -- How far the outbox has the lines of a generation.
  CREATE TABLE generations (
    id    INTEGER PRIMARY KEY,
    upto  INTEGER NOT NULL,
    lines INTEGER NOT NULL,
    tail  BLOB NOT NULL
  ) STRICT;
  CREATE TABLE growths (
    run          INTEGER PRIMARY KEY REFERENCES runs (id) ON DELETE CASCADE,
    generation   INTEGER NOT NULL,
    day          TEXT NOT NULL,     -- empty if all of the file is one run
    upto         INTEGER NOT NULL,
    lines        INTEGER NOT NULL,
    rows         INTEGER NOT NULL,
    accumulation TEXT NOT NULL,     -- what is kept of all readings, as JSON
    next         TEXT,              -- the draft that replaces the present one, as JSON
    plot         TEXT,              -- hash of its plot
    ready        INTEGER NOT NULL DEFAULT 0,   -- 1: it may be written
    kept         INTEGER NOT NULL DEFAULT 0,   -- 1: somebody changed the experiment: only comments are added
    uncertain    INTEGER NOT NULL DEFAULT 0,   -- 1: a later journal may have added comments
    ended_at     INTEGER,
    grown_at     INTEGER NOT NULL
  ) STRICT;
  CREATE INDEX growths_generation ON growths (generation, day);
  `,
  // Where folders were when they were last seen: an unmounted share leaves an empty folder behind.
  `
  CREATE TABLE folders (
    path  TEXT PRIMARY KEY,
    point TEXT NOT NULL,      -- the mount point of its file system
    empty INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  `,
  // A file is moved or deleted only after nothing was written to it for a while.
  `
  ALTER TABLE sources ADD COLUMN ready_at INTEGER NOT NULL DEFAULT 0;   -- until then, nothing may be written to it
  ALTER TABLE sources ADD COLUMN missing_since INTEGER;   -- it is not found, and its disk may not be mounted
  DROP TRIGGER sources_ready;
  CREATE TRIGGER sources_ready AFTER UPDATE OF step ON runs WHEN new.step = 'done' AND old.step <> 'done' BEGIN
    UPDATE sources SET due_at = ready_at WHERE run = new.id AND outcome IS NULL AND erased = 0;
  END;
  `,
  // When a person decided to skip a file of the backlog, which can be undone.
  `
  ALTER TABLE files ADD COLUMN skipped_at INTEGER;
  CREATE INDEX files_skipped ON files (instrument) WHERE skipped_at IS NOT NULL;
  `,
  // Since when a file waits without a reason for people.
  'ALTER TABLE sources ADD COLUMN since INTEGER;',
  // The part of the mapping that determines the columns; NULL in older rows. In `shapes`, `mapping` now has it, too.
  'ALTER TABLE drifts ADD COLUMN layout TEXT;',
  // Every table of the outbox half gets a primary key, so that a fleet can ship its rows. The last two belong to members
  // of a fleet: what was not handed over yet, and which member of which fleet this is.
  `
  CREATE TABLE new_drafts (number INTEGER PRIMARY KEY, run INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    title TEXT NOT NULL, date TEXT NOT NULL, body TEXT NOT NULL, tags TEXT NOT NULL DEFAULT '[]',
    written INTEGER NOT NULL DEFAULT 0, stored TEXT, extras TEXT, addition INTEGER NOT NULL DEFAULT 0) STRICT;
  INSERT INTO new_drafts SELECT rowid, run, title, date, body, tags, written, stored, extras, addition FROM earlier_drafts;
  DROP TABLE earlier_drafts;
  ALTER TABLE new_drafts RENAME TO earlier_drafts;
  CREATE INDEX earlier_drafts_run ON earlier_drafts (run);
  CREATE TABLE new_comments (number INTEGER PRIMARY KEY, run INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    n INTEGER NOT NULL, text TEXT NOT NULL, comment INTEGER) STRICT;
  INSERT INTO new_comments SELECT rowid, run, n, text, comment FROM earlier_comments;
  DROP TABLE earlier_comments;
  ALTER TABLE new_comments RENAME TO earlier_comments;
  CREATE INDEX earlier_comments_run ON earlier_comments (run, n);
  CREATE TABLE new_alarms (number INTEGER PRIMARY KEY, kind TEXT NOT NULL, instrument TEXT, since INTEGER NOT NULL,
    text TEXT NOT NULL) STRICT;
  INSERT INTO new_alarms SELECT rowid, kind, instrument, since, text FROM alarms;
  DROP TABLE alarms;
  ALTER TABLE new_alarms RENAME TO alarms;
  CREATE TABLE forwards (id INTEGER PRIMARY KEY AUTOINCREMENT, operation TEXT NOT NULL) STRICT;   -- JSON
  CREATE TABLE membership (instance TEXT NOT NULL, name TEXT NOT NULL, fleet TEXT NOT NULL, member INTEGER NOT NULL,
    followed INTEGER NOT NULL DEFAULT 0) STRICT;
  `,
  // Contents that operations of a fleet's member need, until these are sent.
  `
  CREATE TABLE forwarded (sha256 TEXT NOT NULL, forward INTEGER NOT NULL, PRIMARY KEY (sha256, forward)) STRICT, WITHOUT ROWID;
  CREATE INDEX forwarded_forward ON forwarded (forward);
  `,
  // Where the runs of a member were moved to, and the last of its own runs that was handed over; null: all of them were.
  'ALTER TABLE membership ADD COLUMN url TEXT; ALTER TABLE membership ADD COLUMN importing INTEGER;',
];
