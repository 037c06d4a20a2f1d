import { Connection, type Database } from '../journal/database.js';

/** A table of the outbox half. Its rows are in the leader's working copy, in PostgreSQL, and in those of the standbys. */
export interface Table {
  readonly name: string;
  readonly columns: readonly string[];
  /** The columns as statements name them. */
  readonly list: string;
  readonly key: readonly string[];
  readonly blobs: ReadonlySet<string>;
  /** The definition of each column for PostgreSQL. */
  readonly definitions: readonly string[];
}

export type Tables = ReadonlyMap<string, Table>;

/**
 * The intake half describes the folders of one machine. The identity of the fleet is in `labfeed.fleet`, and a member's
 * own operations are in its own journal.
 */
const LOCAL: ReadonlySet<string> = new Set([
  ...['files', 'instruments', 'growing', 'folders', 'identity', 'forwards', 'forwarded', 'membership', 'working_copy'],
  'kept_runs',
]);

/** What the leader records about members, in the same transactions as what it does with their operations. */
export const FLEET_TABLES = `
  -- The number of the last operation of a member that was applied.
  CREATE TABLE IF NOT EXISTS received (member INTEGER PRIMARY KEY, number INTEGER NOT NULL) STRICT;
  -- Which run of the fleet a member's own run became.
  CREATE TABLE IF NOT EXISTS origins (
    member INTEGER NOT NULL,
    run    INTEGER NOT NULL,        -- in the journal of the member
    filed  INTEGER NOT NULL,        -- in the fleet
    PRIMARY KEY (member, run)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX IF NOT EXISTS origins_filed ON origins (filed);
  -- Growing files on a share that several members follow: their lines go to the runs of the first one.
  CREATE TABLE IF NOT EXISTS shared_generations (
    generation INTEGER PRIMARY KEY,
    filed      INTEGER NOT NULL     -- the generation that has the runs
  ) STRICT;
  -- Operations that could not be applied.
  CREATE TABLE IF NOT EXISTS failures (
    member    INTEGER NOT NULL,
    name      TEXT NOT NULL,        -- of the member
    number    INTEGER NOT NULL,
    at        INTEGER NOT NULL,
    reason    TEXT NOT NULL,
    operation TEXT NOT NULL,
    PRIMARY KEY (member, number)
  ) STRICT, WITHOUT ROWID;
  -- Answers to questions of members: whether a file may be moved or deleted, and what became of a decision.
  CREATE TABLE IF NOT EXISTS answers (
    member INTEGER NOT NULL,
    number INTEGER NOT NULL,        -- of the operation that asked
    at     INTEGER NOT NULL,
    asked  TEXT NOT NULL,           -- JSON: the operation, or the number of the request in the inbox
    answer TEXT,                    -- JSON; null: not yet
    PRIMARY KEY (member, number)
  ) STRICT, WITHOUT ROWID;
  -- The runs that a member took along when it left, until it has them.
  CREATE TABLE IF NOT EXISTS departures (
    member INTEGER NOT NULL,
    run    INTEGER NOT NULL,        -- in the journal of the member
    whole  TEXT NOT NULL,           -- JSON
    PRIMARY KEY (member, run)
  ) STRICT, WITHOUT ROWID;
  -- Local to a working copy: how far it has followed. While it leads, it is ahead of that.
  CREATE TABLE IF NOT EXISTS working_copy (
    epoch INTEGER NOT NULL,
    seq   INTEGER NOT NULL,
    leads INTEGER NOT NULL,
    mark  TEXT NOT NULL             -- of the last shipment that it has
  ) STRICT;
  -- The same, of a machine that only watches: it keeps its own runs, those that are open, and those above this number.
  CREATE TABLE IF NOT EXISTS kept_runs (member INTEGER NOT NULL, above INTEGER NOT NULL) STRICT;
`;

/** The shipped tables of a database that has the journal's tables. */
export function readTables(database: Database): Tables {
  const db = new Connection(database);
  const names = db.values<string>`SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name`;
  const shipped = names.filter((name) => !LOCAL.has(name) && !name.startsWith('sqlite_'));
  return new Map(shipped.map((name) => [name, readTable(db, name)]));
}

interface Column {
  readonly name: string;
  readonly type: string;
  readonly notnull: number;
  readonly pk: number;
}

const TYPES: Readonly<Record<string, string>> = {
  INTEGER: 'bigint',
  TEXT: 'text',
  BLOB: 'bytea',
  REAL: 'double precision',
};

function readTable(db: Connection, name: string): Table {
  const columns = db.rows<Column>`SELECT name, type, "notnull", pk FROM pragma_table_info(${name}) ORDER BY cid`;
  const key = columns.filter(({ pk }) => pk > 0).sort((a, b) => a.pk - b.pk);
  if (key.length === 0) throw new Error(`the table ${name} has no primary key, so its rows cannot be shipped`);
  return {
    name,
    columns: columns.map((column) => column.name),
    list: columns.map((column) => `"${column.name}"`).join(', '),
    key: key.map((column) => column.name),
    blobs: new Set(columns.filter(({ type }) => type === 'BLOB').map((column) => column.name)),
    definitions: columns.map(
      (column) => `"${column.name}" ${TYPES[column.type] ?? 'text'}${column.notnull || column.pk ? ' NOT NULL' : ''}`,
    ),
  };
}

/** Unique constraints are checked at the end of a transaction: a session has lost the order of its changes. */
const UNIQUE: Readonly<Record<string, string>> = {
  runs: `,
    UNIQUE (instrument, sha256, copy, refiling) DEFERRABLE INITIALLY DEFERRED,
    UNIQUE (reference) DEFERRABLE INITIALLY DEFERRED,
    UNIQUE (server, experiment) DEFERRABLE INITIALLY DEFERRED`,
};

/**
 * What else PostgreSQL has of a table. Members ask what became of their runs since they last did: so the mark is at the
 * origin, and a run that changes needs no entry in the indexes of its fingerprint and reference, if there is room in its page.
 */
const MORE: Readonly<Record<string, string>> = {
  history: 'CREATE INDEX ON labfeed.history (run);',
  runs: 'ALTER TABLE labfeed.runs SET (fillfactor = 80);',
  origins: `
  ALTER TABLE labfeed.origins ADD COLUMN shipped bigint;
  ALTER TABLE labfeed.origins ALTER COLUMN shipped SET DEFAULT current_setting('labfeed.seq')::bigint;
  CREATE INDEX ON labfeed.origins (member, shipped, run);
  CREATE INDEX ON labfeed.origins (filed);`,
};

/** The same tables for PostgreSQL, where IT can query them. They have no triggers of the journal: rows arrive complete. */
export const createTables = (tables: Tables): string =>
  [...tables.values()]
    .map(
      ({ name, definitions, key }) => `
  CREATE TABLE labfeed.${name} (
    ${definitions.join(',\n    ')},
    PRIMARY KEY (${key.map((column) => `"${column}"`).join(', ')})${UNIQUE[name] ?? ''}
  );
  ${MORE[name] ?? ''}`,
    )
    .join('\n')
    .concat('\n  SELECT labfeed.define();');

export const dropTables = (names: readonly string[]): string =>
  names.map((name) => `DROP TABLE labfeed."${name}";`).join('\n');

/**
 * The part of the PostgreSQL schema that is the fleet's own, as numbered steps like those of the journal. A released step is
 * never edited.
 */
export const FLEET_STEPS: readonly string[] = [
  `
  -- One row. \`journal\`: the version of the journal's tables that are here; 0: none yet.
  CREATE TABLE labfeed.fleet (
    one      boolean PRIMARY KEY DEFAULT true CHECK (one),
    id       text NOT NULL,
    journal  integer NOT NULL DEFAULT 0,
    -- The lease of the leader. Times are those of this server.
    epoch    bigint NOT NULL DEFAULT 0,
    seq      bigint NOT NULL DEFAULT 0,
    leader   bigint,
    until    timestamptz NOT NULL DEFAULT '-infinity',
    -- The key that the leader sends with, so that its successor can delete it first.
    notebook text,
    session_key bigint
  );
  CREATE TABLE labfeed.members (
    id       bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    instance text NOT NULL UNIQUE,
    name     text NOT NULL,
    role     text NOT NULL,
    version  text NOT NULL,
    seen_at  timestamptz NOT NULL,
    skew_ms  bigint NOT NULL DEFAULT 0,
    followed bigint,
    live     json
  );
  CREATE INDEX ON labfeed.members (name);
  CREATE TABLE labfeed.operations (
    member bigint NOT NULL,
    number bigint NOT NULL,
    operation json NOT NULL,
    at     timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (member, number)
  );
  -- Raw files and plots on their way to the notebook.
  CREATE TABLE labfeed.contents (
    sha256 text NOT NULL,
    n      integer NOT NULL,
    bytes  bytea NOT NULL,
    at     timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (sha256, n)
  );
  ALTER TABLE labfeed.contents ALTER COLUMN bytes SET STORAGE EXTERNAL;
  CREATE TABLE labfeed.complete (
    sha256 text PRIMARY KEY,
    size   bigint NOT NULL,
    at     timestamptz NOT NULL DEFAULT now()
  );
  -- The latest changes, for the standbys.
  CREATE TABLE labfeed.changes (
    seq     bigint PRIMARY KEY,
    at      timestamptz NOT NULL DEFAULT now(),
    changes jsonb NOT NULL
  );
  CREATE FUNCTION labfeed.mark() RETURNS trigger LANGUAGE plpgsql AS $$
  BEGIN
    NEW.shipped := current_setting('labfeed.seq')::bigint;
    RETURN NEW;
  END $$;
  CREATE FUNCTION labfeed.apply(changes jsonb) RETURNS void LANGUAGE plpgsql AS $$
  DECLARE
    c jsonb;
    t text;
    sets text;
    keys text;
  BEGIN
    FOR c IN SELECT * FROM jsonb_array_elements(changes) LOOP
      t := c->>'t';
      IF c->>'o' = 'i' THEN
        EXECUTE format('INSERT INTO labfeed.%1$I SELECT * FROM jsonb_populate_record(NULL::labfeed.%1$I, $1)', t)
          USING c->'v';
        CONTINUE;
      END IF;
      SELECT string_agg(format('t.%1$I = n.%1$I', k), ' AND ') INTO keys FROM jsonb_object_keys(c->'k') AS k;
      IF c->>'o' = 'd' THEN
        EXECUTE format('DELETE FROM labfeed.%1$I AS t USING jsonb_populate_record(NULL::labfeed.%1$I, $1) AS n WHERE %2$s',
          t, keys) USING c->'k';
      ELSE
        SELECT string_agg(format('%1$I = n.%1$I', k), ', ') INTO sets FROM jsonb_object_keys(c->'v') AS k;
        EXECUTE format('UPDATE labfeed.%1$I AS t SET %2$s FROM jsonb_populate_record(NULL::labfeed.%1$I, $1) AS n WHERE %3$s',
          t, sets, keys) USING (c->'k') || (c->'v');
      END IF;
    END LOOP;
  END $$;
  -- One round trip: a leader whose epoch is over changes nothing, and a repeated call changes nothing twice.
  CREATE FUNCTION labfeed.ship(p_epoch bigint, p_seq bigint, p_changes jsonb) RETURNS bigint LANGUAGE plpgsql AS $$
  DECLARE
    held record;
  BEGIN
    SELECT epoch, seq INTO held FROM labfeed.fleet FOR UPDATE;
    IF held.epoch <> p_epoch THEN
      RAISE EXCEPTION 'epoch % is over', p_epoch USING ERRCODE = 'LF001';
    END IF;
    IF p_seq <= held.seq THEN
      RETURN held.seq;
    END IF;
    IF p_seq <> held.seq + 1 THEN
      RAISE EXCEPTION 'changes % arrived before %', p_seq, held.seq + 1 USING ERRCODE = 'LF002';
    END IF;
    PERFORM set_config('labfeed.seq', p_seq::text, true);
    PERFORM labfeed.apply(p_changes);
    UPDATE labfeed.fleet SET seq = p_seq;
    INSERT INTO labfeed.changes (seq, changes) VALUES (p_seq, p_changes);
    PERFORM pg_notify('labfeed', 'changes');
    RETURN p_seq;
  END $$;
  `,
  `
  -- The member that sent last. A leader is not, until it has made sure that the one before cannot send any more.
  ALTER TABLE labfeed.fleet ADD COLUMN sender bigint;
  UPDATE labfeed.fleet SET sender = leader;
  `,
  `
  -- The contents that an operation needs stay until it is applied.
  ALTER TABLE labfeed.operations ADD COLUMN contents text[] NOT NULL DEFAULT '{}';
  CREATE INDEX ON labfeed.operations USING gin (contents);
  `,
  `
  -- The alarms of members, so that one of them reports what several see.
  CREATE TABLE labfeed.raised (
    member     bigint NOT NULL,
    kind       text NOT NULL,
    instrument text NOT NULL,
    since      bigint NOT NULL,
    key        text NOT NULL,         -- the same for those who see the same
    told       boolean NOT NULL,      -- whether this member reported it
    told_over  boolean,               -- and that it is over; null: it is not
    PRIMARY KEY (member, kind, instrument)
  );
  CREATE INDEX ON labfeed.raised (key);
  `,
  `
  -- The statements that apply changes are compiled once for each connection, not once for each row. So they are written out
  -- for the tables that there are, and take all rows of a table at a time.
  DROP FUNCTION labfeed.mark() CASCADE;
  CREATE FUNCTION labfeed.define() RETURNS void LANGUAGE plpgsql AS $define$
  DECLARE
    t record;
    branches text := '';
  BEGIN
    FOR t IN
      SELECT relname AS name, string_agg(quote_ident(attname), ', ' ORDER BY attnum) AS columns,
        string_agg(quote_ident(attname), ', ' ORDER BY attnum) FILTER (WHERE NOT attnum = ANY (indkey)) AS others,
        string_agg(format('t.%1$I = (c->''k''->>%1$L)::%2$s', attname, format_type(atttypid, atttypmod)), ' AND ')
          FILTER (WHERE attnum = ANY (indkey)) AS is_same
        FROM pg_class JOIN pg_index ON indrelid = pg_class.oid AND indisprimary JOIN pg_attribute ON attrelid = pg_class.oid
        WHERE relnamespace = 'labfeed'::regnamespace AND attnum > 0 AND NOT attisdropped AND attname <> 'shipped' AND relname NOT IN
          ('version', 'fleet', 'members', 'operations', 'contents', 'complete', 'changes', 'raised')
        GROUP BY relname ORDER BY relname
    LOOP
      branches := branches || format($branch$
      WHEN %1$L THEN
        IF g.o = 'i' THEN
          INSERT INTO labfeed.%1$I (%2$s) SELECT %2$s FROM jsonb_populate_recordset(NULL::labfeed.%1$I, g.rows);
        ELSIF g.o = 'd' THEN
          DELETE FROM labfeed.%1$I AS t USING jsonb_array_elements(g.rows) AS c WHERE %4$s;
        ELSE
          %5$s
          %6$s
        END IF;$branch$, t.name, t.columns, t.others, t.is_same,
        CASE WHEN t.others IS NULL THEN 'NULL;' ELSE format(
          $update$UPDATE labfeed.%1$I AS t SET (%2$s) = (SELECT %2$s FROM jsonb_populate_record(t, c->'v'))
            FROM jsonb_array_elements(g.rows) AS c WHERE %3$s;$update$, t.name, t.others, t.is_same) END,
        CASE t.name WHEN 'runs' THEN
          $mark$UPDATE labfeed.origins SET shipped = DEFAULT FROM jsonb_array_elements(g.rows) AS c
            WHERE filed = (c->'k'->>'id')::bigint;$mark$ ELSE '' END);
    END LOOP;
    EXECUTE format($apply$
  -- Plans are made once and used for tables of any size, also for those that were empty then.
  CREATE OR REPLACE FUNCTION labfeed.apply(changes jsonb) RETURNS void LANGUAGE plpgsql SET plan_cache_mode = force_generic_plan
    SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off SET jit = off AS $body$
  DECLARE
    g record;
  BEGIN
    FOR g IN
      SELECT c->>'t' AS t, c->>'o' AS o, jsonb_agg(CASE c->>'o' WHEN 'i' THEN c->'v' ELSE c END) AS rows
        FROM jsonb_array_elements(changes) WITH ORDINALITY AS one (c, n) GROUP BY 1, 2 ORDER BY min(n)
    LOOP
      CASE g.t %s
      END CASE;
    END LOOP;
  END $body$ $apply$, coalesce(nullif(branches, ''), 'WHEN NULL THEN NULL;'));
  END $define$;
  DO $$
  BEGIN
    IF to_regclass('labfeed.runs') IS NOT NULL THEN
      ALTER TABLE labfeed.runs DROP COLUMN shipped, SET (fillfactor = 80);
      ALTER TABLE labfeed.answers DROP COLUMN shipped;
      ALTER TABLE labfeed.origins DROP COLUMN shipped;
      -- Members read the states of all their runs once.
      PERFORM set_config('labfeed.seq', (SELECT seq FROM labfeed.fleet)::text, true);
      ALTER TABLE labfeed.origins ADD COLUMN shipped bigint DEFAULT current_setting('labfeed.seq')::bigint;
      CREATE INDEX ON labfeed.origins (member, shipped, run);
      CREATE INDEX ON labfeed.origins (filed);
    END IF;
  END $$;
  SELECT labfeed.define();
  `,
  `
  DO $$
  BEGIN
    IF to_regclass('labfeed.runs') IS NOT NULL THEN
      CREATE TABLE labfeed.shared_generations (generation bigint PRIMARY KEY, filed bigint NOT NULL);
    END IF;
  END $$;
  SELECT labfeed.define();
  `,
  `
  -- Every shipment has a random mark and that of the one before. A database that was restored from a backup numbers other
  -- shipments alike: a copy that is older than the restore does not follow them, and a leader from before it records nothing.
  ALTER TABLE labfeed.fleet ADD COLUMN mark text NOT NULL DEFAULT gen_random_uuid();
  ALTER TABLE labfeed.changes ADD COLUMN mark text NOT NULL DEFAULT '', ADD COLUMN previous text NOT NULL DEFAULT '';
  DROP FUNCTION labfeed.ship(bigint, bigint, jsonb);
  CREATE FUNCTION labfeed.ship(p_epoch bigint, p_seq bigint, p_previous text, p_mark text, p_changes jsonb)
    RETURNS void LANGUAGE plpgsql AS $$
  DECLARE
    held record;
  BEGIN
    SELECT epoch, seq, mark INTO held FROM labfeed.fleet FOR UPDATE;
    IF held.epoch <> p_epoch THEN
      RAISE EXCEPTION 'epoch % is over', p_epoch USING ERRCODE = 'LF001';
    END IF;
    -- A repeated call.
    IF held.seq = p_seq AND held.mark = p_mark THEN
      RETURN;
    END IF;
    IF held.seq + 1 <> p_seq OR held.mark <> p_previous THEN
      RAISE EXCEPTION 'shipment % does not follow %', p_seq, held.seq USING ERRCODE = 'LF002';
    END IF;
    PERFORM set_config('labfeed.seq', p_seq::text, true);
    PERFORM labfeed.apply(p_changes);
    UPDATE labfeed.fleet SET seq = p_seq, mark = p_mark;
    INSERT INTO labfeed.changes (seq, changes, mark, previous) VALUES (p_seq, p_changes, p_mark, p_previous);
    PERFORM pg_notify('labfeed', 'changes');
  END $$;
  `,
  `
  -- Machines that only watch read single runs.
  DO $$
  BEGIN
    IF to_regclass('labfeed.history') IS NOT NULL THEN
      CREATE INDEX ON labfeed.history (run);
    END IF;
  END $$;
  `,
];
