SELECT pg_catalog.set_config('search_path', '', false);
CREATE TABLE public.attempts (
    intent_id bigint NOT NULL,
    number integer NOT NULL,
    ended_at timestamp with time zone NOT NULL,
    outcome character varying(16) NOT NULL,
    http_status integer,
    message text NOT NULL
);
CREATE TABLE public.audit_log (
    id bigint NOT NULL,
    token character varying(32) NOT NULL,
    at timestamp with time zone NOT NULL,
    person character varying(128) NOT NULL,
    address character varying(128) NOT NULL,
    action character varying(64) NOT NULL,
    subject text NOT NULL,
    reason text NOT NULL,
    before text,
    after text,
    outcome character varying(8) NOT NULL,
    error text NOT NULL
);
CREATE SEQUENCE public.audit_log_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.audit_log_id_seq OWNED BY public.audit_log.id;
CREATE TABLE public.batches (
    id bigint NOT NULL,
    run_id bigint NOT NULL,
    target character varying(64) NOT NULL,
    resource character varying(32) NOT NULL,
    number bigint NOT NULL,
    key character varying(64) NOT NULL,
    name text NOT NULL,
    destination text NOT NULL,
    body bytea,
    sha256 character varying(64) NOT NULL,
    records integer NOT NULL,
    created_at timestamp with time zone NOT NULL,
    handed_over_at timestamp with time zone,
    due_at timestamp with time zone,
    receipt text DEFAULT ''::text NOT NULL
);
CREATE SEQUENCE public.batches_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.batches_id_seq OWNED BY public.batches.id;
CREATE TABLE public.begun_undos (
    stream character varying(192) NOT NULL,
    run_id bigint NOT NULL,
    begun_at timestamp with time zone NOT NULL,
    plan text NOT NULL,
    keys bytea NOT NULL
);
CREATE TABLE public.bindings (
    target character varying(64) NOT NULL,
    resource character varying(32) NOT NULL,
    namespace character varying(128) NOT NULL,
    key_hash bytea NOT NULL,
    key text NOT NULL,
    target_id character varying(128) NOT NULL,
    record_fp bytea,
    step character varying(8) NOT NULL,
    "position" text,
    payload text NOT NULL,
    etag text,
    changed_at text,
    counter bigint NOT NULL,
    run_id bigint NOT NULL,
    updated_at timestamp with time zone NOT NULL,
    deleted_at timestamp with time zone,
    unverified boolean
);
CREATE TABLE public.buckets (
    name character varying(512) NOT NULL,
    rate_per_s double precision NOT NULL,
    burst bigint NOT NULL,
    as_of double precision NOT NULL,
    spent_until double precision NOT NULL,
    frozen_until double precision NOT NULL,
    spent bigint NOT NULL,
    refused bigint NOT NULL,
    granted bigint NOT NULL,
    known text NOT NULL
);
CREATE TABLE public.configs (
    digest character varying(64) NOT NULL,
    content text NOT NULL
);
CREATE TABLE public.content_digests (
    kind character varying(16) NOT NULL,
    stream character varying(192) NOT NULL,
    version character varying(64) NOT NULL,
    packed bytea NOT NULL
);
CREATE TABLE public.crossdock_meta (
    name character varying(64) NOT NULL,
    value text NOT NULL
);
CREATE TABLE public.cursors (
    stream character varying(192) NOT NULL,
    version character varying(64) NOT NULL,
    value text NOT NULL
);
CREATE TABLE public.dead_letters (
    stream character varying(192) NOT NULL,
    key_hash bytea NOT NULL,
    key text NOT NULL,
    record_fp bytea,
    "position" text,
    raw text NOT NULL,
    source text NOT NULL,
    line bigint NOT NULL,
    step character varying(8) NOT NULL,
    stage character varying(16) NOT NULL,
    code character varying(32) NOT NULL,
    pointer text,
    message text NOT NULL,
    mapped text,
    status character varying(16) NOT NULL,
    attempts integer NOT NULL,
    first_run_id bigint NOT NULL,
    run_id bigint NOT NULL,
    refused_at timestamp with time zone NOT NULL
);
CREATE TABLE public.followed_records (
    stream character varying(192) NOT NULL,
    key_hash bytea NOT NULL,
    key text NOT NULL,
    read_at timestamp with time zone NOT NULL,
    missed integer NOT NULL
);
CREATE TABLE public.full_lists (
    stream character varying(192) NOT NULL,
    read_at timestamp with time zone NOT NULL
);
CREATE TABLE public.hints (
    stream character varying(192) NOT NULL,
    key_hash bytea NOT NULL,
    key text NOT NULL,
    number bigint NOT NULL,
    first_at timestamp with time zone NOT NULL,
    last_at timestamp with time zone NOT NULL,
    due_at timestamp with time zone NOT NULL,
    attempts integer NOT NULL,
    error text
);
CREATE TABLE public.intents (
    id bigint NOT NULL,
    run_id bigint NOT NULL,
    fence bigint NOT NULL,
    stream character varying(192) NOT NULL,
    target character varying(64) NOT NULL,
    resource character varying(32) NOT NULL,
    namespace character varying(128) NOT NULL,
    key_hash bytea NOT NULL,
    key text NOT NULL,
    record_fp bytea,
    "position" text,
    raw text NOT NULL,
    source text NOT NULL,
    line bigint NOT NULL,
    operation character varying(16) NOT NULL,
    counter bigint NOT NULL,
    idempotency_key character varying(64) NOT NULL,
    method character varying(8) NOT NULL,
    path text NOT NULL,
    body bytea,
    before text,
    after text,
    step character varying(8) NOT NULL,
    if_match text,
    status character varying(16) NOT NULL,
    attempts integer NOT NULL,
    created_at timestamp with time zone NOT NULL,
    first_sent_at timestamp with time zone,
    settled_at timestamp with time zone,
    http_status integer,
    target_id character varying(128),
    untouched boolean,
    only_unchanged character varying(8),
    resolved_at timestamp with time zone,
    batch_id bigint,
    place integer
);
CREATE SEQUENCE public.intents_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.intents_id_seq OWNED BY public.intents.id;
CREATE TABLE public.jobs (
    name character varying(64) NOT NULL,
    since timestamp with time zone NOT NULL,
    paused boolean NOT NULL,
    done_until timestamp with time zone
);
CREATE TABLE public.key_stamps (
    target character varying(64) NOT NULL,
    resource character varying(32) NOT NULL,
    namespace character varying(128) NOT NULL,
    stamp bigint NOT NULL
);
CREATE TABLE public.leases (
    name character varying(64) NOT NULL,
    fence bigint NOT NULL,
    owner character varying(128) NOT NULL,
    locked boolean NOT NULL,
    until timestamp with time zone NOT NULL
);
CREATE TABLE public.migration_runs (
    run_id bigint NOT NULL,
    migration_id bigint NOT NULL,
    wave character varying(64),
    kind character varying(16) NOT NULL
);
CREATE TABLE public.migrations (
    id bigint NOT NULL,
    name character varying(64) NOT NULL,
    started_at timestamp with time zone NOT NULL,
    started_by character varying(128) NOT NULL,
    paused_at timestamp with time zone,
    paused_by character varying(128),
    rehearsal text,
    "freeze" text,
    reconciliation text,
    signed_off_at timestamp with time zone,
    signed_off_by character varying(128),
    report_sha256 character varying(64)
);
CREATE SEQUENCE public.migrations_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.migrations_id_seq OWNED BY public.migrations.id;
CREATE TABLE public.passed_files (
    stream character varying(192) NOT NULL,
    name text NOT NULL,
    size bigint NOT NULL,
    modified_at timestamp with time zone NOT NULL
);
CREATE TABLE public.pending_removals (
    stream character varying(192) NOT NULL,
    what text NOT NULL,
    keys bytea NOT NULL,
    since timestamp with time zone NOT NULL,
    approved_at timestamp with time zone
);
CREATE TABLE public.run_messages (
    run_id bigint NOT NULL,
    number integer NOT NULL,
    level character varying(8) NOT NULL,
    stream character varying(192) NOT NULL,
    message text NOT NULL,
    code character varying(32),
    place text,
    advice text,
    category character varying(16)
);
CREATE TABLE public.runs (
    id bigint NOT NULL,
    job character varying(128),
    business_date character varying(10) NOT NULL,
    started_at timestamp with time zone NOT NULL,
    finished_at timestamp with time zone,
    duration_ms bigint,
    status character varying(16) NOT NULL,
    requests bigint NOT NULL,
    throttled bigint NOT NULL,
    tally text,
    timings text,
    command text,
    config character varying(64),
    fence bigint
);
CREATE SEQUENCE public.runs_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
ALTER SEQUENCE public.runs_id_seq OWNED BY public.runs.id;
CREATE TABLE public.scheduled_runs (
    job character varying(64) NOT NULL,
    due timestamp with time zone NOT NULL,
    business_date character varying(10) NOT NULL,
    status character varying(16) NOT NULL,
    attempts integer NOT NULL,
    run_id bigint,
    started_at timestamp with time zone,
    finished_at timestamp with time zone,
    note text,
    fence bigint
);
CREATE TABLE public.sequences (
    target character varying(64) NOT NULL,
    last bigint NOT NULL
);
CREATE TABLE public.snapshots (
    stream character varying(192) NOT NULL,
    content character varying(64) NOT NULL,
    row_count bigint NOT NULL,
    present bigint,
    finished_at timestamp with time zone NOT NULL
);
CREATE TABLE public.suspected_inputs (
    stream character varying(192) NOT NULL,
    digest character varying(64) NOT NULL,
    name text NOT NULL,
    killed integer NOT NULL,
    here integer NOT NULL,
    batches bigint NOT NULL,
    at timestamp with time zone NOT NULL,
    set_aside_at timestamp with time zone
);
CREATE TABLE public.taken_files (
    stream character varying(192) NOT NULL,
    content_hash character varying(64) NOT NULL,
    version character varying(64) NOT NULL,
    name text NOT NULL,
    size bigint NOT NULL,
    modified_at timestamp with time zone NOT NULL,
    stamp character varying(32) NOT NULL,
    status character varying(16) NOT NULL,
    accepted_at timestamp with time zone NOT NULL,
    seen_at timestamp with time zone
);
CREATE TABLE public.unknown_references (
    target character varying(64) NOT NULL,
    resource character varying(32) NOT NULL,
    target_id character varying(128) NOT NULL,
    by_resource character varying(32) NOT NULL,
    by_id character varying(128) NOT NULL
);
CREATE TABLE public.untrimmed_keys (
    target character varying(64) NOT NULL,
    resource character varying(32) NOT NULL,
    namespace character varying(128) NOT NULL,
    key_hash bytea NOT NULL,
    key text NOT NULL
);
CREATE TABLE public.unverified (
    kind character varying(8) NOT NULL,
    name character varying(192) NOT NULL
);
CREATE TABLE public.waiting_records (
    stream character varying(192) NOT NULL,
    key_hash bytea NOT NULL,
    key text NOT NULL,
    record_fp bytea,
    "position" text,
    raw text NOT NULL,
    source text NOT NULL,
    line bigint NOT NULL,
    waits_for text NOT NULL,
    run_id bigint NOT NULL,
    since timestamp with time zone NOT NULL,
    idle_under character varying(64)
);
CREATE TABLE public.wave_approvals (
    migration_id bigint NOT NULL,
    wave character varying(64) NOT NULL,
    approved_at timestamp with time zone NOT NULL,
    approved_by character varying(128) NOT NULL,
    open text NOT NULL
);
CREATE TABLE public.webhooks (
    connection character varying(64) NOT NULL,
    delivery character varying(512) NOT NULL,
    received_at timestamp with time zone NOT NULL,
    topic text NOT NULL,
    problem text
);
ALTER TABLE ONLY public.audit_log ALTER COLUMN id SET DEFAULT nextval('public.audit_log_id_seq'::regclass);
ALTER TABLE ONLY public.batches ALTER COLUMN id SET DEFAULT nextval('public.batches_id_seq'::regclass);
ALTER TABLE ONLY public.intents ALTER COLUMN id SET DEFAULT nextval('public.intents_id_seq'::regclass);
ALTER TABLE ONLY public.migrations ALTER COLUMN id SET DEFAULT nextval('public.migrations_id_seq'::regclass);
ALTER TABLE ONLY public.runs ALTER COLUMN id SET DEFAULT nextval('public.runs_id_seq'::regclass);
INSERT INTO public.attempts VALUES (19, 2, '2026-11-29 17:32:13.476559+00', 'delivered', 201, '');
INSERT INTO public.attempts VALUES (21, 2, '2026-11-29 17:32:13.476605+00', 'delivered', 201, '');
INSERT INTO public.attempts VALUES (17, 2, '2026-11-29 17:32:13.476621+00', 'delivered', 201, '');
INSERT INTO public.attempts VALUES (22, 2, '2026-11-29 17:32:13.476635+00', 'delivered', 201, '');
INSERT INTO public.attempts VALUES (13, 2, '2026-11-29 17:32:13.476648+00', 'delivered', 201, '');
INSERT INTO public.attempts VALUES (16, 2, '2026-11-29 17:32:13.476661+00', 'delivered', 201, '');
INSERT INTO public.attempts VALUES (24, 1, '2026-11-29 17:32:13.55493+00', 'in_doubt', NULL, 'request failed: the server closed the connection without a response');
INSERT INTO public.audit_log VALUES (1, 'a05b22d9a9b142a98ea6e85aaf54e949', '2026-11-29 17:32:12.250591+00', 'operator', 'command line, host', 'init', 'state', '', NULL, '{"version":26}', 'done', '');
INSERT INTO public.audit_log VALUES (2, 'dae63f893ce84e55bab3cc40bc9874f0', '2026-11-29 17:32:12.29552+00', 'operator', 'command line, host', 'sync', 'run 1', '', NULL, '{"command":"sync","delivered":25,"open":3,"requests":25,"status":"degraded"}', 'done', '');
INSERT INTO public.audit_log VALUES (3, 'cc2d9488e4dd47448d22fd8962bcbe49', '2026-11-29 17:32:13.732994+00', 'operator', 'command line, host', 'schedule --once', 'run 2', '', NULL, '{"business_date":"2026-11-28","delivered":1,"job":"nightly","open":4,"requests":1,"status":"incomplete"}', 'refused', 'PROD_2.csv: 16 of 20 records are gone, more than gone.at_most_percent (5); none of them is removed: P6, P17, P8, P15, P13, ...; list them: crossdock plan wms.products --limit 16; to allow the removal, after a sync that ended with this message: crossdock approve wms.products 16');
INSERT INTO public.audit_log VALUES (4, 'ce4a19ed26d8474ca89565e7419051d4', '2026-11-29 17:32:14.068816+00', 'operator', 'command line, host', 'records drop', 'record wms.invoices 5', '', '{"rejected":1}', '{"dropped":1}', 'done', '');
INSERT INTO public.audit_log VALUES (5, '56b2c85a0062466d86b5a5cbba36f38e', '2026-11-29 17:32:14.151055+00', 'operator', 'command line, host', 'jobs pause', 'job nightly', '', '"active"', '"paused"', 'done', '');
INSERT INTO public.batches VALUES (1, 1, 'depot', 'orders', 1, 'b76c94fb1b264806b1ab5058448e78bc', 'ord_000001.csv', '/srv/project depot as .{name}.part', '\x6f726465725f69642c736b752c7175616e746974790a4f312c50312c310a4f322c50322c320a', '0085c5639617972469374fab4ec0b0550df8500c25be62401a514d4d727a0aaf', 2, '2026-11-29 17:32:13.605723+00', '2026-11-29 17:32:13.61451+00', NULL, '');
INSERT INTO public.bindings VALUES ('platform', 'customer', 'wms', '\x2cb29bd862760f503b7d0d206099ca33', 'C1', 'cus_1a2285d4accacf6d9dbb38832', '\x00000000000000005c9cf2b4e8511924', 'whole', NULL, '{"externalId":"wms:C1","name":"Vogel"}', '"2"', '2026-11-29T17:32:12.364367Z', 1, 1, '2026-11-29 17:32:12.369179+00', NULL, NULL);
INSERT INTO public.bindings VALUES ('platform', 'product', 'wms', '\xf83d4ce41cc45a9f8dde78ffff48adf8', 'P1', 'prd_1a2285d4b0d9c6bd5c938eb4b', '\x0000000000000000d7afa4bc2a96bd73', 'whole', NULL, '{"active":true,"externalId":"wms:P1","name":"Bolt 1","sku":"P1","unitPrice":1.5}', '"3"', '2026-11-29T17:32:12.429613Z', 1, 1, '2026-11-29 17:32:12.443877+00', NULL, NULL);
INSERT INTO public.bindings VALUES ('platform', 'product', 'wms', '\xf36c7cb09181c9863f32c69eefaf5956', 'P0', 'prd_1a2285d4b0fcae2f24877987f', '\x0000000000000000e24e767716018a3a', 'whole', NULL, '{"active":true,"externalId":"wms:P0","name":"Bolt 0","sku":"P0","unitPrice":1.5}', '"4"', '2026-11-29T17:32:12.431273Z', 1, 1, '2026-11-29 17:32:12.457628+00', NULL, NULL);
INSERT INTO public.bindings VALUES ('platform', 'product', 'wms', '\x0029e527dc3f478a7f3cb354e6a40c5e', 'P3', 'prd_1a2285d4b15b2c3d2ebf2154c', '\x0000000000000000fd26c8ba079044b1', 'whole', NULL, '{"active":true,"externalId":"wms:P3","name":"Bolt 3","sku":"P3","unitPrice":1.5}', '"5"', '2026-11-29T17:32:12.437342Z', 1, 1, '2026-11-29 17:32:12.457628+00', NULL, NULL);
INSERT INTO public.bindings VALUES ('platform', 'product', 'wms', '\xd2bda13db2155c446baba9c48356ac25', 'P7', 'prd_1a2285d4b168988934f9757aa', '\x0000000000000000415340fe2aea3058', 'whole', NULL, '{"active":true,"externalId":"wms:P7","name":"Bolt 7","sku":"P7","unitPrice":1.5}', '"7"', '2026-11-29T17:32:12.438355Z', 1, 1, '2026-11-29 17:32:12.457628+00', NULL, NULL);
INSERT INTO public.bindings VALUES ('platform', 'product', 'wms', '\x74f029daf01a5dc24fca212e7d70dc7c', 'P2', 'prd_1a2285d4b161416ccc09b75d7', '\x0000000000000000696eca6f6959c493', 'whole', NULL, '{"active":true,"externalId":"wms:P2","name":"Bolt 2","sku":"P2","unitPrice":1.5}', '"6"', '2026-11-29T17:32:12.438295Z', 1, 1, '2026-11-29 17:32:12.457628+00', NULL, NULL);
INSERT INTO public.bindings VALUES ('platform', 'product', 'wms', '\x965fa03bb800594ea23bb4aff887506e', 'P4', 'prd_1a2285d4b1ab1c8edfad6fc76', '\x0000000000000000f614977f07d1fb27', 'whole', NULL, '{"active":true,"externalId":"wms:P4","name":"Bolt 4","sku":"P4","unitPrice":1.5}', '"8"', '2026-11-29T17:32:12.442864Z', 1, 1, '2026-11-29 17:32:12.457628+00', NULL, NULL);
INSERT INTO public.bindings VALUES ('platform', 'product', 'wms', '\x92cb61df796cde81dda20856533a3990', 'P5', 'prd_1a2285d4b1eefc27c672e0924', '\x00000000000000008e977c16b60a9af5', 'whole', NULL, '{"active":true,"externalId":"wms:P5","name":"Bolt 5","sku":"P5","unitPrice":1.5}', '"11"', '2026-11-29T17:32:12.446763Z', 1, 1, '2026-11-29 17:32:12.457628+00', NULL, NULL);
INSERT INTO public.bindings VALUES ('platform', 'product', 'wms', '\x3b77257d395be609cffe1b79567f6bb2', 'P6', 'prd_1a2285d4b1ed4f643e6d3fb53', '\x00000000000000006a1b66d03fc170b2', 'whole', NULL, '{"active":true,"externalId":"wms:P6","name":"Bolt 6","sku":"P6","unitPrice":1.5}', '"9"', '2026-11-29T17:32:12.446428Z', 1, 1, '2026-11-29 17:32:12.457628+00', NULL, NULL);
INSERT INTO public.bindings VALUES ('platform', 'product', 'wms', '\xf0c04e64a1f600d5843ed9ffbb6a137a', 'P9', 'prd_1a2285d4b1e4e1e6e6d077f71', '\x000000000000000071d7116c30a30999', 'whole', NULL, '{"active":true,"externalId":"wms:P9","name":"Bolt 9","sku":"P9","unitPrice":1.5}', '"10"', '2026-11-29T17:32:12.446709Z', 1, 1, '2026-11-29 17:32:12.457628+00', NULL, NULL);
INSERT INTO public.bindings VALUES ('platform', 'product', 'wms', '\x8bce931b09242d29cd93b5a3e50d276d', 'P11', 'prd_1a2285d4b20355d40c7a02bbf', '\x0000000000000000b791a53d911f9884', 'whole', NULL, '{"active":true,"externalId":"wms:P11","name":"Bolt 11","sku":"P11","unitPrice":1.5}', '"12"', '2026-11-29T17:32:12.448131Z', 1, 1, '2026-11-29 17:32:12.457628+00', NULL, NULL);
INSERT INTO public.bindings VALUES ('platform', 'product', 'wms', '\x714abcdadb722f9f91162e7b573b4c9c', 'P15', 'prd_1a2285d4b22855a070f9d910e', '\x000000000000000098fa0edb188296f1', 'whole', NULL, '{"active":true,"externalId":"wms:P15","name":"Bolt 15","sku":"P15","unitPrice":1.5}', '"14"', '2026-11-29T17:32:12.450439Z', 1, 1, '2026-11-29 17:32:12.457628+00', NULL, NULL);
INSERT INTO public.bindings VALUES ('platform', 'product', 'wms', '\x9abd52214e42c69bbf81ca150a982224', 'P12', 'prd_1a2285d4b22b113bf6eca0112', '\x00000000000000003f5715615ff6a510', 'whole', NULL, '{"active":true,"externalId":"wms:P12","name":"Bolt 12","sku":"P12","unitPrice":1.5}', '"16"', '2026-11-29T17:32:12.450530Z', 1, 1, '2026-11-29 17:32:12.457628+00', NULL, NULL);
INSERT INTO public.bindings VALUES ('platform', 'product', 'wms', '\x612510008d3be12c54909caf8013c1e5', 'P8', 'prd_1a2285d4b2104a6144e432581', '\x0000000000000000308520a2efac153a', 'whole', NULL, '{"active":true,"externalId":"wms:P8","name":"Bolt 8","sku":"P8","unitPrice":1.5}', '"13"', '2026-11-29T17:32:12.449007Z', 1, 1, '2026-11-29 17:32:12.457628+00', NULL, NULL);
INSERT INTO public.bindings VALUES ('platform', 'product', 'wms', '\x53f0a6db3ff64b8e5375ea5d4b2f6343', 'P17', 'prd_1a2285d4b22ef18dd814db66c', '\x00000000000000009d0e12ea9ad2cb5f', 'whole', NULL, '{"active":true,"externalId":"wms:P17","name":"Bolt 17","sku":"P17","unitPrice":1.5}', '"15"', '2026-11-29T17:32:12.450496Z', 1, 1, '2026-11-29 17:32:12.457628+00', NULL, NULL);
INSERT INTO public.bindings VALUES ('platform', 'product', 'wms', '\x87ee1c0397a4928e3f37e15b915268bb', 'P16', 'prd_1a2285d4f1b478d69f79457e7', '\x00000000000000006b63218a1e66db5b', 'whole', NULL, '{"active":true,"externalId":"wms:P16","name":"Bolt 16","sku":"P16","unitPrice":1.5}', '"17"', '2026-11-29T17:32:13.467047Z', 1, 1, '2026-11-29 17:32:13.476693+00', NULL, NULL);
INSERT INTO public.bindings VALUES ('platform', 'product', 'wms', '\x94bf1bbd865a661e9bac1bd899ac7f02', 'P18', 'prd_1a2285d4f1b408aa979fde45c', '\x0000000000000000ac129130d8fc4016', 'whole', NULL, '{"active":true,"externalId":"wms:P18","name":"Bolt 18","sku":"P18","unitPrice":1.5}', '"18"', '2026-11-29T17:32:13.467294Z', 1, 1, '2026-11-29 17:32:13.476693+00', NULL, NULL);
INSERT INTO public.bindings VALUES ('platform', 'product', 'wms', '\xa39c7bc89864cfb5235e0e33f139e6ac', 'P14', 'prd_1a2285d4f1fbee6150bd749b6', '\x0000000000000000896361c929199913', 'whole', NULL, '{"active":true,"externalId":"wms:P14","name":"Bolt 14","sku":"P14","unitPrice":1.5}', '"19"', '2026-11-29T17:32:13.471538Z', 1, 1, '2026-11-29 17:32:13.476693+00', NULL, NULL);
INSERT INTO public.bindings VALUES ('platform', 'product', 'wms', '\x8fdc5b13064e44f84cbcd61493e78294', 'P19', 'prd_1a2285d4f1f50deb622730294', '\x000000000000000075bfafdac4b8ca16', 'whole', NULL, '{"active":true,"externalId":"wms:P19","name":"Bolt 19","sku":"P19","unitPrice":1.5}', '"20"', '2026-11-29T17:32:13.471651Z', 1, 1, '2026-11-29 17:32:13.476693+00', NULL, NULL);
INSERT INTO public.bindings VALUES ('platform', 'product', 'wms', '\xa3b3932b0d006ac18833d9f54efcd621', 'P10', 'prd_1a2285d4f1fc319024df7fb6d', '\x00000000000000008a4fb80985f0578b', 'whole', NULL, '{"active":true,"externalId":"wms:P10","name":"Bolt 10","sku":"P10","unitPrice":1.5}', '"21"', '2026-11-29T17:32:13.471748Z', 1, 1, '2026-11-29 17:32:13.476693+00', NULL, NULL);
INSERT INTO public.bindings VALUES ('platform', 'product', 'wms', '\x83d2f5a66befea6477bcc7e413232c21', 'P13', 'prd_1a2285d4f1fff79797be03b6c', '\x0000000000000000e8733ffebc5ccffd', 'whole', NULL, '{"active":true,"externalId":"wms:P13","name":"Bolt 13","sku":"P13","unitPrice":1.5}', '"22"', '2026-11-29T17:32:13.471780Z', 1, 1, '2026-11-29 17:32:13.476693+00', NULL, NULL);
INSERT INTO public.bindings VALUES ('platform', 'invoice', 'wms', '\xdf3ce784d856334d65cd25028f98f158', '1', 'inv_1a2285d4f6cf6b6b9cf6272dd', '\x0000000000000000f3981414256ddfca', 'whole', NULL, '{"currency":"EUR","customerId":"cus_1a2285d4accacf6d9dbb38832","items":[{"productId":"prd_1a2285d4b0d9c6bd5c938eb4b","quantity":2,"unitPrice":2}]}', '"23"', '2026-11-29T17:32:13.548546Z', 1, 1, '2026-11-29 17:32:13.555+00', NULL, NULL);
INSERT INTO public.bindings VALUES ('depot', 'orders', 'depot', '\xae3ca2da179f19931a1e5c9610eadaf3', 'O1', 'O1', '\x0000000000000000bc3da5bab6491fb9', 'whole', NULL, '{"order_id":"O1","quantity":"1","sku":"P1"}', NULL, NULL, 1, 1, '2026-11-29 17:32:13.61451+00', NULL, NULL);
INSERT INTO public.bindings VALUES ('depot', 'orders', 'depot', '\x769cab44f982eb6a9d362e723cc19ba2', 'O2', 'O2', '\x00000000000000006c5699c9b9ce154a', 'whole', NULL, '{"order_id":"O2","quantity":"2","sku":"P2"}', NULL, NULL, 1, 1, '2026-11-29 17:32:13.61451+00', NULL, NULL);
INSERT INTO public.bindings VALUES ('platform', 'customer', 'wms', '\x14c38134bd3cba520db0735024ae3545', 'C2', 'cus_1a2285d4ac9c0f62de9143bf1', '\x000000000000000075f317e415fd8e11', 'whole', NULL, '{"externalId":"wms:C2","name":"Drossel"}', '"25"', '2026-11-29T17:32:13.800671Z', 2, 2, '2026-11-29 17:32:13.803895+00', NULL, NULL);
INSERT INTO public.buckets VALUES ('depot', 1000, 1000, 1795973533.6126165, 1795973533.6136165, 0, 2, 0, 0, '{"rate_per_s": 1000.0, "rate_from": "set", "burst": 1000, "burst_from": "set", "agreed": 0, "most_per_s": 1000.0, "most_at_once": 1000}');
INSERT INTO public.buckets VALUES ('platform', 166.66666666666666, 2000, 1795973533.7925622, 1795973533.7985623, 0, 31, 0, 0, '{"rate_per_s": 166.66666666666666, "rate_from": "documented", "burst": 2000, "burst_from": "reported", "agreed": 0, "most_at_once": 1000000000}');
INSERT INTO public.configs VALUES ('701d68994b81ff3fdce99945a691480843ac0dd6537a6f62c3bea469871fcd09', '{"connections":{"depot":{"kind":"folder_warehouse","path":"/srv/project","settle_s":0,"sources":{},"streams":{"orders":{"adopt":"never","changes":{"at_most":100,"at_most_percent":30},"columns":{},"conflicts":"overwrite","contributes":[],"duplicates":"refuse","empty":"refuse","enabled":true,"fewer_rows_percent":20,"files":"out/ORD_*","fingerprint":"xxh3_64","format":{"delimiter":";","encoding":"utf-8","header":true,"kind":"delimited","quote":"\""},"gone":{"at_most":100,"at_most_percent":5,"referenced":"keep","rows_within_percent":20},"join":{},"key":["ORDER"],"lookup":{},"map":{"quantity":"QTY","sku":"SKU"},"mapping_failed":{"at_most":20,"at_most_percent":5},"matches":"key","mode":"append","on_gone":"nothing","personal":[],"skip":{},"to":"depot.orders","trim_keys":true}},"target":{"first_number":1,"resources":{"orders":{"content":{"bom":false,"column_names":true,"decimal_mark":".","delimiter":",","encoding":"utf-8","header":[],"kind":"delimited","line_end":"lf","quote":"\"","quoting":"minimal","rows":[{"columns":{"order_id":{"cut":false,"false_text":"false","template":"{external_id}","true_text":"true"},"quantity":{"cut":false,"false_text":"false","template":"{quantity}","true_text":"true"},"sku":{"cut":false,"false_text":"false","template":"{sku}","true_text":"true"}},"named":"line"}],"trailer":[]},"copies":false,"file":"ord_{number:6}.csv","folder":"depot","if_missing":"in_doubt","members":{"quantity":{"members":{},"personal":false,"required":false,"type":"text"},"sku":{"members":{},"personal":false,"required":false,"type":"text"}},"name":"order_id","name_form":"{key}","name_max_length":64,"records_per_file":1000,"taken":[],"temporary":".{name}.part"}},"retry":{"attempts":6,"base_s":0.5,"cap_s":60,"give_up_after_s":300},"timezone":"UTC"}},"wms":{"kind":"folder_warehouse","path":"/srv/project/out","settle_s":0,"sources":{},"streams":{"customers":{"adopt":"never","changes":{"at_most":100,"at_most_percent":30},"columns":{},"conflicts":"overwrite","contributes":[],"duplicates":"refuse","empty":"refuse","enabled":true,"fewer_rows_percent":20,"files":"CUST_*","fingerprint":"xxh3_64","format":{"delimiter":";","encoding":"utf-8","header":true,"kind":"delimited","quote":"\""},"gone":{"at_most":100,"at_most_percent":5,"referenced":"keep","rows_within_percent":20},"join":{},"key":["CUSTNO"],"lookup":{},"map":{"name":"NAME"},"mapping_failed":{"at_most":20,"at_most_percent":5},"matches":"key","mode":"append","on_gone":"nothing","personal":[],"resource":"customer","skip":{},"to":"platform","trim_keys":true},"invoices":{"adopt":"never","changes":{"at_most":100,"at_most_percent":30},"columns":{},"conflicts":"overwrite","contributes":[],"duplicates":"refuse","empty":"refuse","enabled":true,"fewer_rows_percent":20,"files":"INV_*","fingerprint":"xxh3_64","format":{"delimiter":";","encoding":"utf-8","header":true,"kind":"delimited","quote":"\""},"gone":{"at_most":100,"at_most_percent":5,"referenced":"keep","rows_within_percent":20},"group_by":["INVNO"],"join":{},"key":["INVNO"],"lookup":{},"map":{"currency":{"const":"EUR"},"customerId":{"key":"CUSTNO","ref":"customer"},"items":{"each":{"productId":{"key":"SKU","ref":"product"},"quantity":{"as":"decimal","decimal_mark":".","false_text":"false","from":"QTY","true_text":"true"},"unitPrice":{"const":2}}}},"mapping_failed":{"at_most":20,"at_most_percent":5},"matches":"key","mode":"append","on_gone":"nothing","personal":[],"resource":"invoice","skip":{},"to":"platform","trim_keys":true},"products":{"adopt":"never","changes":{"at_most":100,"at_most_percent":30},"columns":{},"conflicts":"overwrite","contributes":[],"duplicates":"refuse","empty":"refuse","enabled":true,"fewer_rows_percent":20,"files":"PROD_*","fingerprint":"xxh3_64","format":{"delimiter":";","encoding":"utf-8","header":true,"kind":"delimited","quote":"\"","trailer":{"count":1,"count_includes":0,"prefix":"TRL"}},"gone":{"at_most":100,"at_most_percent":5,"referenced":"keep","rows_within_percent":20},"join":{},"key":["SKU"],"lookup":{},"map":{"name":"NAME","sku":"SKU","unitPrice":{"as":"decimal","decimal_mark":".","false_text":"false","from":"PRICE","true_text":"true"}},"mapping_failed":{"at_most":20,"at_most_percent":5},"matches":"key","mode":"snapshot","on_gone":"delete","personal":[],"resource":"product","skip":{},"to":"platform","trim_keys":true}}}},"jobs":{"nightly":{"after":[],"overlap":"queue","schedule":{"at":["02:00"],"blackouts":[],"business_date":"same_day","catch_up":"latest","catch_up_within":"7d","days":["mon","tue","wed","thu","fri","sat","sun"],"holidays":[],"on_holiday":"skip","time_zone":"UTC"},"streams":["wms","depot"]}},"platform":{"auth":{"kind":"api_key","token":"env:CROSSDOCK_API_KEY"},"base_url":"http://platform.example","conditional_updates":true,"http":{"connect_timeout_s":5,"max_response_bytes":8388608,"read_timeout_s":30,"total_timeout_s":60,"trust_env":false},"idempotency":{"enabled":false,"header":"Idempotency-Key","kept_s":86400,"quoted":true},"in_flight":100,"lookup":{"enabled":true,"parameter":"externalId","settle_s":60},"max_clock_skew_s":300,"paths":{},"rate":{},"retry":{"attempts":2,"base_s":0.01,"cap_s":60,"give_up_after_s":0.1},"scope_names":{},"tenant":"sandbox","tenant_header":"x-tenant-slug"},"retention":"90d","spool":"/srv/project/test_1.spool","state":"postgresql://crossdock@127.0.0.1:46491/test_1"}');
INSERT INTO public.crossdock_meta VALUES ('version', '26');
INSERT INTO public.crossdock_meta VALUES ('base_url', 'http://platform.example');
INSERT INTO public.crossdock_meta VALUES ('tenant', 'sandbox');
INSERT INTO public.crossdock_meta VALUES ('id', '08da46ce8de64d3fa36315680328e9c3');
INSERT INTO public.crossdock_meta VALUES ('retention_applied_at', '2026-11-29T17:32:13.979934+00:00');
INSERT INTO public.dead_letters VALUES ('wms.invoices', '\xcb358fcee0dfde56fb95a7322f5da314', '2', '\x00000000000000008d17ef93f364a733', NULL, '{"columns":["INVNO","CUSTNO","SKU","QTY"],"lines":[3],"rows":[["2","C2","P1","x"]]}', 'INV_1.csv', 3, 'whole', 'mapping', 'bad_value', 'QTY', 'is not a number with decimal mark ''.'', no thousands marks and a leading sign', NULL, 'rejected', 1, 1, 1, '2026-11-29 17:32:13.533063+00');
INSERT INTO public.dead_letters VALUES ('wms.invoices', '\x562591323b675829dedb980100c87e72', '5', '\x0000000000000000805175291899d2bf', NULL, '{"columns":["INVNO","CUSTNO","SKU","QTY"],"lines":[2],"rows":[["5","C2","P3","y"]]}', 'INV_2.csv', 2, 'whole', 'mapping', 'bad_value', 'QTY', 'is not a number with decimal mark ''.'', no thousands marks and a leading sign', NULL, 'dropped', 1, 2, 2, '2026-11-29 17:32:13.884511+00');
INSERT INTO public.intents VALUES (2, 1, 1, 'wms.customers', 'platform', 'customer', 'wms', '\x14c38134bd3cba520db0735024ae3545', 'C2', '\x000000000000000039a8a18f7619e537', NULL, '{}', 'CUST_1.csv', 3, 'create', 1, 'fe86c1aeb75ca50a1826893808c2e95510e71f7e', 'POST', '/api/v1/sales/customers', '\x7b2265787465726e616c4964223a22776d733a4332222c226e616d65223a22416d73656c227d', NULL, NULL, 'whole', NULL, 'delivered', 1, '2026-11-29 17:32:12.351465+00', '2026-11-29 17:32:12.351465+00', '2026-11-29 17:32:12.369179+00', 201, 'cus_1a2285d4ac9c0f62de9143bf1', false, NULL, NULL, NULL, NULL);
INSERT INTO public.intents VALUES (1, 1, 1, 'wms.customers', 'platform', 'customer', 'wms', '\x2cb29bd862760f503b7d0d206099ca33', 'C1', '\x00000000000000005c9cf2b4e8511924', NULL, '{}', 'CUST_1.csv', 2, 'create', 1, 'd448bc2e046dfa4f3668991b15f148e979dba7d3', 'POST', '/api/v1/sales/customers', '\x7b2265787465726e616c4964223a22776d733a4331222c226e616d65223a22566f67656c227d', NULL, NULL, 'whole', NULL, 'delivered', 1, '2026-11-29 17:32:12.351465+00', '2026-11-29 17:32:12.351465+00', '2026-11-29 17:32:12.369179+00', 201, 'cus_1a2285d4accacf6d9dbb38832', false, NULL, NULL, NULL, NULL);
INSERT INTO public.intents VALUES (4, 1, 1, 'wms.products', 'platform', 'product', 'wms', '\xf83d4ce41cc45a9f8dde78ffff48adf8', 'P1', '\x0000000000000000d7afa4bc2a96bd73', NULL, '{}', 'PROD_1.csv', 3, 'create', 1, 'c6c7eb5ba4b8d3d2e9e85d5b71b31690e3a5f94a', 'POST', '/api/v1/catalog/products', '\x7b22616374697665223a747275652c2265787465726e616c4964223a22776d733a5031222c226e616d65223a22426f6c742031222c22736b75223a225031222c22756e69745072696365223a312e357d', NULL, NULL, 'whole', NULL, 'delivered', 1, '2026-11-29 17:32:12.411126+00', '2026-11-29 17:32:12.411126+00', '2026-11-29 17:32:12.443877+00', 201, 'prd_1a2285d4b0d9c6bd5c938eb4b', false, NULL, NULL, NULL, NULL);
INSERT INTO public.intents VALUES (3, 1, 1, 'wms.products', 'platform', 'product', 'wms', '\xf36c7cb09181c9863f32c69eefaf5956', 'P0', '\x0000000000000000e24e767716018a3a', NULL, '{}', 'PROD_1.csv', 2, 'create', 1, '3845e788113cdd9d7d75d42a5086c55013d20de6', 'POST', '/api/v1/catalog/products', '\x7b22616374697665223a747275652c2265787465726e616c4964223a22776d733a5030222c226e616d65223a22426f6c742030222c22736b75223a225030222c22756e69745072696365223a312e357d', NULL, NULL, 'whole', NULL, 'delivered', 1, '2026-11-29 17:32:12.411126+00', '2026-11-29 17:32:12.411126+00', '2026-11-29 17:32:12.457628+00', 201, 'prd_1a2285d4b0fcae2f24877987f', false, NULL, NULL, NULL, NULL);
INSERT INTO public.intents VALUES (17, 1, 1, 'wms.products', 'platform', 'product', 'wms', '\xa39c7bc89864cfb5235e0e33f139e6ac', 'P14', '\x0000000000000000896361c929199913', NULL, '{}', 'PROD_1.csv', 16, 'create', 1, 'b7231706fdcb466a64f5bb280fd9d8f890f34d55', 'POST', '/api/v1/catalog/products', '\x7b22616374697665223a747275652c2265787465726e616c4964223a22776d733a503134222c226e616d65223a22426f6c74203134222c22736b75223a22503134222c22756e69745072696365223a312e357d', NULL, NULL, 'whole', NULL, 'delivered', 2, '2026-11-29 17:32:12.411126+00', '2026-11-29 17:32:13.461368+00', '2026-11-29 17:32:13.476693+00', 201, 'prd_1a2285d4f1fbee6150bd749b6', false, NULL, NULL, NULL, NULL);
INSERT INTO public.intents VALUES (13, 1, 1, 'wms.products', 'platform', 'product', 'wms', '\xa3b3932b0d006ac18833d9f54efcd621', 'P10', '\x00000000000000008a4fb80985f0578b', NULL, '{}', 'PROD_1.csv', 12, 'create', 1, 'd479e676f410e03e14c7788c59f7800136a92947', 'POST', '/api/v1/catalog/products', '\x7b22616374697665223a747275652c2265787465726e616c4964223a22776d733a503130222c226e616d65223a22426f6c74203130222c22736b75223a22503130222c22756e69745072696365223a312e357d', NULL, NULL, 'whole', NULL, 'delivered', 2, '2026-11-29 17:32:12.411126+00', '2026-11-29 17:32:13.461368+00', '2026-11-29 17:32:13.476693+00', 201, 'prd_1a2285d4f1fc319024df7fb6d', false, NULL, NULL, NULL, NULL);
INSERT INTO public.intents VALUES (16, 1, 1, 'wms.products', 'platform', 'product', 'wms', '\x83d2f5a66befea6477bcc7e413232c21', 'P13', '\x0000000000000000e8733ffebc5ccffd', NULL, '{}', 'PROD_1.csv', 15, 'create', 1, '891acca2d36bfe1a04626b2d96932d8cd788d718', 'POST', '/api/v1/catalog/products', '\x7b22616374697665223a747275652c2265787465726e616c4964223a22776d733a503133222c226e616d65223a22426f6c74203133222c22736b75223a22503133222c22756e69745072696365223a312e357d', NULL, NULL, 'whole', NULL, 'delivered', 2, '2026-11-29 17:32:12.411126+00', '2026-11-29 17:32:13.461368+00', '2026-11-29 17:32:13.476693+00', 201, 'prd_1a2285d4f1fff79797be03b6c', false, NULL, NULL, NULL, NULL);
INSERT INTO public.intents VALUES (6, 1, 1, 'wms.products', 'platform', 'product', 'wms', '\x0029e527dc3f478a7f3cb354e6a40c5e', 'P3', '\x0000000000000000fd26c8ba079044b1', NULL, '{}', 'PROD_1.csv', 5, 'create', 1, 'b6ffc2800427a5defa44455c1849391529bf3d29', 'POST', '/api/v1/catalog/products', '\x7b22616374697665223a747275652c2265787465726e616c4964223a22776d733a5033222c226e616d65223a22426f6c742033222c22736b75223a225033222c22756e69745072696365223a312e357d', NULL, NULL, 'whole', NULL, 'delivered', 1, '2026-11-29 17:32:12.411126+00', '2026-11-29 17:32:12.411126+00', '2026-11-29 17:32:12.457628+00', 201, 'prd_1a2285d4b15b2c3d2ebf2154c', false, NULL, NULL, NULL, NULL);
INSERT INTO public.intents VALUES (10, 1, 1, 'wms.products', 'platform', 'product', 'wms', '\xd2bda13db2155c446baba9c48356ac25', 'P7', '\x0000000000000000415340fe2aea3058', NULL, '{}', 'PROD_1.csv', 9, 'create', 1, '141ed76fab2175c03dc85f4426f0e4be242b20a4', 'POST', '/api/v1/catalog/products', '\x7b22616374697665223a747275652c2265787465726e616c4964223a22776d733a5037222c226e616d65223a22426f6c742037222c22736b75223a225037222c22756e69745072696365223a312e357d', NULL, NULL, 'whole', NULL, 'delivered', 1, '2026-11-29 17:32:12.411126+00', '2026-11-29 17:32:12.411126+00', '2026-11-29 17:32:12.457628+00', 201, 'prd_1a2285d4b168988934f9757aa', false, NULL, NULL, NULL, NULL);
INSERT INTO public.intents VALUES (5, 1, 1, 'wms.products', 'platform', 'product', 'wms', '\x74f029daf01a5dc24fca212e7d70dc7c', 'P2', '\x0000000000000000696eca6f6959c493', NULL, '{}', 'PROD_1.csv', 4, 'create', 1, 'cd07b244605cc1f6387f3b4ec0912216aaf28a80', 'POST', '/api/v1/catalog/products', '\x7b22616374697665223a747275652c2265787465726e616c4964223a22776d733a5032222c226e616d65223a22426f6c742032222c22736b75223a225032222c22756e69745072696365223a312e357d', NULL, NULL, 'whole', NULL, 'delivered', 1, '2026-11-29 17:32:12.411126+00', '2026-11-29 17:32:12.411126+00', '2026-11-29 17:32:12.457628+00', 201, 'prd_1a2285d4b161416ccc09b75d7', false, NULL, NULL, NULL, NULL);
INSERT INTO public.intents VALUES (7, 1, 1, 'wms.products', 'platform', 'product', 'wms', '\x965fa03bb800594ea23bb4aff887506e', 'P4', '\x0000000000000000f614977f07d1fb27', NULL, '{}', 'PROD_1.csv', 6, 'create', 1, '0af076a77a15e8ff76f259faa7915846cd564a1a', 'POST', '/api/v1/catalog/products', '\x7b22616374697665223a747275652c2265787465726e616c4964223a22776d733a5034222c226e616d65223a22426f6c742034222c22736b75223a225034222c22756e69745072696365223a312e357d', NULL, NULL, 'whole', NULL, 'delivered', 1, '2026-11-29 17:32:12.411126+00', '2026-11-29 17:32:12.411126+00', '2026-11-29 17:32:12.457628+00', 201, 'prd_1a2285d4b1ab1c8edfad6fc76', false, NULL, NULL, NULL, NULL);
INSERT INTO public.intents VALUES (8, 1, 1, 'wms.products', 'platform', 'product', 'wms', '\x92cb61df796cde81dda20856533a3990', 'P5', '\x00000000000000008e977c16b60a9af5', NULL, '{}', 'PROD_1.csv', 7, 'create', 1, '38ecbfb0a99234f0135b04b0efd65a7dce995781', 'POST', '/api/v1/catalog/products', '\x7b22616374697665223a747275652c2265787465726e616c4964223a22776d733a5035222c226e616d65223a22426f6c742035222c22736b75223a225035222c22756e69745072696365223a312e357d', NULL, NULL, 'whole', NULL, 'delivered', 1, '2026-11-29 17:32:12.411126+00', '2026-11-29 17:32:12.411126+00', '2026-11-29 17:32:12.457628+00', 201, 'prd_1a2285d4b1eefc27c672e0924', false, NULL, NULL, NULL, NULL);
INSERT INTO public.intents VALUES (9, 1, 1, 'wms.products', 'platform', 'product', 'wms', '\x3b77257d395be609cffe1b79567f6bb2', 'P6', '\x00000000000000006a1b66d03fc170b2', NULL, '{}', 'PROD_1.csv', 8, 'create', 1, 'be6245ca8e4ef65cf76afb2751d25d68e32318eb', 'POST', '/api/v1/catalog/products', '\x7b22616374697665223a747275652c2265787465726e616c4964223a22776d733a5036222c226e616d65223a22426f6c742036222c22736b75223a225036222c22756e69745072696365223a312e357d', NULL, NULL, 'whole', NULL, 'delivered', 1, '2026-11-29 17:32:12.411126+00', '2026-11-29 17:32:12.411126+00', '2026-11-29 17:32:12.457628+00', 201, 'prd_1a2285d4b1ed4f643e6d3fb53', false, NULL, NULL, NULL, NULL);
INSERT INTO public.intents VALUES (12, 1, 1, 'wms.products', 'platform', 'product', 'wms', '\xf0c04e64a1f600d5843ed9ffbb6a137a', 'P9', '\x000000000000000071d7116c30a30999', NULL, '{}', 'PROD_1.csv', 11, 'create', 1, '1f7b9d053862a370e26af2be0a9fb3c8bc12d160', 'POST', '/api/v1/catalog/products', '\x7b22616374697665223a747275652c2265787465726e616c4964223a22776d733a5039222c226e616d65223a22426f6c742039222c22736b75223a225039222c22756e69745072696365223a312e357d', NULL, NULL, 'whole', NULL, 'delivered', 1, '2026-11-29 17:32:12.411126+00', '2026-11-29 17:32:12.411126+00', '2026-11-29 17:32:12.457628+00', 201, 'prd_1a2285d4b1e4e1e6e6d077f71', false, NULL, NULL, NULL, NULL);
INSERT INTO public.intents VALUES (14, 1, 1, 'wms.products', 'platform', 'product', 'wms', '\x8bce931b09242d29cd93b5a3e50d276d', 'P11', '\x0000000000000000b791a53d911f9884', NULL, '{}', 'PROD_1.csv', 13, 'create', 1, 'c7361e4df7dd6b4692b61db93f2b0a01d3394ed0', 'POST', '/api/v1/catalog/products', '\x7b22616374697665223a747275652c2265787465726e616c4964223a22776d733a503131222c226e616d65223a22426f6c74203131222c22736b75223a22503131222c22756e69745072696365223a312e357d', NULL, NULL, 'whole', NULL, 'delivered', 1, '2026-11-29 17:32:12.411126+00', '2026-11-29 17:32:12.411126+00', '2026-11-29 17:32:12.457628+00', 201, 'prd_1a2285d4b20355d40c7a02bbf', false, NULL, NULL, NULL, NULL);
INSERT INTO public.intents VALUES (18, 1, 1, 'wms.products', 'platform', 'product', 'wms', '\x714abcdadb722f9f91162e7b573b4c9c', 'P15', '\x000000000000000098fa0edb188296f1', NULL, '{}', 'PROD_1.csv', 17, 'create', 1, '4652bc6e34c95058c9b8801ac7c8cebb63580326', 'POST', '/api/v1/catalog/products', '\x7b22616374697665223a747275652c2265787465726e616c4964223a22776d733a503135222c226e616d65223a22426f6c74203135222c22736b75223a22503135222c22756e69745072696365223a312e357d', NULL, NULL, 'whole', NULL, 'delivered', 1, '2026-11-29 17:32:12.411126+00', '2026-11-29 17:32:12.411126+00', '2026-11-29 17:32:12.457628+00', 201, 'prd_1a2285d4b22855a070f9d910e', false, NULL, NULL, NULL, NULL);
INSERT INTO public.intents VALUES (15, 1, 1, 'wms.products', 'platform', 'product', 'wms', '\x9abd52214e42c69bbf81ca150a982224', 'P12', '\x00000000000000003f5715615ff6a510', NULL, '{}', 'PROD_1.csv', 14, 'create', 1, 'cffea18b7bd20d3d119807b1560454e9e6fac69a', 'POST', '/api/v1/catalog/products', '\x7b22616374697665223a747275652c2265787465726e616c4964223a22776d733a503132222c226e616d65223a22426f6c74203132222c22736b75223a22503132222c22756e69745072696365223a312e357d', NULL, NULL, 'whole', NULL, 'delivered', 1, '2026-11-29 17:32:12.411126+00', '2026-11-29 17:32:12.411126+00', '2026-11-29 17:32:12.457628+00', 201, 'prd_1a2285d4b22b113bf6eca0112', false, NULL, NULL, NULL, NULL);
INSERT INTO public.intents VALUES (11, 1, 1, 'wms.products', 'platform', 'product', 'wms', '\x612510008d3be12c54909caf8013c1e5', 'P8', '\x0000000000000000308520a2efac153a', NULL, '{}', 'PROD_1.csv', 10, 'create', 1, '5962037dad342650f14cb1ad25df65fe21524b7e', 'POST', '/api/v1/catalog/products', '\x7b22616374697665223a747275652c2265787465726e616c4964223a22776d733a5038222c226e616d65223a22426f6c742038222c22736b75223a225038222c22756e69745072696365223a312e357d', NULL, NULL, 'whole', NULL, 'delivered', 1, '2026-11-29 17:32:12.411126+00', '2026-11-29 17:32:12.411126+00', '2026-11-29 17:32:12.457628+00', 201, 'prd_1a2285d4b2104a6144e432581', false, NULL, NULL, NULL, NULL);
INSERT INTO public.intents VALUES (20, 1, 1, 'wms.products', 'platform', 'product', 'wms', '\x53f0a6db3ff64b8e5375ea5d4b2f6343', 'P17', '\x00000000000000009d0e12ea9ad2cb5f', NULL, '{}', 'PROD_1.csv', 19, 'create', 1, '266a565807b0ff8c691a0977a01f6acca892aa74', 'POST', '/api/v1/catalog/products', '\x7b22616374697665223a747275652c2265787465726e616c4964223a22776d733a503137222c226e616d65223a22426f6c74203137222c22736b75223a22503137222c22756e69745072696365223a312e357d', NULL, NULL, 'whole', NULL, 'delivered', 1, '2026-11-29 17:32:12.411126+00', '2026-11-29 17:32:12.411126+00', '2026-11-29 17:32:12.457628+00', 201, 'prd_1a2285d4b22ef18dd814db66c', false, NULL, NULL, NULL, NULL);
INSERT INTO public.intents VALUES (21, 1, 1, 'wms.products', 'platform', 'product', 'wms', '\x94bf1bbd865a661e9bac1bd899ac7f02', 'P18', '\x0000000000000000ac129130d8fc4016', NULL, '{}', 'PROD_1.csv', 20, 'create', 1, '0fbf747482d1b96a34c2240a43ebe123c8f491dc', 'POST', '/api/v1/catalog/products', '\x7b22616374697665223a747275652c2265787465726e616c4964223a22776d733a503138222c226e616d65223a22426f6c74203138222c22736b75223a22503138222c22756e69745072696365223a312e357d', NULL, NULL, 'whole', NULL, 'delivered', 2, '2026-11-29 17:32:12.411126+00', '2026-11-29 17:32:13.461368+00', '2026-11-29 17:32:13.476693+00', 201, 'prd_1a2285d4f1b408aa979fde45c', false, NULL, NULL, NULL, NULL);
INSERT INTO public.intents VALUES (19, 1, 1, 'wms.products', 'platform', 'product', 'wms', '\x87ee1c0397a4928e3f37e15b915268bb', 'P16', '\x00000000000000006b63218a1e66db5b', NULL, '{}', 'PROD_1.csv', 18, 'create', 1, 'f2f3607ad3ae70f03b9ada476de1b14a931a91ea', 'POST', '/api/v1/catalog/products', '\x7b22616374697665223a747275652c2265787465726e616c4964223a22776d733a503136222c226e616d65223a22426f6c74203136222c22736b75223a22503136222c22756e69745072696365223a312e357d', NULL, NULL, 'whole', NULL, 'delivered', 2, '2026-11-29 17:32:12.411126+00', '2026-11-29 17:32:13.461368+00', '2026-11-29 17:32:13.476693+00', 201, 'prd_1a2285d4f1b478d69f79457e7', false, NULL, NULL, NULL, NULL);
INSERT INTO public.intents VALUES (22, 1, 1, 'wms.products', 'platform', 'product', 'wms', '\x8fdc5b13064e44f84cbcd61493e78294', 'P19', '\x000000000000000075bfafdac4b8ca16', NULL, '{}', 'PROD_1.csv', 21, 'create', 1, '6d560296bc97a3991cd54a43724a8e0b9ae2e441', 'POST', '/api/v1/catalog/products', '\x7b22616374697665223a747275652c2265787465726e616c4964223a22776d733a503139222c226e616d65223a22426f6c74203139222c22736b75223a22503139222c22756e69745072696365223a312e357d', NULL, NULL, 'whole', NULL, 'delivered', 2, '2026-11-29 17:32:12.411126+00', '2026-11-29 17:32:13.461368+00', '2026-11-29 17:32:13.476693+00', 201, 'prd_1a2285d4f1f50deb622730294', false, NULL, NULL, NULL, NULL);
INSERT INTO public.intents VALUES (23, 1, 1, 'wms.invoices', 'platform', 'invoice', 'wms', '\xdf3ce784d856334d65cd25028f98f158', '1', '\x0000000000000000f3981414256ddfca', NULL, '{}', 'INV_1.csv', 2, 'create', 1, '1cbe6d800875db0d1c961c0eb1e381d7f50b2d7b', 'POST', '/api/v1/finance/invoices', '\x7b2263757272656e6379223a22455552222c22637573746f6d65724964223a226375735f31613232383564346163636163663664396462623338383332222c226974656d73223a5b7b2270726f647563744964223a227072645f31613232383564346230643963366264356339333865623462222c227175616e74697479223a322c22756e69745072696365223a327d5d7d', NULL, NULL, 'whole', NULL, 'delivered', 1, '2026-11-29 17:32:13.538714+00', '2026-11-29 17:32:13.538714+00', '2026-11-29 17:32:13.555+00', 201, 'inv_1a2285d4f6cf6b6b9cf6272dd', false, NULL, NULL, NULL, NULL);
INSERT INTO public.intents VALUES (25, 1, 1, 'depot.orders', 'depot', 'orders', 'depot', '\xae3ca2da179f19931a1e5c9610eadaf3', 'O1', '\x0000000000000000bc3da5bab6491fb9', NULL, '{}', 'ORD_1.csv', 2, 'create', 1, '5d94fa8ac07b0bd72d16d419a899e987c4c7e33a', 'PUT', '/orders', '\x7b226f726465725f6964223a224f31222c227175616e74697479223a2231222c22736b75223a225031227d', NULL, NULL, 'whole', NULL, 'delivered', 1, '2026-11-29 17:32:13.599842+00', '2026-11-29 17:32:13.612678+00', '2026-11-29 17:32:13.61451+00', 200, 'O1', false, NULL, NULL, 1, 0);
INSERT INTO public.intents VALUES (26, 1, 1, 'depot.orders', 'depot', 'orders', 'depot', '\x769cab44f982eb6a9d362e723cc19ba2', 'O2', '\x00000000000000006c5699c9b9ce154a', NULL, '{}', 'ORD_1.csv', 3, 'create', 1, '106faaee99f7ea2b5357da403a12c8085685c1ce', 'PUT', '/orders', '\x7b226f726465725f6964223a224f32222c227175616e74697479223a2232222c22736b75223a225032227d', NULL, NULL, 'whole', NULL, 'delivered', 1, '2026-11-29 17:32:13.599842+00', '2026-11-29 17:32:13.612678+00', '2026-11-29 17:32:13.61451+00', 200, 'O2', false, NULL, NULL, 1, 1);
INSERT INTO public.intents VALUES (24, 1, 1, 'wms.invoices', 'platform', 'invoice', 'wms', '\x5fcddc9c0829c4457324dc1e7e9474f0', '3', '\x0000000000000000313c4eb871cb14d6', NULL, '{"columns":["INVNO","CUSTNO","SKU","QTY"],"lines":[4],"rows":[["3","C1","P2","100"]]}', 'INV_1.csv', 4, 'create', 1, '6c0c8f0204885d6411d55c06ad96c74702567855', 'POST', '/api/v1/finance/invoices', '\x7b2263757272656e6379223a22455552222c22637573746f6d65724964223a226375735f31613232383564346163636163663664396462623338383332222c226974656d73223a5b7b2270726f647563744964223a227072645f31613232383564346231363134313663636330396237356437222c227175616e74697479223a3130302c22756e69745072696365223a327d5d7d', NULL, NULL, 'whole', NULL, 'in_doubt', 1, '2026-11-29 17:32:13.538714+00', '2026-11-29 17:32:13.538714+00', NULL, NULL, NULL, false, NULL, NULL, NULL, NULL);
INSERT INTO public.intents VALUES (27, 2, 2, 'wms.customers', 'platform', 'customer', 'wms', '\x14c38134bd3cba520db0735024ae3545', 'C2', '\x000000000000000075f317e415fd8e11', NULL, '{}', 'CUST_2.csv', 2, 'update', 2, 'bae5119ef7054bbf50d7838351f74b0415e90bc3', 'PATCH', '/api/v1/sales/customers/cus_1a2285d4ac9c0f62de9143bf1', '\x7b226e616d65223a2244726f7373656c227d', '{"externalId":"wms:C2","name":"Amsel"}', '{"externalId":"wms:C2","name":"Drossel"}', 'whole', '"1"', 'delivered', 1, '2026-11-29 17:32:13.792648+00', '2026-11-29 17:32:13.792648+00', '2026-11-29 17:32:13.803895+00', 200, 'cus_1a2285d4ac9c0f62de9143bf1', false, NULL, NULL, NULL, NULL);
INSERT INTO public.jobs VALUES ('nightly', '2026-11-29 17:32:14.163654+00', true, NULL);
INSERT INTO public.key_stamps VALUES ('platform', 'product', 'wms', 3693549635850118402);
INSERT INTO public.key_stamps VALUES ('platform', 'invoice', 'wms', 3435836397126080890);
INSERT INTO public.key_stamps VALUES ('depot', 'orders', 'depot', 384769163400463650);
INSERT INTO public.key_stamps VALUES ('platform', 'customer', 'wms', 1054113708810784992);
INSERT INTO public.leases VALUES ('run', 5, 'host:1', false, '2000-01-01 00:00:00+00');
INSERT INTO public.passed_files VALUES ('wms.products', 'PROD_1.csv', 342, '2026-05-28 20:26:40+00');
INSERT INTO public.pending_removals VALUES ('wms.products', 'delete product of wms on the platform', '\x3b77257d395be609cffe1b79567f6bb253f0a6db3ff64b8e5375ea5d4b2f6343612510008d3be12c54909caf8013c1e5714abcdadb722f9f91162e7b573b4c9c83d2f5a66befea6477bcc7e413232c2187ee1c0397a4928e3f37e15b915268bb8bce931b09242d29cd93b5a3e50d276d8fdc5b13064e44f84cbcd61493e7829492cb61df796cde81dda20856533a399094bf1bbd865a661e9bac1bd899ac7f02965fa03bb800594ea23bb4aff887506e9abd52214e42c69bbf81ca150a982224a39c7bc89864cfb5235e0e33f139e6aca3b3932b0d006ac18833d9f54efcd621d2bda13db2155c446baba9c48356ac25f0c04e64a1f600d5843ed9ffbb6a137a', '2026-11-29 17:32:13.836523+00', NULL);
INSERT INTO public.run_messages VALUES (2, 0, 'warning', 'wms.products', 'the snapshot has 4 rows; the previous ones had 20 (newest first), which is more than fewer_rows_percent (20) fewer: ask the sender whether the export is complete', 'snapshot_differs', NULL, NULL, NULL);
INSERT INTO public.run_messages VALUES (2, 1, 'error', 'wms.products', '16 of 20 records are gone, more than gone.at_most_percent (5); none of them is removed: P6, P17, P8, P15, P13, ...', 'removals_refused', 'PROD_2.csv', 'list them: crossdock plan wms.products --limit 16; to allow the removal, after a sync that ended with this message: crossdock approve wms.products 16', 'refused');
INSERT INTO public.runs VALUES (1, NULL, '2026-11-29', '2026-11-29 17:32:12.29552+00', '2026-11-29 17:32:13.631476+00', 1328, 'degraded', 25, 0, '{"depot.orders":{"balanced":true,"files":[{"name":"ORD_1.csv","rows":2}],"input":"new","more_files":0,"newest_file":null,"open":{"in_doubt":0,"overdue":0,"pending":0,"rejected":0,"unverified":0,"waiting":0},"parts":{},"records":{"acknowledged":0,"carried_on":0,"carried_over":0,"created":2,"deleted":0,"delivered":2,"dropped":0,"gone":0,"handed_over":0,"ignored":0,"read":2,"rejected":0,"replaced":0,"suppressed":0,"unchanged":0,"updated":0},"rows":{"filtered":{},"in_records":2,"read":2,"rejected":0,"superseded":0}},"wms.customers":{"balanced":true,"files":[{"name":"CUST_1.csv","rows":2}],"input":"new","more_files":0,"newest_file":null,"open":{"in_doubt":0,"overdue":0,"pending":0,"rejected":0,"unverified":0,"waiting":0},"parts":{},"records":{"acknowledged":0,"carried_on":0,"carried_over":0,"created":2,"deleted":0,"delivered":2,"dropped":0,"gone":0,"handed_over":0,"ignored":0,"read":2,"rejected":0,"replaced":0,"suppressed":0,"unchanged":0,"updated":0},"rows":{"filtered":{},"in_records":2,"read":2,"rejected":0,"superseded":0}},"wms.invoices":{"balanced":true,"files":[{"name":"INV_1.csv","rows":4}],"input":"new","more_files":0,"newest_file":null,"open":{"in_doubt":1,"overdue":0,"pending":0,"rejected":1,"unverified":0,"waiting":1},"parts":{},"records":{"acknowledged":0,"carried_on":2,"carried_over":0,"created":1,"deleted":0,"delivered":1,"dropped":0,"gone":0,"handed_over":0,"ignored":0,"read":4,"rejected":1,"replaced":0,"suppressed":0,"unchanged":0,"updated":0},"rows":{"filtered":{},"in_records":4,"read":4,"rejected":0,"superseded":0}},"wms.products":{"balanced":true,"files":[{"name":"PROD_1.csv","rows":20}],"input":"new","more_files":0,"newest_file":null,"open":{"in_doubt":0,"overdue":0,"pending":0,"rejected":0,"unverified":0,"waiting":0},"parts":{},"records":{"acknowledged":0,"carried_on":0,"carried_over":0,"created":20,"deleted":0,"delivered":20,"dropped":0,"gone":0,"handed_over":0,"ignored":0,"read":20,"rejected":0,"replaced":0,"suppressed":0,"unchanged":0,"updated":0},"rows":{"filtered":{},"in_records":20,"read":20,"rejected":0,"superseded":0}}}', '{"apis":{},"samples":[[74,2000],[149,1984],[158,1985],[1179,1997],[1256,2000],[1314,1000]],"steps":[["starting",0,9],["sending what the last run left",9,7],["reading wms.customers",17,2],["fetching CUST_1.csv",20,0],["reading wms.customers",20,20],["sending wms.customers",41,33],["remembering wms.customers",74,12],["reading wms.products",87,2],["fetching PROD_1.csv",89,0],["reading wms.products",90,14],["sending wms.products",104,1075],["remembering wms.products",1179,31],["reading wms.invoices",1210,1],["fetching INV_1.csv",1212,0],["reading wms.invoices",1212,15],["sending wms.invoices",1227,29],["remembering wms.invoices",1256,12],["sending what the last run left",1269,5],["reading depot.orders",1274,1],["fetching ORD_1.csv",1276,0],["reading depot.orders",1276,16],["sending depot.orders",1292,22],["remembering depot.orders",1314,13]]}', 'sync', '701d68994b81ff3fdce99945a691480843ac0dd6537a6f62c3bea469871fcd09', 1);
INSERT INTO public.runs VALUES (2, 'nightly', '2026-11-28', '2026-11-29 17:32:13.732994+00', '2026-11-29 17:32:13.918443+00', 178, 'incomplete', 1, 0, '{"depot.orders":{"balanced":true,"files":[],"input":"none","more_files":0,"newest_file":{"modified_at":"2026-05-28T20:26:40+00:00","name":"ORD_1.csv"},"open":{"in_doubt":0,"overdue":0,"pending":0,"rejected":0,"unverified":0,"waiting":0},"parts":{},"records":{"acknowledged":0,"carried_on":0,"carried_over":0,"created":0,"deleted":0,"delivered":0,"dropped":0,"gone":0,"handed_over":0,"ignored":0,"read":0,"rejected":0,"replaced":0,"suppressed":0,"unchanged":0,"updated":0},"rows":{"filtered":{},"in_records":0,"read":0,"rejected":0,"superseded":0}},"wms.customers":{"balanced":true,"files":[{"name":"CUST_2.csv","rows":1}],"input":"new","more_files":0,"newest_file":{"modified_at":"2026-05-28T20:26:40+00:00","name":"CUST_1.csv"},"open":{"in_doubt":0,"overdue":0,"pending":0,"rejected":0,"unverified":0,"waiting":0},"parts":{},"records":{"acknowledged":0,"carried_on":0,"carried_over":0,"created":0,"deleted":0,"delivered":1,"dropped":0,"gone":0,"handed_over":0,"ignored":0,"read":1,"rejected":0,"replaced":0,"suppressed":0,"unchanged":0,"updated":1},"rows":{"filtered":{},"in_records":1,"read":1,"rejected":0,"superseded":0}},"wms.invoices":{"balanced":true,"files":[{"name":"INV_2.csv","rows":1}],"input":"new","more_files":0,"newest_file":{"modified_at":"2026-05-28T20:26:40+00:00","name":"INV_1.csv"},"open":{"in_doubt":1,"overdue":0,"pending":0,"rejected":2,"unverified":0,"waiting":1},"parts":{},"records":{"acknowledged":0,"carried_on":2,"carried_over":2,"created":0,"deleted":0,"delivered":0,"dropped":0,"gone":0,"handed_over":0,"ignored":0,"read":1,"rejected":1,"replaced":0,"suppressed":0,"unchanged":0,"updated":0},"rows":{"filtered":{},"in_records":1,"read":1,"rejected":0,"superseded":0}},"wms.products":{"balanced":true,"files":[{"name":"PROD_2.csv","rows":4}],"input":"new","more_files":0,"newest_file":{"modified_at":"2026-05-28T20:26:40+00:00","name":"PROD_1.csv"},"open":{"in_doubt":0,"overdue":0,"pending":0,"rejected":0,"unverified":0,"waiting":0},"parts":{},"records":{"acknowledged":0,"carried_on":0,"carried_over":0,"created":0,"deleted":0,"delivered":0,"dropped":0,"gone":16,"handed_over":0,"ignored":16,"read":4,"rejected":0,"replaced":0,"suppressed":0,"unchanged":4,"updated":0},"rows":{"filtered":{},"in_records":4,"read":4,"rejected":0,"superseded":0}}}', '{"apis":{},"samples":[[14,2000],[68,2000]],"steps":[["starting",0,13],["sending what the last run left",13,9],["reading wms.customers",23,2],["fetching CUST_2.csv",25,0],["reading wms.customers",26,20],["sending wms.customers",46,22],["remembering wms.customers",68,13],["reading wms.products",82,2],["fetching PROD_2.csv",84,0],["reading wms.products",84,22],["sending wms.products",106,0],["remembering wms.products",107,10],["reading wms.invoices",117,1],["fetching INV_2.csv",119,0],["reading wms.invoices",119,21],["sending wms.invoices",141,7],["remembering wms.invoices",149,7],["sending what the last run left",156,4],["reading depot.orders",161,9],["sending depot.orders",170,0],["remembering depot.orders",171,6]]}', NULL, '701d68994b81ff3fdce99945a691480843ac0dd6537a6f62c3bea469871fcd09', 2);
INSERT INTO public.scheduled_runs VALUES ('nightly', '2026-11-28 02:00:00+00', '2026-11-28', 'incomplete', 1, 2, '2026-11-29 17:32:13.729942+00', '2026-11-29 17:32:13.918443+00', NULL, 2);
INSERT INTO public.sequences VALUES ('depot', 1);
INSERT INTO public.snapshots VALUES ('wms.products', 'b69ccc369f3051d66c580ba2c2822d0d7b8923cc60c5d42dabdb8f67ad48599c', 20, 20, '2026-11-29 17:32:13.486441+00');
INSERT INTO public.taken_files VALUES ('wms.customers', 'a94fb20bbdc21c02940875aa6618b9f00a02aace1f253731d769b1805aa670d0', '9e446447aa83f5c3f90a76758e36473d', 'CUST_1.csv', 30, '2026-05-28 20:26:40+00', '2026-05-28T20:26:40+00:00', 'done', '2026-11-29 17:32:12.342325+00', NULL);
INSERT INTO public.taken_files VALUES ('wms.products', 'b69ccc369f3051d66c580ba2c2822d0d7b8923cc60c5d42dabdb8f67ad48599c', '1beaafd000b060c1b404da2ba47088f3', 'PROD_1.csv', 342, '2026-05-28 20:26:40+00', '2026-05-28T20:26:40+00:00', 'done', '2026-11-29 17:32:12.405207+00', NULL);
INSERT INTO public.taken_files VALUES ('wms.invoices', '1bed47a7f82ae90dc934fc744fe01c16feeb010685db4857f444d6c954d6cae4', 'e7e0e377eef6cf44dfffddad05b79e66', 'INV_1.csv', 63, '2026-05-28 20:26:40+00', '2026-05-28T20:26:40+00:00', 'done', '2026-11-29 17:32:13.529633+00', NULL);
INSERT INTO public.taken_files VALUES ('depot.orders', '70308febd32825566f1595c43fc1d1f8d9e9eca9954933dd2ae7aaf3ea154a65', 'c5f1f30b706fa28f256fbd830ec2acde', 'ORD_1.csv', 30, '2026-05-28 20:26:40+00', '2026-05-28T20:26:40+00:00', 'done', '2026-11-29 17:32:13.594412+00', NULL);
INSERT INTO public.taken_files VALUES ('wms.customers', '293f36d07ef5ccffb85220fdc56dcd89889ca8763ad38db281f5e8421209716a', '9e446447aa83f5c3f90a76758e36473d', 'CUST_2.csv', 23, '2026-05-28 20:26:40+00', '2026-05-28T20:26:40+00:00', 'done', '2026-11-29 17:32:13.785688+00', NULL);
INSERT INTO public.taken_files VALUES ('wms.products', 'acc0bfc9e656e5bc67790c81a7d4da920f0206b29da56fd2768b60888a9cc677', '1beaafd000b060c1b404da2ba47088f3', 'PROD_2.csv', 81, '2026-05-28 20:26:40+00', '2026-05-28T20:26:40+00:00', 'accepted', '2026-11-29 17:32:13.844229+00', NULL);
INSERT INTO public.taken_files VALUES ('wms.invoices', 'a355f6e5d7a16ac958f99174c6d74d4ecf46f691df26a27486249fbcc285e686', 'e7e0e377eef6cf44dfffddad05b79e66', 'INV_2.csv', 31, '2026-05-28 20:26:40+00', '2026-05-28T20:26:40+00:00', 'done', '2026-11-29 17:32:13.880766+00', NULL);
INSERT INTO public.waiting_records VALUES ('wms.invoices', '\x475982afbcaa3f3ce28911027fcf803f', '4', '\x00000000000000004c8dc907985c5b48', NULL, '{"columns":["INVNO","CUSTNO","SKU","QTY"],"lines":[5],"rows":[["4","C9","P1","1"]]}', 'INV_1.csv', 5, '[{"key":"C9","namespace":"wms","resource":"customer"}]', 1, '2026-11-29 17:32:13.533063+00', '42103af720a8f219b4d2bc51e20297595197914bd17151408e0b95475443cf4f');
SELECT pg_catalog.setval('public.audit_log_id_seq', 5, true);
SELECT pg_catalog.setval('public.batches_id_seq', 1, true);
SELECT pg_catalog.setval('public.intents_id_seq', 27, true);
SELECT pg_catalog.setval('public.migrations_id_seq', 1, false);
SELECT pg_catalog.setval('public.runs_id_seq', 2, true);
ALTER TABLE ONLY public.attempts
    ADD CONSTRAINT attempts_pkey PRIMARY KEY (intent_id, number);
ALTER TABLE ONLY public.audit_log
    ADD CONSTRAINT audit_log_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.audit_log
    ADD CONSTRAINT audit_log_token_key UNIQUE (token);
ALTER TABLE ONLY public.batches
    ADD CONSTRAINT batches_key_key UNIQUE (key);
ALTER TABLE ONLY public.batches
    ADD CONSTRAINT batches_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.begun_undos
    ADD CONSTRAINT begun_undos_pkey PRIMARY KEY (stream);
ALTER TABLE ONLY public.bindings
    ADD CONSTRAINT bindings_pkey PRIMARY KEY (target, resource, namespace, key_hash);
ALTER TABLE ONLY public.buckets
    ADD CONSTRAINT buckets_pkey PRIMARY KEY (name);
ALTER TABLE ONLY public.configs
    ADD CONSTRAINT configs_pkey PRIMARY KEY (digest);
ALTER TABLE ONLY public.content_digests
    ADD CONSTRAINT content_digests_pkey PRIMARY KEY (kind, stream, version);
ALTER TABLE ONLY public.crossdock_meta
    ADD CONSTRAINT crossdock_meta_pkey PRIMARY KEY (name);
ALTER TABLE ONLY public.cursors
    ADD CONSTRAINT cursors_pkey PRIMARY KEY (stream);
ALTER TABLE ONLY public.dead_letters
    ADD CONSTRAINT dead_letters_pkey PRIMARY KEY (stream, key_hash);
ALTER TABLE ONLY public.followed_records
    ADD CONSTRAINT followed_records_pkey PRIMARY KEY (stream, key_hash);
ALTER TABLE ONLY public.full_lists
    ADD CONSTRAINT full_lists_pkey PRIMARY KEY (stream);
ALTER TABLE ONLY public.hints
    ADD CONSTRAINT hints_pkey PRIMARY KEY (stream, key_hash);
ALTER TABLE ONLY public.intents
    ADD CONSTRAINT intents_idempotency_key_key UNIQUE (idempotency_key);
ALTER TABLE ONLY public.intents
    ADD CONSTRAINT intents_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.jobs
    ADD CONSTRAINT jobs_pkey PRIMARY KEY (name);
ALTER TABLE ONLY public.key_stamps
    ADD CONSTRAINT key_stamps_pkey PRIMARY KEY (target, resource, namespace);
ALTER TABLE ONLY public.leases
    ADD CONSTRAINT leases_pkey PRIMARY KEY (name);
ALTER TABLE ONLY public.migration_runs
    ADD CONSTRAINT migration_runs_pkey PRIMARY KEY (run_id);
ALTER TABLE ONLY public.migrations
    ADD CONSTRAINT migrations_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.passed_files
    ADD CONSTRAINT passed_files_pkey PRIMARY KEY (stream, name);
ALTER TABLE ONLY public.pending_removals
    ADD CONSTRAINT pending_removals_pkey PRIMARY KEY (stream);
ALTER TABLE ONLY public.run_messages
    ADD CONSTRAINT run_messages_pkey PRIMARY KEY (run_id, number);
ALTER TABLE ONLY public.runs
    ADD CONSTRAINT runs_pkey PRIMARY KEY (id);
ALTER TABLE ONLY public.scheduled_runs
    ADD CONSTRAINT scheduled_runs_pkey PRIMARY KEY (job, due, business_date);
ALTER TABLE ONLY public.sequences
    ADD CONSTRAINT sequences_pkey PRIMARY KEY (target);
ALTER TABLE ONLY public.snapshots
    ADD CONSTRAINT snapshots_pkey PRIMARY KEY (stream, content);
ALTER TABLE ONLY public.suspected_inputs
    ADD CONSTRAINT suspected_inputs_pkey PRIMARY KEY (stream, digest);
ALTER TABLE ONLY public.taken_files
    ADD CONSTRAINT taken_files_pkey PRIMARY KEY (stream, content_hash, version);
ALTER TABLE ONLY public.unknown_references
    ADD CONSTRAINT unknown_references_pkey PRIMARY KEY (target, resource, target_id, by_resource, by_id);
ALTER TABLE ONLY public.untrimmed_keys
    ADD CONSTRAINT untrimmed_keys_pkey PRIMARY KEY (target, resource, namespace, key_hash);
ALTER TABLE ONLY public.unverified
    ADD CONSTRAINT unverified_pkey PRIMARY KEY (kind, name);
ALTER TABLE ONLY public.waiting_records
    ADD CONSTRAINT waiting_records_pkey PRIMARY KEY (stream, key_hash);
ALTER TABLE ONLY public.wave_approvals
    ADD CONSTRAINT wave_approvals_pkey PRIMARY KEY (migration_id, wave);
ALTER TABLE ONLY public.webhooks
    ADD CONSTRAINT webhooks_pkey PRIMARY KEY (connection, delivery);
CREATE INDEX ix_audit_log_action ON public.audit_log USING btree (action, at, id);
CREATE INDEX ix_audit_log_at ON public.audit_log USING btree (at, id);
CREATE INDEX ix_audit_log_person ON public.audit_log USING btree (person, at, id);
CREATE INDEX ix_audit_log_subject ON public.audit_log USING btree (subject, at, id);
CREATE INDEX ix_batches_target_name ON public.batches USING btree (target, name);
CREATE INDEX ix_batches_target_number ON public.batches USING btree (target, number);
CREATE INDEX ix_bindings_run ON public.bindings USING btree (run_id);
CREATE INDEX ix_bindings_target_id ON public.bindings USING btree (target_id);
CREATE INDEX ix_bindings_unverified ON public.bindings USING btree (target, resource, namespace, key_hash) WHERE (unverified IS TRUE);
CREATE INDEX ix_dead_letters_listed ON public.dead_letters USING btree (status, stream, code, refused_at, key_hash, first_run_id, run_id);
CREATE INDEX ix_dead_letters_place ON public.dead_letters USING btree (substr(source, 1, 200), line);
CREATE INDEX ix_hints_stream_due_at ON public.hints USING btree (stream, due_at);
CREATE INDEX ix_intents_batch ON public.intents USING btree (batch_id);
CREATE INDEX ix_intents_key ON public.intents USING btree (target, resource, namespace, key_hash);
CREATE INDEX ix_intents_place ON public.intents USING btree (substr(source, 1, 200), line);
CREATE INDEX ix_intents_run ON public.intents USING btree (run_id);
CREATE INDEX ix_intents_status ON public.intents USING btree (status);
CREATE INDEX ix_intents_target_id ON public.intents USING btree (target_id);
CREATE INDEX ix_runs_business_date ON public.runs USING btree (business_date, job, status);
CREATE INDEX ix_waiting_records_place ON public.waiting_records USING btree (substr(source, 1, 200), line);
CREATE INDEX ix_webhooks_received_at ON public.webhooks USING btree (received_at);
ALTER TABLE ONLY public.attempts
    ADD CONSTRAINT attempts_intent_id_fkey FOREIGN KEY (intent_id) REFERENCES public.intents(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.batches
    ADD CONSTRAINT batches_run_id_fkey FOREIGN KEY (run_id) REFERENCES public.runs(id);
ALTER TABLE ONLY public.begun_undos
    ADD CONSTRAINT begun_undos_run_id_fkey FOREIGN KEY (run_id) REFERENCES public.runs(id);
ALTER TABLE ONLY public.bindings
    ADD CONSTRAINT bindings_run_id_fkey FOREIGN KEY (run_id) REFERENCES public.runs(id);
ALTER TABLE ONLY public.dead_letters
    ADD CONSTRAINT dead_letters_first_run_id_fkey FOREIGN KEY (first_run_id) REFERENCES public.runs(id);
ALTER TABLE ONLY public.dead_letters
    ADD CONSTRAINT dead_letters_run_id_fkey FOREIGN KEY (run_id) REFERENCES public.runs(id);
ALTER TABLE ONLY public.intents
    ADD CONSTRAINT intents_run_id_fkey FOREIGN KEY (run_id) REFERENCES public.runs(id);
ALTER TABLE ONLY public.migration_runs
    ADD CONSTRAINT migration_runs_migration_id_fkey FOREIGN KEY (migration_id) REFERENCES public.migrations(id);
ALTER TABLE ONLY public.migration_runs
    ADD CONSTRAINT migration_runs_run_id_fkey FOREIGN KEY (run_id) REFERENCES public.runs(id);
ALTER TABLE ONLY public.run_messages
    ADD CONSTRAINT run_messages_run_id_fkey FOREIGN KEY (run_id) REFERENCES public.runs(id) ON DELETE CASCADE;
ALTER TABLE ONLY public.scheduled_runs
    ADD CONSTRAINT scheduled_runs_run_id_fkey FOREIGN KEY (run_id) REFERENCES public.runs(id);
ALTER TABLE ONLY public.waiting_records
    ADD CONSTRAINT waiting_records_run_id_fkey FOREIGN KEY (run_id) REFERENCES public.runs(id);
ALTER TABLE ONLY public.wave_approvals
    ADD CONSTRAINT wave_approvals_migration_id_fkey FOREIGN KEY (migration_id) REFERENCES public.migrations(id);
