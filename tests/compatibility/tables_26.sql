CREATE TABLE attempts (
  intent_id BIGINT NOT NULL,
  number INTEGER NOT NULL,
  ended_at TIMESTAMP WITH TIME ZONE NOT NULL,
  outcome VARCHAR(16) NOT NULL,
  http_status INTEGER,
  message TEXT NOT NULL,
  PRIMARY KEY (intent_id, number),
  FOREIGN KEY(intent_id) REFERENCES intents (id) ON DELETE CASCADE
);
CREATE TABLE audit_log (
  id BIGSERIAL NOT NULL,
  token VARCHAR(32) NOT NULL,
  at TIMESTAMP WITH TIME ZONE NOT NULL,
  person VARCHAR(128) NOT NULL,
  address VARCHAR(128) NOT NULL,
  action VARCHAR(64) NOT NULL,
  subject TEXT NOT NULL,
  reason TEXT NOT NULL,
  before TEXT,
  after TEXT,
  outcome VARCHAR(8) NOT NULL,
  error TEXT NOT NULL,
  PRIMARY KEY (id),
  UNIQUE (token)
);
CREATE TABLE batches (
  id BIGSERIAL NOT NULL,
  run_id BIGINT NOT NULL,
  target VARCHAR(64) NOT NULL,
  resource VARCHAR(32) NOT NULL,
  number BIGINT NOT NULL,
  key VARCHAR(64) NOT NULL,
  name TEXT NOT NULL,
  destination TEXT NOT NULL,
  body BYTEA,
  sha256 VARCHAR(64) NOT NULL,
  records INTEGER NOT NULL,
  created_at TIMESTAMP WITH TIME ZONE NOT NULL,
  handed_over_at TIMESTAMP WITH TIME ZONE,
  due_at TIMESTAMP WITH TIME ZONE,
  receipt TEXT DEFAULT '' NOT NULL,
  PRIMARY KEY (id),
  FOREIGN KEY(run_id) REFERENCES runs (id),
  UNIQUE (key)
);
CREATE TABLE begun_undos (
  stream VARCHAR(192) NOT NULL,
  run_id BIGINT NOT NULL,
  begun_at TIMESTAMP WITH TIME ZONE NOT NULL,
  plan TEXT NOT NULL,
  keys BYTEA NOT NULL,
  PRIMARY KEY (stream),
  FOREIGN KEY(run_id) REFERENCES runs (id)
);
CREATE TABLE bindings (
  target VARCHAR(64) NOT NULL,
  resource VARCHAR(32) NOT NULL,
  namespace VARCHAR(128) NOT NULL,
  key_hash BYTEA NOT NULL,
  key TEXT NOT NULL,
  target_id VARCHAR(128) NOT NULL,
  record_fp BYTEA,
  step VARCHAR(8) NOT NULL,
  position TEXT,
  payload TEXT NOT NULL,
  etag TEXT,
  changed_at TEXT,
  counter BIGINT NOT NULL,
  run_id BIGINT NOT NULL,
  updated_at TIMESTAMP WITH TIME ZONE NOT NULL,
  deleted_at TIMESTAMP WITH TIME ZONE,
  unverified BOOLEAN,
  PRIMARY KEY (target, resource, namespace, key_hash),
  FOREIGN KEY(run_id) REFERENCES runs (id)
);
CREATE TABLE buckets (
  name VARCHAR(512) NOT NULL,
  rate_per_s DOUBLE PRECISION NOT NULL,
  burst BIGINT NOT NULL,
  as_of DOUBLE PRECISION NOT NULL,
  spent_until DOUBLE PRECISION NOT NULL,
  frozen_until DOUBLE PRECISION NOT NULL,
  spent BIGINT NOT NULL,
  refused BIGINT NOT NULL,
  granted BIGINT NOT NULL,
  known TEXT NOT NULL,
  PRIMARY KEY (name)
);
CREATE TABLE configs (
  digest VARCHAR(64) NOT NULL,
  content TEXT NOT NULL,
  PRIMARY KEY (digest)
);
CREATE TABLE content_digests (
  kind VARCHAR(16) NOT NULL,
  stream VARCHAR(192) NOT NULL,
  version VARCHAR(64) NOT NULL,
  packed BYTEA NOT NULL,
  PRIMARY KEY (kind, stream, version)
);
CREATE TABLE crossdock_meta (
  name VARCHAR(64) NOT NULL,
  value TEXT NOT NULL,
  PRIMARY KEY (name)
);
CREATE TABLE cursors (
  stream VARCHAR(192) NOT NULL,
  version VARCHAR(64) NOT NULL,
  value TEXT NOT NULL,
  PRIMARY KEY (stream)
);
CREATE TABLE dead_letters (
  stream VARCHAR(192) NOT NULL,
  key_hash BYTEA NOT NULL,
  key TEXT NOT NULL,
  record_fp BYTEA,
  position TEXT,
  raw TEXT NOT NULL,
  source TEXT NOT NULL,
  line BIGINT NOT NULL,
  step VARCHAR(8) NOT NULL,
  stage VARCHAR(16) NOT NULL,
  code VARCHAR(32) NOT NULL,
  pointer TEXT,
  message TEXT NOT NULL,
  mapped TEXT,
  status VARCHAR(16) NOT NULL,
  attempts INTEGER NOT NULL,
  first_run_id BIGINT NOT NULL,
  run_id BIGINT NOT NULL,
  refused_at TIMESTAMP WITH TIME ZONE NOT NULL,
  PRIMARY KEY (stream, key_hash),
  FOREIGN KEY(first_run_id) REFERENCES runs (id),
  FOREIGN KEY(run_id) REFERENCES runs (id)
);
CREATE TABLE followed_records (
  stream VARCHAR(192) NOT NULL,
  key_hash BYTEA NOT NULL,
  key TEXT NOT NULL,
  read_at TIMESTAMP WITH TIME ZONE NOT NULL,
  missed INTEGER NOT NULL,
  PRIMARY KEY (stream, key_hash)
);
CREATE TABLE full_lists (
  stream VARCHAR(192) NOT NULL,
  read_at TIMESTAMP WITH TIME ZONE NOT NULL,
  PRIMARY KEY (stream)
);
CREATE TABLE hints (
  stream VARCHAR(192) NOT NULL,
  key_hash BYTEA NOT NULL,
  key TEXT NOT NULL,
  number BIGINT NOT NULL,
  first_at TIMESTAMP WITH TIME ZONE NOT NULL,
  last_at TIMESTAMP WITH TIME ZONE NOT NULL,
  due_at TIMESTAMP WITH TIME ZONE NOT NULL,
  attempts INTEGER NOT NULL,
  error TEXT,
  PRIMARY KEY (stream, key_hash)
);
CREATE TABLE intents (
  id BIGSERIAL NOT NULL,
  run_id BIGINT NOT NULL,
  fence BIGINT NOT NULL,
  stream VARCHAR(192) NOT NULL,
  target VARCHAR(64) NOT NULL,
  resource VARCHAR(32) NOT NULL,
  namespace VARCHAR(128) NOT NULL,
  key_hash BYTEA NOT NULL,
  key TEXT NOT NULL,
  record_fp BYTEA,
  position TEXT,
  raw TEXT NOT NULL,
  source TEXT NOT NULL,
  line BIGINT NOT NULL,
  operation VARCHAR(16) NOT NULL,
  counter BIGINT NOT NULL,
  idempotency_key VARCHAR(64) NOT NULL,
  method VARCHAR(8) NOT NULL,
  path TEXT NOT NULL,
  body BYTEA,
  before TEXT,
  after TEXT,
  step VARCHAR(8) NOT NULL,
  if_match TEXT,
  status VARCHAR(16) NOT NULL,
  attempts INTEGER NOT NULL,
  created_at TIMESTAMP WITH TIME ZONE NOT NULL,
  first_sent_at TIMESTAMP WITH TIME ZONE,
  settled_at TIMESTAMP WITH TIME ZONE,
  http_status INTEGER,
  target_id VARCHAR(128),
  untouched BOOLEAN,
  only_unchanged VARCHAR(8),
  resolved_at TIMESTAMP WITH TIME ZONE,
  batch_id BIGINT,
  place INTEGER,
  PRIMARY KEY (id),
  FOREIGN KEY(run_id) REFERENCES runs (id),
  UNIQUE (idempotency_key)
);
CREATE TABLE jobs (
  name VARCHAR(64) NOT NULL,
  since TIMESTAMP WITH TIME ZONE NOT NULL,
  paused BOOLEAN NOT NULL,
  done_until TIMESTAMP WITH TIME ZONE,
  PRIMARY KEY (name)
);
CREATE TABLE key_stamps (
  target VARCHAR(64) NOT NULL,
  resource VARCHAR(32) NOT NULL,
  namespace VARCHAR(128) NOT NULL,
  stamp BIGINT NOT NULL,
  PRIMARY KEY (target, resource, namespace)
);
CREATE TABLE leases (
  name VARCHAR(64) NOT NULL,
  fence BIGINT NOT NULL,
  owner VARCHAR(128) NOT NULL,
  locked BOOLEAN NOT NULL,
  until TIMESTAMP WITH TIME ZONE NOT NULL,
  PRIMARY KEY (name)
);
CREATE TABLE migration_runs (
  run_id BIGINT NOT NULL,
  migration_id BIGINT NOT NULL,
  wave VARCHAR(64),
  kind VARCHAR(16) NOT NULL,
  PRIMARY KEY (run_id),
  FOREIGN KEY(run_id) REFERENCES runs (id),
  FOREIGN KEY(migration_id) REFERENCES migrations (id)
);
CREATE TABLE migrations (
  id BIGSERIAL NOT NULL,
  name VARCHAR(64) NOT NULL,
  started_at TIMESTAMP WITH TIME ZONE NOT NULL,
  started_by VARCHAR(128) NOT NULL,
  paused_at TIMESTAMP WITH TIME ZONE,
  paused_by VARCHAR(128),
  rehearsal TEXT,
  "freeze" TEXT,
  reconciliation TEXT,
  signed_off_at TIMESTAMP WITH TIME ZONE,
  signed_off_by VARCHAR(128),
  report_sha256 VARCHAR(64),
  PRIMARY KEY (id)
);
CREATE TABLE passed_files (
  stream VARCHAR(192) NOT NULL,
  name TEXT NOT NULL,
  size BIGINT NOT NULL,
  modified_at TIMESTAMP WITH TIME ZONE NOT NULL,
  PRIMARY KEY (stream, name)
);
CREATE TABLE pending_removals (
  stream VARCHAR(192) NOT NULL,
  what TEXT NOT NULL,
  keys BYTEA NOT NULL,
  since TIMESTAMP WITH TIME ZONE NOT NULL,
  approved_at TIMESTAMP WITH TIME ZONE,
  PRIMARY KEY (stream)
);
CREATE TABLE run_messages (
  run_id BIGINT NOT NULL,
  number INTEGER NOT NULL,
  level VARCHAR(8) NOT NULL,
  stream VARCHAR(192) NOT NULL,
  message TEXT NOT NULL,
  code VARCHAR(32),
  place TEXT,
  advice TEXT,
  category VARCHAR(16),
  PRIMARY KEY (run_id, number),
  FOREIGN KEY(run_id) REFERENCES runs (id) ON DELETE CASCADE
);
CREATE TABLE runs (
  id BIGSERIAL NOT NULL,
  job VARCHAR(128),
  business_date VARCHAR(10) NOT NULL,
  started_at TIMESTAMP WITH TIME ZONE NOT NULL,
  finished_at TIMESTAMP WITH TIME ZONE,
  duration_ms BIGINT,
  status VARCHAR(16) NOT NULL,
  requests BIGINT NOT NULL,
  throttled BIGINT NOT NULL,
  tally TEXT,
  timings TEXT,
  command TEXT,
  config VARCHAR(64),
  fence BIGINT,
  PRIMARY KEY (id)
);
CREATE TABLE scheduled_runs (
  job VARCHAR(64) NOT NULL,
  due TIMESTAMP WITH TIME ZONE NOT NULL,
  business_date VARCHAR(10) NOT NULL,
  status VARCHAR(16) NOT NULL,
  attempts INTEGER NOT NULL,
  run_id BIGINT,
  started_at TIMESTAMP WITH TIME ZONE,
  finished_at TIMESTAMP WITH TIME ZONE,
  note TEXT,
  fence BIGINT,
  PRIMARY KEY (job, due, business_date),
  FOREIGN KEY(run_id) REFERENCES runs (id)
);
CREATE TABLE sequences (
  target VARCHAR(64) NOT NULL,
  last BIGINT NOT NULL,
  PRIMARY KEY (target)
);
CREATE TABLE snapshots (
  stream VARCHAR(192) NOT NULL,
  content VARCHAR(64) NOT NULL,
  row_count BIGINT NOT NULL,
  present BIGINT,
  finished_at TIMESTAMP WITH TIME ZONE NOT NULL,
  PRIMARY KEY (stream, content)
);
CREATE TABLE suspected_inputs (
  stream VARCHAR(192) NOT NULL,
  digest VARCHAR(64) NOT NULL,
  name TEXT NOT NULL,
  killed INTEGER NOT NULL,
  here INTEGER NOT NULL,
  batches BIGINT NOT NULL,
  at TIMESTAMP WITH TIME ZONE NOT NULL,
  set_aside_at TIMESTAMP WITH TIME ZONE,
  PRIMARY KEY (stream, digest)
);
CREATE TABLE taken_files (
  stream VARCHAR(192) NOT NULL,
  content_hash VARCHAR(64) NOT NULL,
  version VARCHAR(64) NOT NULL,
  name TEXT NOT NULL,
  size BIGINT NOT NULL,
  modified_at TIMESTAMP WITH TIME ZONE NOT NULL,
  stamp VARCHAR(32) NOT NULL,
  status VARCHAR(16) NOT NULL,
  accepted_at TIMESTAMP WITH TIME ZONE NOT NULL,
  seen_at TIMESTAMP WITH TIME ZONE,
  PRIMARY KEY (stream, content_hash, version)
);
CREATE TABLE unknown_references (
  target VARCHAR(64) NOT NULL,
  resource VARCHAR(32) NOT NULL,
  target_id VARCHAR(128) NOT NULL,
  by_resource VARCHAR(32) NOT NULL,
  by_id VARCHAR(128) NOT NULL,
  PRIMARY KEY (target, resource, target_id, by_resource, by_id)
);
CREATE TABLE untrimmed_keys (
  target VARCHAR(64) NOT NULL,
  resource VARCHAR(32) NOT NULL,
  namespace VARCHAR(128) NOT NULL,
  key_hash BYTEA NOT NULL,
  key TEXT NOT NULL,
  PRIMARY KEY (target, resource, namespace, key_hash)
);
CREATE TABLE unverified (
  kind VARCHAR(8) NOT NULL,
  name VARCHAR(192) NOT NULL,
  PRIMARY KEY (kind, name)
);
CREATE TABLE waiting_records (
  stream VARCHAR(192) NOT NULL,
  key_hash BYTEA NOT NULL,
  key TEXT NOT NULL,
  record_fp BYTEA,
  position TEXT,
  raw TEXT NOT NULL,
  source TEXT NOT NULL,
  line BIGINT NOT NULL,
  waits_for TEXT NOT NULL,
  run_id BIGINT NOT NULL,
  since TIMESTAMP WITH TIME ZONE NOT NULL,
  idle_under VARCHAR(64),
  PRIMARY KEY (stream, key_hash),
  FOREIGN KEY(run_id) REFERENCES runs (id)
);
CREATE TABLE wave_approvals (
  migration_id BIGINT NOT NULL,
  wave VARCHAR(64) NOT NULL,
  approved_at TIMESTAMP WITH TIME ZONE NOT NULL,
  approved_by VARCHAR(128) NOT NULL,
  open TEXT NOT NULL,
  PRIMARY KEY (migration_id, wave),
  FOREIGN KEY(migration_id) REFERENCES migrations (id)
);
CREATE TABLE webhooks (
  connection VARCHAR(64) NOT NULL,
  delivery VARCHAR(512) NOT NULL,
  received_at TIMESTAMP WITH TIME ZONE NOT NULL,
  topic TEXT NOT NULL,
  problem TEXT,
  PRIMARY KEY (connection, delivery)
);
CREATE INDEX ix_audit_log_action ON audit_log (action, at, id);
CREATE INDEX ix_audit_log_at ON audit_log (at, id);
CREATE INDEX ix_audit_log_person ON audit_log (person, at, id);
CREATE INDEX ix_audit_log_subject ON audit_log (subject, at, id);
CREATE INDEX ix_batches_target_name ON batches (target, name);
CREATE INDEX ix_batches_target_number ON batches (target, number);
CREATE INDEX ix_bindings_run ON bindings (run_id);
CREATE INDEX ix_bindings_target_id ON bindings (target_id);
CREATE INDEX ix_bindings_unverified ON bindings (target, resource, namespace, key_hash) WHERE unverified IS true;
CREATE INDEX ix_dead_letters_listed ON dead_letters (status, stream, code, refused_at, key_hash, first_run_id, run_id);
CREATE INDEX ix_dead_letters_place ON dead_letters (substr(source, 1, 200), line);
CREATE INDEX ix_hints_stream_due_at ON hints (stream, due_at);
CREATE INDEX ix_intents_batch ON intents (batch_id);
CREATE INDEX ix_intents_key ON intents (target, resource, namespace, key_hash);
CREATE INDEX ix_intents_place ON intents (substr(source, 1, 200), line);
CREATE INDEX ix_intents_run ON intents (run_id);
CREATE INDEX ix_intents_status ON intents (status);
CREATE INDEX ix_intents_target_id ON intents (target_id);
CREATE INDEX ix_runs_business_date ON runs (business_date, job, status);
CREATE INDEX ix_waiting_records_place ON waiting_records (substr(source, 1, 200), line);
CREATE INDEX ix_webhooks_received_at ON webhooks (received_at);
