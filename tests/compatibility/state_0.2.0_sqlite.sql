BEGIN TRANSACTION;
CREATE TABLE attempts (
	intent_id INTEGER NOT NULL, 
	number INTEGER NOT NULL, 
	ended_at TEXT NOT NULL, 
	outcome VARCHAR(16) NOT NULL, 
	http_status INTEGER, 
	message TEXT NOT NULL, 
	PRIMARY KEY (intent_id, number), 
	FOREIGN KEY(intent_id) REFERENCES intents (id) ON DELETE CASCADE
);
INSERT INTO "attempts" VALUES(24,1,'2026-11-29T16:53:24.408775+00:00','in_doubt',NULL,'request failed: the server closed the connection without a response');
CREATE TABLE audit_log (
	id INTEGER NOT NULL, 
	token VARCHAR(32) NOT NULL, 
	at TEXT NOT NULL, 
	person VARCHAR(128) NOT NULL, 
	address VARCHAR(128) NOT NULL, 
	action VARCHAR(64) NOT NULL, 
	subject TEXT NOT NULL, 
	reason TEXT NOT NULL, 
	"before" TEXT, 
	"after" TEXT, 
	outcome VARCHAR(8) NOT NULL, 
	error TEXT NOT NULL, 
	PRIMARY KEY (id), 
	UNIQUE (token)
);
INSERT INTO "audit_log" VALUES(1,'8fe243a4c4ae494593f7fd0a3eb7dc49','2026-11-29T16:53:24.089285+00:00','operator','command line, host','init','state','',NULL,'{"version":25}','done','');
INSERT INTO "audit_log" VALUES(2,'a5c2b58fd81d4033b3784025b5ddfc46','2026-11-29T16:53:24.133252+00:00','operator','command line, host','sync','run 1','',NULL,'{"command":"sync","delivered":25,"open":3,"requests":25,"status":"degraded"}','done','');
INSERT INTO "audit_log" VALUES(3,'f565082180764968be48119a2baa3c2e','2026-11-29T16:53:24.568308+00:00','operator','command line, host','schedule --once','run 2','',NULL,'{"business_date":"2026-11-28","delivered":1,"job":"nightly","open":4,"requests":1,"status":"incomplete"}','refused','PROD_2.csv: 16 of 20 records are gone, more than gone.at_most_percent (5); none of them is removed: P6, P17, P8, P15, P13, ...; list them: crossdock plan wms.products --limit 16; to allow the removal, after a sync that ended with this message: crossdock approve wms.products 16');
INSERT INTO "audit_log" VALUES(4,'b6d47270fcf2457f8e2de7ee07c3bb9f','2026-11-29T16:53:24.958466+00:00','operator','command line, host','records drop','record wms.invoices 5','','{"rejected":1}','{"dropped":1}','done','');
INSERT INTO "audit_log" VALUES(5,'f4071b05331f48e2a2ad4d68346207a5','2026-11-29T16:53:24.992527+00:00','operator','command line, host','jobs pause','job nightly','','"active"','"paused"','done','');
CREATE TABLE batches (
	id INTEGER NOT NULL, 
	run_id INTEGER NOT NULL, 
	target VARCHAR(64) NOT NULL, 
	resource VARCHAR(32) NOT NULL, 
	number BIGINT NOT NULL, 
	"key" VARCHAR(64) NOT NULL, 
	name TEXT NOT NULL, 
	destination TEXT NOT NULL, 
	body BLOB, 
	sha256 VARCHAR(64) NOT NULL, 
	records INTEGER NOT NULL, 
	created_at TEXT NOT NULL, 
	handed_over_at TEXT, 
	due_at TEXT, 
	receipt TEXT DEFAULT '' NOT NULL, 
	PRIMARY KEY (id), 
	FOREIGN KEY(run_id) REFERENCES runs (id), 
	UNIQUE ("key")
);
INSERT INTO "batches" VALUES(1,1,'depot','orders',1,'f61cb6c17dde4353b660181f04f3a3a5','ord_000001.csv','/srv/project depot as .{name}.part',X'6F726465725F69642C736B752C7175616E746974790A4F312C50312C310A4F322C50322C320A','0085c5639617972469374fab4ec0b0550df8500c25be62401a514d4d727a0aaf',2,'2026-11-29T16:53:24.468573+00:00','2026-11-29T16:53:24.484802+00:00',NULL,'');
CREATE TABLE begun_undos (
	stream VARCHAR(192) NOT NULL, 
	run_id INTEGER NOT NULL, 
	begun_at TEXT NOT NULL, 
	"plan" TEXT NOT NULL, 
	keys BLOB NOT NULL, 
	PRIMARY KEY (stream), 
	FOREIGN KEY(run_id) REFERENCES runs (id)
);
CREATE TABLE bindings (
	target VARCHAR(64) NOT NULL, 
	resource VARCHAR(32) NOT NULL, 
	namespace VARCHAR(128) NOT NULL, 
	key_hash BLOB NOT NULL, 
	"key" TEXT NOT NULL, 
	target_id VARCHAR(128) NOT NULL, 
	record_fp BLOB, 
	step VARCHAR(8) NOT NULL, 
	position TEXT, 
	payload TEXT NOT NULL, 
	etag TEXT, 
	changed_at TEXT, 
	counter BIGINT NOT NULL, 
	run_id INTEGER NOT NULL, 
	updated_at TEXT NOT NULL, 
	deleted_at TEXT, 
	unverified BOOLEAN, 
	PRIMARY KEY (target, resource, namespace, key_hash), 
	FOREIGN KEY(run_id) REFERENCES runs (id)
);
INSERT INTO "bindings" VALUES('platform','customer','wms',X'14C38134BD3CBA520DB0735024AE3545','C2','cus_1a22839c453555feedfc4d84e',X'000000000000000075F317E415FD8E11','whole',NULL,'{"externalId":"wms:C2","name":"Drossel"}','"25"','2026-11-29T16:53:24.625423Z',2,2,'2026-11-29T16:53:24.631957+00:00',NULL,NULL);
INSERT INTO "bindings" VALUES('platform','customer','wms',X'2CB29BD862760F503B7D0D206099CA33','C1','cus_1a22839c45e5df745e865509d',X'00000000000000005C9CF2B4E8511924','whole',NULL,'{"externalId":"wms:C1","name":"Vogel"}','"2"','2026-11-29T16:53:24.190718Z',1,1,'2026-11-29T16:53:24.207619+00:00',NULL,NULL);
INSERT INTO "bindings" VALUES('platform','product','wms',X'0029E527DC3F478A7F3CB354E6A40C5E','P3','prd_1a22839c4beed832fe308b73c',X'0000000000000000FD26C8BA079044B1','whole',NULL,'{"active":true,"externalId":"wms:P3","name":"Bolt 3","sku":"P3","unitPrice":1.5}','"6"','2026-11-29T16:53:24.286254Z',1,1,'2026-11-29T16:53:24.322182+00:00',NULL,NULL);
INSERT INTO "bindings" VALUES('platform','product','wms',X'92CB61DF796CDE81DDA20856533A3990','P5','prd_1a22839c4bea1774c30012f7e',X'00000000000000008E977C16B60A9AF5','whole',NULL,'{"active":true,"externalId":"wms:P5","name":"Bolt 5","sku":"P5","unitPrice":1.5}','"9"','2026-11-29T16:53:24.286388Z',1,1,'2026-11-29T16:53:24.322182+00:00',NULL,NULL);
INSERT INTO "bindings" VALUES('platform','product','wms',X'F83D4CE41CC45A9F8DDE78FFFF48ADF8','P1','prd_1a22839c4be4708c8d0b18ce9',X'0000000000000000D7AFA4BC2A96BD73','whole',NULL,'{"active":true,"externalId":"wms:P1","name":"Bolt 1","sku":"P1","unitPrice":1.5}','"4"','2026-11-29T16:53:24.286136Z',1,1,'2026-11-29T16:53:24.322182+00:00',NULL,NULL);
INSERT INTO "bindings" VALUES('platform','product','wms',X'965FA03BB800594EA23BB4AFF887506E','P4','prd_1a22839c4be66054650931411',X'0000000000000000F614977F07D1FB27','whole',NULL,'{"active":true,"externalId":"wms:P4","name":"Bolt 4","sku":"P4","unitPrice":1.5}','"8"','2026-11-29T16:53:24.286353Z',1,1,'2026-11-29T16:53:24.322182+00:00',NULL,NULL);
INSERT INTO "bindings" VALUES('platform','product','wms',X'74F029DAF01A5DC24FCA212E7D70DC7C','P2','prd_1a22839c4bdd4bac465a2e846',X'0000000000000000696ECA6F6959C493','whole',NULL,'{"active":true,"externalId":"wms:P2","name":"Bolt 2","sku":"P2","unitPrice":1.5}','"3"','2026-11-29T16:53:24.285780Z',1,1,'2026-11-29T16:53:24.322182+00:00',NULL,NULL);
INSERT INTO "bindings" VALUES('platform','product','wms',X'3B77257D395BE609CFFE1B79567F6BB2','P6','prd_1a22839c4bed15e4a0556fa2c',X'00000000000000006A1B66D03FC170B2','whole',NULL,'{"active":true,"externalId":"wms:P6","name":"Bolt 6","sku":"P6","unitPrice":1.5}','"5"','2026-11-29T16:53:24.286205Z',1,1,'2026-11-29T16:53:24.322182+00:00',NULL,NULL);
INSERT INTO "bindings" VALUES('platform','product','wms',X'D2BDA13DB2155C446BABA9C48356AC25','P7','prd_1a22839c4beb8dd600c1384c0',X'0000000000000000415340FE2AEA3058','whole',NULL,'{"active":true,"externalId":"wms:P7","name":"Bolt 7","sku":"P7","unitPrice":1.5}','"7"','2026-11-29T16:53:24.286313Z',1,1,'2026-11-29T16:53:24.322182+00:00',NULL,NULL);
INSERT INTO "bindings" VALUES('platform','product','wms',X'F36C7CB09181C9863F32C69EEFAF5956','P0','prd_1a22839c4c42afa7a894734e8',X'0000000000000000E24E767716018A3A','whole',NULL,'{"active":true,"externalId":"wms:P0","name":"Bolt 0","sku":"P0","unitPrice":1.5}','"10"','2026-11-29T16:53:24.292363Z',1,1,'2026-11-29T16:53:24.322182+00:00',NULL,NULL);
INSERT INTO "bindings" VALUES('platform','product','wms',X'612510008D3BE12C54909CAF8013C1E5','P8','prd_1a22839c4c49756f885ca37e1',X'0000000000000000308520A2EFAC153A','whole',NULL,'{"active":true,"externalId":"wms:P8","name":"Bolt 8","sku":"P8","unitPrice":1.5}','"11"','2026-11-29T16:53:24.292496Z',1,1,'2026-11-29T16:53:24.322182+00:00',NULL,NULL);
INSERT INTO "bindings" VALUES('platform','product','wms',X'F0C04E64A1F600D5843ED9FFBB6A137A','P9','prd_1a22839c4c44f0e93c7ec9404',X'000000000000000071D7116C30A30999','whole',NULL,'{"active":true,"externalId":"wms:P9","name":"Bolt 9","sku":"P9","unitPrice":1.5}','"12"','2026-11-29T16:53:24.292535Z',1,1,'2026-11-29T16:53:24.322182+00:00',NULL,NULL);
INSERT INTO "bindings" VALUES('platform','product','wms',X'A3B3932B0D006AC18833D9F54EFCD621','P10','prd_1a22839c4c70209fc636b9876',X'00000000000000008A4FB80985F0578B','whole',NULL,'{"active":true,"externalId":"wms:P10","name":"Bolt 10","sku":"P10","unitPrice":1.5}','"13"','2026-11-29T16:53:24.295133Z',1,1,'2026-11-29T16:53:24.322182+00:00',NULL,NULL);
INSERT INTO "bindings" VALUES('platform','product','wms',X'8BCE931B09242D29CD93B5A3E50D276D','P11','prd_1a22839c4df5a42dbe1693303',X'0000000000000000B791A53D911F9884','whole',NULL,'{"active":true,"externalId":"wms:P11","name":"Bolt 11","sku":"P11","unitPrice":1.5}','"14"','2026-11-29T16:53:24.319294Z',1,1,'2026-11-29T16:53:24.341611+00:00',NULL,NULL);
INSERT INTO "bindings" VALUES('platform','product','wms',X'83D2F5A66BEFEA6477BCC7E413232C21','P13','prd_1a22839c4e0802c6e56e39fc1',X'0000000000000000E8733FFEBC5CCFFD','whole',NULL,'{"active":true,"externalId":"wms:P13","name":"Bolt 13","sku":"P13","unitPrice":1.5}','"17"','2026-11-29T16:53:24.320839Z',1,1,'2026-11-29T16:53:24.341611+00:00',NULL,NULL);
INSERT INTO "bindings" VALUES('platform','product','wms',X'9ABD52214E42C69BBF81CA150A982224','P12','prd_1a22839c4e092b9074c788266',X'00000000000000003F5715615FF6A510','whole',NULL,'{"active":true,"externalId":"wms:P12","name":"Bolt 12","sku":"P12","unitPrice":1.5}','"16"','2026-11-29T16:53:24.320802Z',1,1,'2026-11-29T16:53:24.341611+00:00',NULL,NULL);
INSERT INTO "bindings" VALUES('platform','product','wms',X'87EE1C0397A4928E3F37E15B915268BB','P16','prd_1a22839c4e0da30b3c2927d14',X'00000000000000006B63218A1E66DB5B','whole',NULL,'{"active":true,"externalId":"wms:P16","name":"Bolt 16","sku":"P16","unitPrice":1.5}','"15"','2026-11-29T16:53:24.320709Z',1,1,'2026-11-29T16:53:24.341611+00:00',NULL,NULL);
INSERT INTO "bindings" VALUES('platform','product','wms',X'A39C7BC89864CFB5235E0E33F139E6AC','P14','prd_1a22839c4e04cfde81df60178',X'0000000000000000896361C929199913','whole',NULL,'{"active":true,"externalId":"wms:P14","name":"Bolt 14","sku":"P14","unitPrice":1.5}','"18"','2026-11-29T16:53:24.320870Z',1,1,'2026-11-29T16:53:24.341611+00:00',NULL,NULL);
INSERT INTO "bindings" VALUES('platform','product','wms',X'53F0A6DB3FF64B8E5375EA5D4B2F6343','P17','prd_1a22839c4e0070ecc6c86a1bb',X'00000000000000009D0E12EA9AD2CB5F','whole',NULL,'{"active":true,"externalId":"wms:P17","name":"Bolt 17","sku":"P17","unitPrice":1.5}','"20"','2026-11-29T16:53:24.320927Z',1,1,'2026-11-29T16:53:24.341611+00:00',NULL,NULL);
INSERT INTO "bindings" VALUES('platform','product','wms',X'714ABCDADB722F9F91162E7B573B4C9C','P15','prd_1a22839c4e04dfec4e8eabaaa',X'000000000000000098FA0EDB188296F1','whole',NULL,'{"active":true,"externalId":"wms:P15","name":"Bolt 15","sku":"P15","unitPrice":1.5}','"19"','2026-11-29T16:53:24.320899Z',1,1,'2026-11-29T16:53:24.341611+00:00',NULL,NULL);
INSERT INTO "bindings" VALUES('platform','product','wms',X'94BF1BBD865A661E9BAC1BD899AC7F02','P18','prd_1a22839c4e04677c57b37b5dd',X'0000000000000000AC129130D8FC4016','whole',NULL,'{"active":true,"externalId":"wms:P18","name":"Bolt 18","sku":"P18","unitPrice":1.5}','"22"','2026-11-29T16:53:24.320983Z',1,1,'2026-11-29T16:53:24.341611+00:00',NULL,NULL);
INSERT INTO "bindings" VALUES('platform','product','wms',X'8FDC5B13064E44F84CBCD61493E78294','P19','prd_1a22839c4e05be8b687579b73',X'000000000000000075BFAFDAC4B8CA16','whole',NULL,'{"active":true,"externalId":"wms:P19","name":"Bolt 19","sku":"P19","unitPrice":1.5}','"21"','2026-11-29T16:53:24.320956Z',1,1,'2026-11-29T16:53:24.341611+00:00',NULL,NULL);
INSERT INTO "bindings" VALUES('platform','invoice','wms',X'DF3CE784D856334D65CD25028F98F158','1','inv_1a22839c53508b8c21292034c',X'0000000000000000F3981414256DDFCA','whole',NULL,'{"currency":"EUR","customerId":"cus_1a22839c45e5df745e865509d","items":[{"productId":"prd_1a22839c4be4708c8d0b18ce9","quantity":2,"unitPrice":2}]}','"23"','2026-11-29T16:53:24.405617Z',1,1,'2026-11-29T16:53:24.408911+00:00',NULL,NULL);
INSERT INTO "bindings" VALUES('depot','orders','depot',X'AE3CA2DA179F19931A1E5C9610EADAF3','O1','O1',X'0000000000000000BC3DA5BAB6491FB9','whole',NULL,'{"order_id":"O1","quantity":"1","sku":"P1"}',NULL,NULL,1,1,'2026-11-29T16:53:24.484802+00:00',NULL,NULL);
INSERT INTO "bindings" VALUES('depot','orders','depot',X'769CAB44F982EB6A9D362E723CC19BA2','O2','O2',X'00000000000000006C5699C9B9CE154A','whole',NULL,'{"order_id":"O2","quantity":"2","sku":"P2"}',NULL,NULL,1,1,'2026-11-29T16:53:24.484802+00:00',NULL,NULL);
CREATE TABLE buckets (
	name VARCHAR(512) NOT NULL, 
	rate_per_s DOUBLE NOT NULL, 
	burst BIGINT NOT NULL, 
	as_of DOUBLE NOT NULL, 
	spent_until DOUBLE NOT NULL, 
	frozen_until DOUBLE NOT NULL, 
	spent BIGINT NOT NULL, 
	refused BIGINT NOT NULL, 
	granted BIGINT NOT NULL, 
	known TEXT NOT NULL, 
	PRIMARY KEY (name)
);
INSERT INTO "buckets" VALUES('platform',1.66666666666666657197e+02,2000,1.79597120461817097662e+09,1.79597120462417101857e+09,0.0,25,0,0,'{"rate_per_s": 166.66666666666666, "rate_from": "documented", "burst": 2000, "burst_from": "reported", "agreed": 0, "most_at_once": 1000000000}');
INSERT INTO "buckets" VALUES('depot',1000.0,1000,1.79597120447836709018e+09,1.79597120447936701775e+09,0.0,2,0,0,'{"rate_per_s": 1000.0, "rate_from": "set", "burst": 1000, "burst_from": "set", "agreed": 0, "most_per_s": 1000.0, "most_at_once": 1000}');
CREATE TABLE configs (
	digest VARCHAR(64) NOT NULL, 
	content TEXT NOT NULL, 
	PRIMARY KEY (digest)
);
INSERT INTO "configs" VALUES('b6a46f7892e23fe219cbea776f8e5acb9ef14884f9da412b4a43f3869d2debbe','{"connections":{"depot":{"kind":"folder_warehouse","path":"/srv/project","settle_s":0,"sources":{},"streams":{"orders":{"adopt":"never","changes":{"at_most":100,"at_most_percent":30},"columns":{},"conflicts":"overwrite","contributes":[],"duplicates":"refuse","empty":"refuse","enabled":true,"fewer_rows_percent":20,"files":"out/ORD_*","fingerprint":"xxh3_64","format":{"delimiter":";","encoding":"utf-8","header":true,"kind":"delimited","quote":"\""},"gone":{"at_most":100,"at_most_percent":5,"referenced":"keep","rows_within_percent":20},"join":{},"key":["ORDER"],"lookup":{},"map":{"quantity":"QTY","sku":"SKU"},"mapping_failed":{"at_most":20,"at_most_percent":5},"matches":"key","mode":"append","on_gone":"nothing","personal":[],"skip":{},"to":"depot.orders","trim_keys":true}},"target":{"first_number":1,"resources":{"orders":{"content":{"bom":false,"column_names":true,"decimal_mark":".","delimiter":",","encoding":"utf-8","header":[],"kind":"delimited","line_end":"lf","quote":"\"","quoting":"minimal","rows":[{"columns":{"order_id":{"cut":false,"false_text":"false","template":"{external_id}","true_text":"true"},"quantity":{"cut":false,"false_text":"false","template":"{quantity}","true_text":"true"},"sku":{"cut":false,"false_text":"false","template":"{sku}","true_text":"true"}},"named":"line"}],"trailer":[]},"copies":false,"file":"ord_{number:6}.csv","folder":"depot","if_missing":"in_doubt","members":{"quantity":{"members":{},"personal":false,"required":false,"type":"text"},"sku":{"members":{},"personal":false,"required":false,"type":"text"}},"name":"order_id","name_form":"{key}","name_max_length":64,"records_per_file":1000,"taken":[],"temporary":".{name}.part"}},"retry":{"attempts":6,"base_s":0.5,"cap_s":60,"give_up_after_s":300},"timezone":"UTC"}},"wms":{"kind":"folder_warehouse","path":"/srv/project/out","settle_s":0,"sources":{},"streams":{"customers":{"adopt":"never","changes":{"at_most":100,"at_most_percent":30},"columns":{},"conflicts":"overwrite","contributes":[],"duplicates":"refuse","empty":"refuse","enabled":true,"fewer_rows_percent":20,"files":"CUST_*","fingerprint":"xxh3_64","format":{"delimiter":";","encoding":"utf-8","header":true,"kind":"delimited","quote":"\""},"gone":{"at_most":100,"at_most_percent":5,"referenced":"keep","rows_within_percent":20},"join":{},"key":["CUSTNO"],"lookup":{},"map":{"name":"NAME"},"mapping_failed":{"at_most":20,"at_most_percent":5},"matches":"key","mode":"append","on_gone":"nothing","personal":[],"resource":"customer","skip":{},"to":"platform","trim_keys":true},"invoices":{"adopt":"never","changes":{"at_most":100,"at_most_percent":30},"columns":{},"conflicts":"overwrite","contributes":[],"duplicates":"refuse","empty":"refuse","enabled":true,"fewer_rows_percent":20,"files":"INV_*","fingerprint":"xxh3_64","format":{"delimiter":";","encoding":"utf-8","header":true,"kind":"delimited","quote":"\""},"gone":{"at_most":100,"at_most_percent":5,"referenced":"keep","rows_within_percent":20},"group_by":["INVNO"],"join":{},"key":["INVNO"],"lookup":{},"map":{"currency":{"const":"EUR"},"customerId":{"key":"CUSTNO","ref":"customer"},"items":{"each":{"productId":{"key":"SKU","ref":"product"},"quantity":{"as":"decimal","decimal_mark":".","false_text":"false","from":"QTY","true_text":"true"},"unitPrice":{"const":2}}}},"mapping_failed":{"at_most":20,"at_most_percent":5},"matches":"key","mode":"append","on_gone":"nothing","personal":[],"resource":"invoice","skip":{},"to":"platform","trim_keys":true},"products":{"adopt":"never","changes":{"at_most":100,"at_most_percent":30},"columns":{},"conflicts":"overwrite","contributes":[],"duplicates":"refuse","empty":"refuse","enabled":true,"fewer_rows_percent":20,"files":"PROD_*","fingerprint":"xxh3_64","format":{"delimiter":";","encoding":"utf-8","header":true,"kind":"delimited","quote":"\"","trailer":{"count":1,"count_includes":0,"prefix":"TRL"}},"gone":{"at_most":100,"at_most_percent":5,"referenced":"keep","rows_within_percent":20},"join":{},"key":["SKU"],"lookup":{},"map":{"name":"NAME","sku":"SKU","unitPrice":{"as":"decimal","decimal_mark":".","false_text":"false","from":"PRICE","true_text":"true"}},"mapping_failed":{"at_most":20,"at_most_percent":5},"matches":"key","mode":"snapshot","on_gone":"delete","personal":[],"resource":"product","skip":{},"to":"platform","trim_keys":true}}}},"jobs":{"nightly":{"after":[],"overlap":"queue","schedule":{"at":["02:00"],"blackouts":[],"business_date":"same_day","catch_up":"latest","catch_up_within":"7d","days":["mon","tue","wed","thu","fri","sat","sun"],"holidays":[],"on_holiday":"skip","time_zone":"UTC"},"streams":["wms","depot"]}},"platform":{"auth":{"kind":"api_key","token":"env:CROSSDOCK_API_KEY"},"base_url":"http://platform.example","conditional_updates":true,"http":{"connect_timeout_s":5,"max_response_bytes":8388608,"read_timeout_s":30,"total_timeout_s":60,"trust_env":false},"idempotency":{"enabled":false,"header":"Idempotency-Key","kept_s":86400,"quoted":true},"in_flight":100,"lookup":{"enabled":true,"parameter":"externalId","settle_s":60},"max_clock_skew_s":300,"paths":{},"rate":{},"retry":{"attempts":2,"base_s":0.01,"cap_s":60,"give_up_after_s":0.1},"scope_names":{},"tenant":"sandbox","tenant_header":"x-tenant-slug"},"retention":"90d","spool":"/srv/project/state.db.spool","state":"sqlite:////srv/project/state.db"}');
CREATE TABLE content_digests (
	kind VARCHAR(16) NOT NULL, 
	stream VARCHAR(192) NOT NULL, 
	version VARCHAR(64) NOT NULL, 
	packed BLOB NOT NULL, 
	PRIMARY KEY (kind, stream, version)
);
CREATE TABLE crossdock_meta (
	name VARCHAR(64) NOT NULL, 
	value TEXT NOT NULL, 
	PRIMARY KEY (name)
);
INSERT INTO "crossdock_meta" VALUES('version','25');
INSERT INTO "crossdock_meta" VALUES('base_url','http://platform.example');
INSERT INTO "crossdock_meta" VALUES('tenant','sandbox');
INSERT INTO "crossdock_meta" VALUES('id','3f0b8f7ec2c1491a91fe50a2d04fc1df');
INSERT INTO "crossdock_meta" VALUES('retention_applied_at','2026-11-29T16:53:24.888683+00:00');
CREATE TABLE cursors (
	stream VARCHAR(192) NOT NULL, 
	version VARCHAR(64) NOT NULL, 
	value TEXT NOT NULL, 
	PRIMARY KEY (stream)
);
CREATE TABLE dead_letters (
	stream VARCHAR(192) NOT NULL, 
	key_hash BLOB NOT NULL, 
	"key" TEXT NOT NULL, 
	record_fp BLOB, 
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
	first_run_id INTEGER NOT NULL, 
	run_id INTEGER NOT NULL, 
	refused_at TEXT NOT NULL, 
	PRIMARY KEY (stream, key_hash), 
	FOREIGN KEY(first_run_id) REFERENCES runs (id), 
	FOREIGN KEY(run_id) REFERENCES runs (id)
);
INSERT INTO "dead_letters" VALUES('wms.invoices',X'CB358FCEE0DFDE56FB95A7322F5DA314','2',X'00000000000000008D17EF93F364A733',NULL,'{"columns":["INVNO","CUSTNO","SKU","QTY"],"lines":[3],"rows":[["2","C2","P1","x"]]}','INV_1.csv',3,'whole','mapping','bad_value','QTY','is not a number with decimal mark ''.'', no thousands marks and a leading sign',NULL,'rejected',1,1,1,'2026-11-29T16:53:24.394668+00:00');
INSERT INTO "dead_letters" VALUES('wms.invoices',X'562591323B675829DEDB980100C87E72','5',X'0000000000000000805175291899D2BF',NULL,'{"columns":["INVNO","CUSTNO","SKU","QTY"],"lines":[2],"rows":[["5","C2","P3","y"]]}','INV_2.csv',2,'whole','mapping','bad_value','QTY','is not a number with decimal mark ''.'', no thousands marks and a leading sign',NULL,'dropped',1,2,2,'2026-11-29T16:53:24.767554+00:00');
CREATE TABLE followed_records (
	stream VARCHAR(192) NOT NULL, 
	key_hash BLOB NOT NULL, 
	"key" TEXT NOT NULL, 
	read_at TEXT NOT NULL, 
	missed INTEGER NOT NULL, 
	PRIMARY KEY (stream, key_hash)
);
CREATE TABLE full_lists (
	stream VARCHAR(192) NOT NULL, 
	read_at TEXT NOT NULL, 
	PRIMARY KEY (stream)
);
CREATE TABLE hints (
	stream VARCHAR(192) NOT NULL, 
	key_hash BLOB NOT NULL, 
	"key" TEXT NOT NULL, 
	number BIGINT NOT NULL, 
	first_at TEXT NOT NULL, 
	last_at TEXT NOT NULL, 
	due_at TEXT NOT NULL, 
	attempts INTEGER NOT NULL, 
	error TEXT, 
	PRIMARY KEY (stream, key_hash)
);
CREATE TABLE intents (
	id INTEGER NOT NULL, 
	run_id INTEGER NOT NULL, 
	fence BIGINT NOT NULL, 
	stream VARCHAR(192) NOT NULL, 
	target VARCHAR(64) NOT NULL, 
	resource VARCHAR(32) NOT NULL, 
	namespace VARCHAR(128) NOT NULL, 
	key_hash BLOB NOT NULL, 
	"key" TEXT NOT NULL, 
	record_fp BLOB, 
	position TEXT, 
	raw TEXT NOT NULL, 
	source TEXT NOT NULL, 
	line BIGINT NOT NULL, 
	operation VARCHAR(16) NOT NULL, 
	counter BIGINT NOT NULL, 
	idempotency_key VARCHAR(64) NOT NULL, 
	method VARCHAR(8) NOT NULL, 
	path TEXT NOT NULL, 
	body BLOB, 
	"before" TEXT, 
	"after" TEXT, 
	step VARCHAR(8) NOT NULL, 
	if_match TEXT, 
	status VARCHAR(16) NOT NULL, 
	attempts INTEGER NOT NULL, 
	created_at TEXT NOT NULL, 
	first_sent_at TEXT, 
	settled_at TEXT, 
	http_status INTEGER, 
	target_id VARCHAR(128), 
	untouched BOOLEAN, 
	only_unchanged VARCHAR(8), 
	resolved_at TEXT, 
	batch_id BIGINT, 
	place INTEGER, 
	PRIMARY KEY (id), 
	FOREIGN KEY(run_id) REFERENCES runs (id), 
	UNIQUE (idempotency_key)
);
INSERT INTO "intents" VALUES(1,1,1,'wms.customers','platform','customer','wms',X'2CB29BD862760F503B7D0D206099CA33','C1',X'00000000000000005C9CF2B4E8511924',NULL,'{}','CUST_1.csv',2,'create',1,'e6f9ffa46cd53fa487a21b993abfe2e3fa3b1e8b','POST','/api/v1/sales/customers',X'7B2265787465726E616C4964223A22776D733A4331222C226E616D65223A22566F67656C227D',NULL,NULL,'whole',NULL,'delivered',1,'2026-11-29T16:53:24.168414+00:00','2026-11-29T16:53:24.168414+00:00','2026-11-29T16:53:24.207619+00:00',201,'cus_1a22839c45e5df745e865509d',0,NULL,NULL,NULL,NULL);
INSERT INTO "intents" VALUES(2,1,1,'wms.customers','platform','customer','wms',X'14C38134BD3CBA520DB0735024AE3545','C2',X'000000000000000039A8A18F7619E537',NULL,'{}','CUST_1.csv',3,'create',1,'9ac366900c7f5430643ea7923d8fc6b15fd569c1','POST','/api/v1/sales/customers',X'7B2265787465726E616C4964223A22776D733A4332222C226E616D65223A22416D73656C227D',NULL,NULL,'whole',NULL,'delivered',1,'2026-11-29T16:53:24.168414+00:00','2026-11-29T16:53:24.168414+00:00','2026-11-29T16:53:24.207619+00:00',201,'cus_1a22839c453555feedfc4d84e',0,NULL,NULL,NULL,NULL);
INSERT INTO "intents" VALUES(3,1,1,'wms.products','platform','product','wms',X'F36C7CB09181C9863F32C69EEFAF5956','P0',X'0000000000000000E24E767716018A3A',NULL,'{}','PROD_1.csv',2,'create',1,'7713bda60459fdc8a1e57c36c2f9158f47215335','POST','/api/v1/catalog/products',X'7B22616374697665223A747275652C2265787465726E616C4964223A22776D733A5030222C226E616D65223A22426F6C742030222C22736B75223A225030222C22756E69745072696365223A312E357D',NULL,NULL,'whole',NULL,'delivered',1,'2026-11-29T16:53:24.268046+00:00','2026-11-29T16:53:24.268046+00:00','2026-11-29T16:53:24.322182+00:00',201,'prd_1a22839c4c42afa7a894734e8',0,NULL,NULL,NULL,NULL);
INSERT INTO "intents" VALUES(4,1,1,'wms.products','platform','product','wms',X'F83D4CE41CC45A9F8DDE78FFFF48ADF8','P1',X'0000000000000000D7AFA4BC2A96BD73',NULL,'{}','PROD_1.csv',3,'create',1,'857f2049fda5ee439fc9d2e81df2d9f0de20504b','POST','/api/v1/catalog/products',X'7B22616374697665223A747275652C2265787465726E616C4964223A22776D733A5031222C226E616D65223A22426F6C742031222C22736B75223A225031222C22756E69745072696365223A312E357D',NULL,NULL,'whole',NULL,'delivered',1,'2026-11-29T16:53:24.268046+00:00','2026-11-29T16:53:24.268046+00:00','2026-11-29T16:53:24.322182+00:00',201,'prd_1a22839c4be4708c8d0b18ce9',0,NULL,NULL,NULL,NULL);
INSERT INTO "intents" VALUES(5,1,1,'wms.products','platform','product','wms',X'74F029DAF01A5DC24FCA212E7D70DC7C','P2',X'0000000000000000696ECA6F6959C493',NULL,'{}','PROD_1.csv',4,'create',1,'0894a76500aa6dd63693524f98b5eacf3b363340','POST','/api/v1/catalog/products',X'7B22616374697665223A747275652C2265787465726E616C4964223A22776D733A5032222C226E616D65223A22426F6C742032222C22736B75223A225032222C22756E69745072696365223A312E357D',NULL,NULL,'whole',NULL,'delivered',1,'2026-11-29T16:53:24.268046+00:00','2026-11-29T16:53:24.268046+00:00','2026-11-29T16:53:24.322182+00:00',201,'prd_1a22839c4bdd4bac465a2e846',0,NULL,NULL,NULL,NULL);
INSERT INTO "intents" VALUES(6,1,1,'wms.products','platform','product','wms',X'0029E527DC3F478A7F3CB354E6A40C5E','P3',X'0000000000000000FD26C8BA079044B1',NULL,'{}','PROD_1.csv',5,'create',1,'8038cd8261a3bd71a9c0e8cfc36e28db73a2a183','POST','/api/v1/catalog/products',X'7B22616374697665223A747275652C2265787465726E616C4964223A22776D733A5033222C226E616D65223A22426F6C742033222C22736B75223A225033222C22756E69745072696365223A312E357D',NULL,NULL,'whole',NULL,'delivered',1,'2026-11-29T16:53:24.268046+00:00','2026-11-29T16:53:24.268046+00:00','2026-11-29T16:53:24.322182+00:00',201,'prd_1a22839c4beed832fe308b73c',0,NULL,NULL,NULL,NULL);
INSERT INTO "intents" VALUES(7,1,1,'wms.products','platform','product','wms',X'965FA03BB800594EA23BB4AFF887506E','P4',X'0000000000000000F614977F07D1FB27',NULL,'{}','PROD_1.csv',6,'create',1,'a9e76517a0cfc87dd7dd145b3c1bc3e51b234696','POST','/api/v1/catalog/products',X'7B22616374697665223A747275652C2265787465726E616C4964223A22776D733A5034222C226E616D65223A22426F6C742034222C22736B75223A225034222C22756E69745072696365223A312E357D',NULL,NULL,'whole',NULL,'delivered',1,'2026-11-29T16:53:24.268046+00:00','2026-11-29T16:53:24.268046+00:00','2026-11-29T16:53:24.322182+00:00',201,'prd_1a22839c4be66054650931411',0,NULL,NULL,NULL,NULL);
INSERT INTO "intents" VALUES(8,1,1,'wms.products','platform','product','wms',X'92CB61DF796CDE81DDA20856533A3990','P5',X'00000000000000008E977C16B60A9AF5',NULL,'{}','PROD_1.csv',7,'create',1,'cddf02a5fa1d67db0ae804826b118ca78875db03','POST','/api/v1/catalog/products',X'7B22616374697665223A747275652C2265787465726E616C4964223A22776D733A5035222C226E616D65223A22426F6C742035222C22736B75223A225035222C22756E69745072696365223A312E357D',NULL,NULL,'whole',NULL,'delivered',1,'2026-11-29T16:53:24.268046+00:00','2026-11-29T16:53:24.268046+00:00','2026-11-29T16:53:24.322182+00:00',201,'prd_1a22839c4bea1774c30012f7e',0,NULL,NULL,NULL,NULL);
INSERT INTO "intents" VALUES(9,1,1,'wms.products','platform','product','wms',X'3B77257D395BE609CFFE1B79567F6BB2','P6',X'00000000000000006A1B66D03FC170B2',NULL,'{}','PROD_1.csv',8,'create',1,'44f6ecdaf71e0e49751b8ab30bcbfe4de9e25ccc','POST','/api/v1/catalog/products',X'7B22616374697665223A747275652C2265787465726E616C4964223A22776D733A5036222C226E616D65223A22426F6C742036222C22736B75223A225036222C22756E69745072696365223A312E357D',NULL,NULL,'whole',NULL,'delivered',1,'2026-11-29T16:53:24.268046+00:00','2026-11-29T16:53:24.268046+00:00','2026-11-29T16:53:24.322182+00:00',201,'prd_1a22839c4bed15e4a0556fa2c',0,NULL,NULL,NULL,NULL);
INSERT INTO "intents" VALUES(10,1,1,'wms.products','platform','product','wms',X'D2BDA13DB2155C446BABA9C48356AC25','P7',X'0000000000000000415340FE2AEA3058',NULL,'{}','PROD_1.csv',9,'create',1,'e6852eaf046104647bd0a0814bc91abf3a7c1646','POST','/api/v1/catalog/products',X'7B22616374697665223A747275652C2265787465726E616C4964223A22776D733A5037222C226E616D65223A22426F6C742037222C22736B75223A225037222C22756E69745072696365223A312E357D',NULL,NULL,'whole',NULL,'delivered',1,'2026-11-29T16:53:24.268046+00:00','2026-11-29T16:53:24.268046+00:00','2026-11-29T16:53:24.322182+00:00',201,'prd_1a22839c4beb8dd600c1384c0',0,NULL,NULL,NULL,NULL);
INSERT INTO "intents" VALUES(11,1,1,'wms.products','platform','product','wms',X'612510008D3BE12C54909CAF8013C1E5','P8',X'0000000000000000308520A2EFAC153A',NULL,'{}','PROD_1.csv',10,'create',1,'16e8b0892ef21ff5b0560425f160a61c7850778a','POST','/api/v1/catalog/products',X'7B22616374697665223A747275652C2265787465726E616C4964223A22776D733A5038222C226E616D65223A22426F6C742038222C22736B75223A225038222C22756E69745072696365223A312E357D',NULL,NULL,'whole',NULL,'delivered',1,'2026-11-29T16:53:24.268046+00:00','2026-11-29T16:53:24.268046+00:00','2026-11-29T16:53:24.322182+00:00',201,'prd_1a22839c4c49756f885ca37e1',0,NULL,NULL,NULL,NULL);
INSERT INTO "intents" VALUES(12,1,1,'wms.products','platform','product','wms',X'F0C04E64A1F600D5843ED9FFBB6A137A','P9',X'000000000000000071D7116C30A30999',NULL,'{}','PROD_1.csv',11,'create',1,'389c0d519c52fd6c3ef5f260cc9bd795007358d4','POST','/api/v1/catalog/products',X'7B22616374697665223A747275652C2265787465726E616C4964223A22776D733A5039222C226E616D65223A22426F6C742039222C22736B75223A225039222C22756E69745072696365223A312E357D',NULL,NULL,'whole',NULL,'delivered',1,'2026-11-29T16:53:24.268046+00:00','2026-11-29T16:53:24.268046+00:00','2026-11-29T16:53:24.322182+00:00',201,'prd_1a22839c4c44f0e93c7ec9404',0,NULL,NULL,NULL,NULL);
INSERT INTO "intents" VALUES(13,1,1,'wms.products','platform','product','wms',X'A3B3932B0D006AC18833D9F54EFCD621','P10',X'00000000000000008A4FB80985F0578B',NULL,'{}','PROD_1.csv',12,'create',1,'66bb2edf2fbf4310a6f8e4e103a6a051eeff8363','POST','/api/v1/catalog/products',X'7B22616374697665223A747275652C2265787465726E616C4964223A22776D733A503130222C226E616D65223A22426F6C74203130222C22736B75223A22503130222C22756E69745072696365223A312E357D',NULL,NULL,'whole',NULL,'delivered',1,'2026-11-29T16:53:24.268046+00:00','2026-11-29T16:53:24.268046+00:00','2026-11-29T16:53:24.322182+00:00',201,'prd_1a22839c4c70209fc636b9876',0,NULL,NULL,NULL,NULL);
INSERT INTO "intents" VALUES(14,1,1,'wms.products','platform','product','wms',X'8BCE931B09242D29CD93B5A3E50D276D','P11',X'0000000000000000B791A53D911F9884',NULL,'{}','PROD_1.csv',13,'create',1,'20fce50e124c395b709d6770304cb09db5631793','POST','/api/v1/catalog/products',X'7B22616374697665223A747275652C2265787465726E616C4964223A22776D733A503131222C226E616D65223A22426F6C74203131222C22736B75223A22503131222C22756E69745072696365223A312E357D',NULL,NULL,'whole',NULL,'delivered',1,'2026-11-29T16:53:24.268046+00:00','2026-11-29T16:53:24.268046+00:00','2026-11-29T16:53:24.341611+00:00',201,'prd_1a22839c4df5a42dbe1693303',0,NULL,NULL,NULL,NULL);
INSERT INTO "intents" VALUES(15,1,1,'wms.products','platform','product','wms',X'9ABD52214E42C69BBF81CA150A982224','P12',X'00000000000000003F5715615FF6A510',NULL,'{}','PROD_1.csv',14,'create',1,'e03384c8d651a3f0b14f6488da7295d31fa80402','POST','/api/v1/catalog/products',X'7B22616374697665223A747275652C2265787465726E616C4964223A22776D733A503132222C226E616D65223A22426F6C74203132222C22736B75223A22503132222C22756E69745072696365223A312E357D',NULL,NULL,'whole',NULL,'delivered',1,'2026-11-29T16:53:24.268046+00:00','2026-11-29T16:53:24.268046+00:00','2026-11-29T16:53:24.341611+00:00',201,'prd_1a22839c4e092b9074c788266',0,NULL,NULL,NULL,NULL);
INSERT INTO "intents" VALUES(16,1,1,'wms.products','platform','product','wms',X'83D2F5A66BEFEA6477BCC7E413232C21','P13',X'0000000000000000E8733FFEBC5CCFFD',NULL,'{}','PROD_1.csv',15,'create',1,'8b6f86d4a4caa329ea5014bb5cef9f8fa68ce6c2','POST','/api/v1/catalog/products',X'7B22616374697665223A747275652C2265787465726E616C4964223A22776D733A503133222C226E616D65223A22426F6C74203133222C22736B75223A22503133222C22756E69745072696365223A312E357D',NULL,NULL,'whole',NULL,'delivered',1,'2026-11-29T16:53:24.268046+00:00','2026-11-29T16:53:24.268046+00:00','2026-11-29T16:53:24.341611+00:00',201,'prd_1a22839c4e0802c6e56e39fc1',0,NULL,NULL,NULL,NULL);
INSERT INTO "intents" VALUES(17,1,1,'wms.products','platform','product','wms',X'A39C7BC89864CFB5235E0E33F139E6AC','P14',X'0000000000000000896361C929199913',NULL,'{}','PROD_1.csv',16,'create',1,'ec0f7e898539fed886eac5270fd6bf1641fef432','POST','/api/v1/catalog/products',X'7B22616374697665223A747275652C2265787465726E616C4964223A22776D733A503134222C226E616D65223A22426F6C74203134222C22736B75223A22503134222C22756E69745072696365223A312E357D',NULL,NULL,'whole',NULL,'delivered',1,'2026-11-29T16:53:24.268046+00:00','2026-11-29T16:53:24.268046+00:00','2026-11-29T16:53:24.341611+00:00',201,'prd_1a22839c4e04cfde81df60178',0,NULL,NULL,NULL,NULL);
INSERT INTO "intents" VALUES(18,1,1,'wms.products','platform','product','wms',X'714ABCDADB722F9F91162E7B573B4C9C','P15',X'000000000000000098FA0EDB188296F1',NULL,'{}','PROD_1.csv',17,'create',1,'6a6fd785f71173bc74bd9001097e83ef14d431db','POST','/api/v1/catalog/products',X'7B22616374697665223A747275652C2265787465726E616C4964223A22776D733A503135222C226E616D65223A22426F6C74203135222C22736B75223A22503135222C22756E69745072696365223A312E357D',NULL,NULL,'whole',NULL,'delivered',1,'2026-11-29T16:53:24.268046+00:00','2026-11-29T16:53:24.268046+00:00','2026-11-29T16:53:24.341611+00:00',201,'prd_1a22839c4e04dfec4e8eabaaa',0,NULL,NULL,NULL,NULL);
INSERT INTO "intents" VALUES(19,1,1,'wms.products','platform','product','wms',X'87EE1C0397A4928E3F37E15B915268BB','P16',X'00000000000000006B63218A1E66DB5B',NULL,'{}','PROD_1.csv',18,'create',1,'c94d56127ac1578b11f66f5e55f0129b66bbe138','POST','/api/v1/catalog/products',X'7B22616374697665223A747275652C2265787465726E616C4964223A22776D733A503136222C226E616D65223A22426F6C74203136222C22736B75223A22503136222C22756E69745072696365223A312E357D',NULL,NULL,'whole',NULL,'delivered',1,'2026-11-29T16:53:24.268046+00:00','2026-11-29T16:53:24.268046+00:00','2026-11-29T16:53:24.341611+00:00',201,'prd_1a22839c4e0da30b3c2927d14',0,NULL,NULL,NULL,NULL);
INSERT INTO "intents" VALUES(20,1,1,'wms.products','platform','product','wms',X'53F0A6DB3FF64B8E5375EA5D4B2F6343','P17',X'00000000000000009D0E12EA9AD2CB5F',NULL,'{}','PROD_1.csv',19,'create',1,'07c56be399358bbd7e1fd66a05a4dfe013c3fb33','POST','/api/v1/catalog/products',X'7B22616374697665223A747275652C2265787465726E616C4964223A22776D733A503137222C226E616D65223A22426F6C74203137222C22736B75223A22503137222C22756E69745072696365223A312E357D',NULL,NULL,'whole',NULL,'delivered',1,'2026-11-29T16:53:24.268046+00:00','2026-11-29T16:53:24.268046+00:00','2026-11-29T16:53:24.341611+00:00',201,'prd_1a22839c4e0070ecc6c86a1bb',0,NULL,NULL,NULL,NULL);
INSERT INTO "intents" VALUES(21,1,1,'wms.products','platform','product','wms',X'94BF1BBD865A661E9BAC1BD899AC7F02','P18',X'0000000000000000AC129130D8FC4016',NULL,'{}','PROD_1.csv',20,'create',1,'d3d3fb42047470046fc48b76d10643c993a47bb3','POST','/api/v1/catalog/products',X'7B22616374697665223A747275652C2265787465726E616C4964223A22776D733A503138222C226E616D65223A22426F6C74203138222C22736B75223A22503138222C22756E69745072696365223A312E357D',NULL,NULL,'whole',NULL,'delivered',1,'2026-11-29T16:53:24.268046+00:00','2026-11-29T16:53:24.268046+00:00','2026-11-29T16:53:24.341611+00:00',201,'prd_1a22839c4e04677c57b37b5dd',0,NULL,NULL,NULL,NULL);
INSERT INTO "intents" VALUES(22,1,1,'wms.products','platform','product','wms',X'8FDC5B13064E44F84CBCD61493E78294','P19',X'000000000000000075BFAFDAC4B8CA16',NULL,'{}','PROD_1.csv',21,'create',1,'85f6ab7f931582d563fa027d43eaab673fc64c49','POST','/api/v1/catalog/products',X'7B22616374697665223A747275652C2265787465726E616C4964223A22776D733A503139222C226E616D65223A22426F6C74203139222C22736B75223A22503139222C22756E69745072696365223A312E357D',NULL,NULL,'whole',NULL,'delivered',1,'2026-11-29T16:53:24.268046+00:00','2026-11-29T16:53:24.268046+00:00','2026-11-29T16:53:24.341611+00:00',201,'prd_1a22839c4e05be8b687579b73',0,NULL,NULL,NULL,NULL);
INSERT INTO "intents" VALUES(23,1,1,'wms.invoices','platform','invoice','wms',X'DF3CE784D856334D65CD25028F98F158','1',X'0000000000000000F3981414256DDFCA',NULL,'{}','INV_1.csv',2,'create',1,'1cbe6d800875db0d1c961c0eb1e381d7f50b2d7b','POST','/api/v1/finance/invoices',X'7B2263757272656E6379223A22455552222C22637573746F6D65724964223A226375735F31613232383339633435653564663734356538363535303964222C226974656D73223A5B7B2270726F647563744964223A227072645F31613232383339633462653437303863386430623138636539222C227175616E74697479223A322C22756E69745072696365223A327D5D7D',NULL,NULL,'whole',NULL,'delivered',1,'2026-11-29T16:53:24.399265+00:00','2026-11-29T16:53:24.399265+00:00','2026-11-29T16:53:24.408911+00:00',201,'inv_1a22839c53508b8c21292034c',0,NULL,NULL,NULL,NULL);
INSERT INTO "intents" VALUES(24,1,1,'wms.invoices','platform','invoice','wms',X'5FCDDC9C0829C4457324DC1E7E9474F0','3',X'0000000000000000313C4EB871CB14D6',NULL,'{"columns":["INVNO","CUSTNO","SKU","QTY"],"lines":[4],"rows":[["3","C1","P2","100"]]}','INV_1.csv',4,'create',1,'6c0c8f0204885d6411d55c06ad96c74702567855','POST','/api/v1/finance/invoices',X'7B2263757272656E6379223A22455552222C22637573746F6D65724964223A226375735F31613232383339633435653564663734356538363535303964222C226974656D73223A5B7B2270726F647563744964223A227072645F31613232383339633462646434626163343635613265383436222C227175616E74697479223A3130302C22756E69745072696365223A327D5D7D',NULL,NULL,'whole',NULL,'in_doubt',1,'2026-11-29T16:53:24.399265+00:00','2026-11-29T16:53:24.399265+00:00',NULL,NULL,NULL,0,NULL,NULL,NULL,NULL);
INSERT INTO "intents" VALUES(25,1,1,'depot.orders','depot','orders','depot',X'AE3CA2DA179F19931A1E5C9610EADAF3','O1',X'0000000000000000BC3DA5BAB6491FB9',NULL,'{}','ORD_1.csv',2,'create',1,'5d94fa8ac07b0bd72d16d419a899e987c4c7e33a','PUT','/orders',X'7B226F726465725F6964223A224F31222C227175616E74697479223A2231222C22736B75223A225031227D',NULL,NULL,'whole',NULL,'delivered',1,'2026-11-29T16:53:24.463518+00:00','2026-11-29T16:53:24.478442+00:00','2026-11-29T16:53:24.484802+00:00',200,'O1',0,NULL,NULL,1,0);
INSERT INTO "intents" VALUES(26,1,1,'depot.orders','depot','orders','depot',X'769CAB44F982EB6A9D362E723CC19BA2','O2',X'00000000000000006C5699C9B9CE154A',NULL,'{}','ORD_1.csv',3,'create',1,'106faaee99f7ea2b5357da403a12c8085685c1ce','PUT','/orders',X'7B226F726465725F6964223A224F32222C227175616E74697479223A2232222C22736B75223A225032227D',NULL,NULL,'whole',NULL,'delivered',1,'2026-11-29T16:53:24.463518+00:00','2026-11-29T16:53:24.478442+00:00','2026-11-29T16:53:24.484802+00:00',200,'O2',0,NULL,NULL,1,1);
INSERT INTO "intents" VALUES(27,2,2,'wms.customers','platform','customer','wms',X'14C38134BD3CBA520DB0735024AE3545','C2',X'000000000000000075F317E415FD8E11',NULL,'{}','CUST_2.csv',2,'update',2,'f42803c1401733c28c61e1473f6ac7a174ba79ec','PATCH','/api/v1/sales/customers/cus_1a22839c453555feedfc4d84e',X'7B226E616D65223A2244726F7373656C227D','{"externalId":"wms:C2","name":"Amsel"}','{"externalId":"wms:C2","name":"Drossel"}','whole','"1"','delivered',1,'2026-11-29T16:53:24.618255+00:00','2026-11-29T16:53:24.618255+00:00','2026-11-29T16:53:24.631957+00:00',200,'cus_1a22839c453555feedfc4d84e',0,NULL,NULL,NULL,NULL);
CREATE TABLE jobs (
	name VARCHAR(64) NOT NULL, 
	since TEXT NOT NULL, 
	paused BOOLEAN NOT NULL, 
	done_until TEXT, 
	PRIMARY KEY (name)
);
INSERT INTO "jobs" VALUES('nightly','2026-11-29T16:53:24.994904+00:00',1,NULL);
CREATE TABLE key_stamps (
	target VARCHAR(64) NOT NULL, 
	resource VARCHAR(32) NOT NULL, 
	namespace VARCHAR(128) NOT NULL, 
	stamp BIGINT NOT NULL, 
	PRIMARY KEY (target, resource, namespace)
);
INSERT INTO "key_stamps" VALUES('platform','customer','wms',3328054821254615552);
INSERT INTO "key_stamps" VALUES('platform','product','wms',814878108794465862);
INSERT INTO "key_stamps" VALUES('platform','invoice','wms',416232417802739283);
INSERT INTO "key_stamps" VALUES('depot','orders','depot',3405322689441380959);
CREATE TABLE leases (
	name VARCHAR(64) NOT NULL, 
	fence BIGINT NOT NULL, 
	owner VARCHAR(128) NOT NULL, 
	locked BOOLEAN NOT NULL, 
	until TEXT NOT NULL, 
	PRIMARY KEY (name)
);
INSERT INTO "leases" VALUES('run',5,'host:1',0,'2000-01-01T00:00:00.000000+00:00');
CREATE TABLE migration_runs (
	run_id INTEGER NOT NULL, 
	migration_id INTEGER NOT NULL, 
	wave VARCHAR(64), 
	kind VARCHAR(16) NOT NULL, 
	PRIMARY KEY (run_id), 
	FOREIGN KEY(run_id) REFERENCES runs (id), 
	FOREIGN KEY(migration_id) REFERENCES migrations (id)
);
CREATE TABLE migrations (
	id INTEGER NOT NULL, 
	name VARCHAR(64) NOT NULL, 
	started_at TEXT NOT NULL, 
	started_by VARCHAR(128) NOT NULL, 
	paused_at TEXT, 
	paused_by VARCHAR(128), 
	rehearsal TEXT, 
	freeze TEXT, 
	reconciliation TEXT, 
	signed_off_at TEXT, 
	signed_off_by VARCHAR(128), 
	report_sha256 VARCHAR(64), 
	PRIMARY KEY (id)
);
CREATE TABLE passed_files (
	stream VARCHAR(192) NOT NULL, 
	name TEXT NOT NULL, 
	size BIGINT NOT NULL, 
	modified_at TEXT NOT NULL, 
	PRIMARY KEY (stream, name)
);
INSERT INTO "passed_files" VALUES('wms.products','PROD_1.csv',342,'2026-05-28T20:26:40.000000+00:00');
CREATE TABLE pending_removals (
	stream VARCHAR(192) NOT NULL, 
	what TEXT NOT NULL, 
	keys BLOB NOT NULL, 
	since TEXT NOT NULL, 
	approved_at TEXT, 
	PRIMARY KEY (stream)
);
INSERT INTO "pending_removals" VALUES('wms.products','delete product of wms on the platform',X'3B77257D395BE609CFFE1B79567F6BB253F0A6DB3FF64B8E5375EA5D4B2F6343612510008D3BE12C54909CAF8013C1E5714ABCDADB722F9F91162E7B573B4C9C83D2F5A66BEFEA6477BCC7E413232C2187EE1C0397A4928E3F37E15B915268BB8BCE931B09242D29CD93B5A3E50D276D8FDC5B13064E44F84CBCD61493E7829492CB61DF796CDE81DDA20856533A399094BF1BBD865A661E9BAC1BD899AC7F02965FA03BB800594EA23BB4AFF887506E9ABD52214E42C69BBF81CA150A982224A39C7BC89864CFB5235E0E33F139E6ACA3B3932B0D006AC18833D9F54EFCD621D2BDA13DB2155C446BABA9C48356AC25F0C04E64A1F600D5843ED9FFBB6A137A','2026-11-29T16:53:24.680899+00:00',NULL);
CREATE TABLE run_messages (
	run_id INTEGER NOT NULL, 
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
INSERT INTO "run_messages" VALUES(2,0,'warning','wms.products','the snapshot has 4 rows; the previous ones had 20 (newest first), which is more than fewer_rows_percent (20) fewer: ask the sender whether the export is complete','snapshot_differs',NULL,NULL,NULL);
INSERT INTO "run_messages" VALUES(2,1,'error','wms.products','16 of 20 records are gone, more than gone.at_most_percent (5); none of them is removed: P6, P17, P8, P15, P13, ...','removals_refused','PROD_2.csv','list them: crossdock plan wms.products --limit 16; to allow the removal, after a sync that ended with this message: crossdock approve wms.products 16','refused');
CREATE TABLE runs (
	id INTEGER NOT NULL, 
	job VARCHAR(128), 
	business_date VARCHAR(10) NOT NULL, 
	started_at TEXT NOT NULL, 
	finished_at TEXT, 
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
INSERT INTO "runs" VALUES(1,NULL,'2026-11-29','2026-11-29T16:53:24.133252+00:00','2026-11-29T16:53:24.504438+00:00',368,'degraded',25,0,'{"depot.orders":{"balanced":true,"files":[{"name":"ORD_1.csv","rows":2}],"input":"new","more_files":0,"newest_file":null,"open":{"in_doubt":0,"overdue":0,"pending":0,"rejected":0,"unverified":0,"waiting":0},"parts":{},"records":{"acknowledged":0,"carried_on":0,"carried_over":0,"created":2,"deleted":0,"delivered":2,"dropped":0,"gone":0,"handed_over":0,"ignored":0,"read":2,"rejected":0,"replaced":0,"suppressed":0,"unchanged":0,"updated":0},"rows":{"filtered":{},"in_records":2,"read":2,"rejected":0,"superseded":0}},"wms.customers":{"balanced":true,"files":[{"name":"CUST_1.csv","rows":2}],"input":"new","more_files":0,"newest_file":null,"open":{"in_doubt":0,"overdue":0,"pending":0,"rejected":0,"unverified":0,"waiting":0},"parts":{},"records":{"acknowledged":0,"carried_on":0,"carried_over":0,"created":2,"deleted":0,"delivered":2,"dropped":0,"gone":0,"handed_over":0,"ignored":0,"read":2,"rejected":0,"replaced":0,"suppressed":0,"unchanged":0,"updated":0},"rows":{"filtered":{},"in_records":2,"read":2,"rejected":0,"superseded":0}},"wms.invoices":{"balanced":true,"files":[{"name":"INV_1.csv","rows":4}],"input":"new","more_files":0,"newest_file":null,"open":{"in_doubt":1,"overdue":0,"pending":0,"rejected":1,"unverified":0,"waiting":1},"parts":{},"records":{"acknowledged":0,"carried_on":2,"carried_over":0,"created":1,"deleted":0,"delivered":1,"dropped":0,"gone":0,"handed_over":0,"ignored":0,"read":4,"rejected":1,"replaced":0,"suppressed":0,"unchanged":0,"updated":0},"rows":{"filtered":{},"in_records":4,"read":4,"rejected":0,"superseded":0}},"wms.products":{"balanced":true,"files":[{"name":"PROD_1.csv","rows":20}],"input":"new","more_files":0,"newest_file":null,"open":{"in_doubt":0,"overdue":0,"pending":0,"rejected":0,"unverified":0,"waiting":0},"parts":{},"records":{"acknowledged":0,"carried_on":0,"carried_over":0,"created":20,"deleted":0,"delivered":20,"dropped":0,"gone":0,"handed_over":0,"ignored":0,"read":20,"rejected":0,"replaced":0,"suppressed":0,"unchanged":0,"updated":0},"rows":{"filtered":{},"in_records":20,"read":20,"rejected":0,"superseded":0}}}','{"apis":{},"samples":[[72,2000],[192,1987],[207,1990],[211,1990],[275,1999],[350,1000]],"steps":[["starting",0,4],["sending what the last run left",4,3],["reading wms.customers",8,1],["fetching CUST_1.csv",9,0],["reading wms.customers",9,19],["sending wms.customers",28,44],["remembering wms.customers",73,19],["reading wms.products",92,1],["fetching PROD_1.csv",94,0],["reading wms.products",94,29],["sending wms.products",123,87],["remembering wms.products",211,16],["reading wms.invoices",228,1],["fetching INV_1.csv",229,0],["reading wms.invoices",229,25],["sending wms.invoices",255,20],["remembering wms.invoices",275,10],["sending what the last run left",286,6],["reading depot.orders",292,1],["fetching ORD_1.csv",294,0],["reading depot.orders",294,29],["sending depot.orders",323,27],["remembering depot.orders",351,16]]}','sync','b6a46f7892e23fe219cbea776f8e5acb9ef14884f9da412b4a43f3869d2debbe',1);
INSERT INTO "runs" VALUES(2,'nightly','2026-11-28','2026-11-29T16:53:24.568308+00:00','2026-11-29T16:53:24.859617+00:00',288,'incomplete',1,0,'{"depot.orders":{"balanced":true,"files":[],"input":"none","more_files":0,"newest_file":{"modified_at":"2026-05-28T20:26:40+00:00","name":"ORD_1.csv"},"open":{"in_doubt":0,"overdue":0,"pending":0,"rejected":0,"unverified":0,"waiting":0},"parts":{},"records":{"acknowledged":0,"carried_on":0,"carried_over":0,"created":0,"deleted":0,"delivered":0,"dropped":0,"gone":0,"handed_over":0,"ignored":0,"read":0,"rejected":0,"replaced":0,"suppressed":0,"unchanged":0,"updated":0},"rows":{"filtered":{},"in_records":0,"read":0,"rejected":0,"superseded":0}},"wms.customers":{"balanced":true,"files":[{"name":"CUST_2.csv","rows":1}],"input":"new","more_files":0,"newest_file":{"modified_at":"2026-05-28T20:26:40+00:00","name":"CUST_1.csv"},"open":{"in_doubt":0,"overdue":0,"pending":0,"rejected":0,"unverified":0,"waiting":0},"parts":{},"records":{"acknowledged":0,"carried_on":0,"carried_over":0,"created":0,"deleted":0,"delivered":1,"dropped":0,"gone":0,"handed_over":0,"ignored":0,"read":1,"rejected":0,"replaced":0,"suppressed":0,"unchanged":0,"updated":1},"rows":{"filtered":{},"in_records":1,"read":1,"rejected":0,"superseded":0}},"wms.invoices":{"balanced":true,"files":[{"name":"INV_2.csv","rows":1}],"input":"new","more_files":0,"newest_file":{"modified_at":"2026-05-28T20:26:40+00:00","name":"INV_1.csv"},"open":{"in_doubt":1,"overdue":0,"pending":0,"rejected":2,"unverified":0,"waiting":1},"parts":{},"records":{"acknowledged":0,"carried_on":2,"carried_over":2,"created":0,"deleted":0,"delivered":0,"dropped":0,"gone":0,"handed_over":0,"ignored":0,"read":1,"rejected":1,"replaced":0,"suppressed":0,"unchanged":0,"updated":0},"rows":{"filtered":{},"in_records":1,"read":1,"rejected":0,"superseded":0}},"wms.products":{"balanced":true,"files":[{"name":"PROD_2.csv","rows":4}],"input":"new","more_files":0,"newest_file":{"modified_at":"2026-05-28T20:26:40+00:00","name":"PROD_1.csv"},"open":{"in_doubt":0,"overdue":0,"pending":0,"rejected":0,"unverified":0,"waiting":0},"parts":{},"records":{"acknowledged":0,"carried_on":0,"carried_over":0,"created":0,"deleted":0,"delivered":0,"dropped":0,"gone":16,"handed_over":0,"ignored":16,"read":4,"rejected":0,"replaced":0,"suppressed":0,"unchanged":4,"updated":0},"rows":{"filtered":{},"in_records":4,"read":4,"rejected":0,"superseded":0}}}','{"apis":{},"samples":[[18,2000],[62,2000]],"steps":[["starting",0,17],["sending what the last run left",17,5],["reading wms.customers",23,1],["fetching CUST_2.csv",24,0],["reading wms.customers",24,20],["sending wms.customers",45,17],["remembering wms.customers",62,18],["reading wms.products",81,1],["fetching PROD_2.csv",82,0],["reading wms.products",83,43],["sending wms.products",126,2],["remembering wms.products",128,18],["reading wms.invoices",147,5],["fetching INV_2.csv",152,0],["reading wms.invoices",152,40],["sending wms.invoices",193,9],["remembering wms.invoices",203,25],["sending what the last run left",228,3],["reading depot.orders",232,37],["sending depot.orders",269,0],["remembering depot.orders",269,18]]}',NULL,'b6a46f7892e23fe219cbea776f8e5acb9ef14884f9da412b4a43f3869d2debbe',2);
CREATE TABLE scheduled_runs (
	job VARCHAR(64) NOT NULL, 
	due TEXT NOT NULL, 
	business_date VARCHAR(10) NOT NULL, 
	status VARCHAR(16) NOT NULL, 
	attempts INTEGER NOT NULL, 
	run_id INTEGER, 
	started_at TEXT, 
	finished_at TEXT, 
	note TEXT, 
	fence BIGINT, 
	PRIMARY KEY (job, due, business_date), 
	FOREIGN KEY(run_id) REFERENCES runs (id)
);
INSERT INTO "scheduled_runs" VALUES('nightly','2026-11-28T02:00:00.000000+00:00','2026-11-28','incomplete',1,2,'2026-11-29T16:53:24.562534+00:00','2026-11-29T16:53:24.859617+00:00',NULL,2);
CREATE TABLE sequences (
	target VARCHAR(64) NOT NULL, 
	last BIGINT NOT NULL, 
	PRIMARY KEY (target)
);
INSERT INTO "sequences" VALUES('depot',1);
CREATE TABLE snapshots (
	stream VARCHAR(192) NOT NULL, 
	content VARCHAR(64) NOT NULL, 
	row_count BIGINT NOT NULL, 
	present BIGINT, 
	finished_at TEXT NOT NULL, 
	PRIMARY KEY (stream, content)
);
INSERT INTO "snapshots" VALUES('wms.products','b69ccc369f3051d66c580ba2c2822d0d7b8923cc60c5d42dabdb8f67ad48599c',20,20,'2026-11-29T16:53:24.349898+00:00');
CREATE TABLE suspected_inputs (
	stream VARCHAR(192) NOT NULL, 
	digest VARCHAR(64) NOT NULL, 
	name TEXT NOT NULL, 
	killed INTEGER NOT NULL, 
	here INTEGER NOT NULL, 
	batches BIGINT NOT NULL, 
	at TEXT NOT NULL, 
	set_aside_at TEXT, 
	PRIMARY KEY (stream, digest)
);
CREATE TABLE taken_files (
	stream VARCHAR(192) NOT NULL, 
	content_hash VARCHAR(64) NOT NULL, 
	version VARCHAR(64) NOT NULL, 
	name TEXT NOT NULL, 
	size BIGINT NOT NULL, 
	modified_at TEXT NOT NULL, 
	stamp VARCHAR(32) NOT NULL, 
	status VARCHAR(16) NOT NULL, 
	accepted_at TEXT NOT NULL, 
	seen_at TEXT, 
	PRIMARY KEY (stream, content_hash, version)
);
INSERT INTO "taken_files" VALUES('wms.customers','a94fb20bbdc21c02940875aa6618b9f00a02aace1f253731d769b1805aa670d0','9e446447aa83f5c3f90a76758e36473d','CUST_1.csv',30,'2026-05-28T20:26:40.000000+00:00','2026-05-28T20:26:40+00:00','done','2026-11-29T16:53:24.164326+00:00',NULL);
INSERT INTO "taken_files" VALUES('wms.products','b69ccc369f3051d66c580ba2c2822d0d7b8923cc60c5d42dabdb8f67ad48599c','1beaafd000b060c1b404da2ba47088f3','PROD_1.csv',342,'2026-05-28T20:26:40.000000+00:00','2026-05-28T20:26:40+00:00','done','2026-11-29T16:53:24.254715+00:00',NULL);
INSERT INTO "taken_files" VALUES('wms.invoices','1bed47a7f82ae90dc934fc744fe01c16feeb010685db4857f444d6c954d6cae4','e7e0e377eef6cf44dfffddad05b79e66','INV_1.csv',63,'2026-05-28T20:26:40.000000+00:00','2026-05-28T20:26:40+00:00','done','2026-11-29T16:53:24.390762+00:00',NULL);
INSERT INTO "taken_files" VALUES('depot.orders','70308febd32825566f1595c43fc1d1f8d9e9eca9954933dd2ae7aaf3ea154a65','c5f1f30b706fa28f256fbd830ec2acde','ORD_1.csv',30,'2026-05-28T20:26:40.000000+00:00','2026-05-28T20:26:40+00:00','done','2026-11-29T16:53:24.458656+00:00',NULL);
INSERT INTO "taken_files" VALUES('wms.customers','293f36d07ef5ccffb85220fdc56dcd89889ca8763ad38db281f5e8421209716a','9e446447aa83f5c3f90a76758e36473d','CUST_2.csv',23,'2026-05-28T20:26:40.000000+00:00','2026-05-28T20:26:40+00:00','done','2026-11-29T16:53:24.615455+00:00',NULL);
INSERT INTO "taken_files" VALUES('wms.products','acc0bfc9e656e5bc67790c81a7d4da920f0206b29da56fd2768b60888a9cc677','1beaafd000b060c1b404da2ba47088f3','PROD_2.csv',81,'2026-05-28T20:26:40.000000+00:00','2026-05-28T20:26:40+00:00','accepted','2026-11-29T16:53:24.691297+00:00',NULL);
INSERT INTO "taken_files" VALUES('wms.invoices','a355f6e5d7a16ac958f99174c6d74d4ecf46f691df26a27486249fbcc285e686','e7e0e377eef6cf44dfffddad05b79e66','INV_2.csv',31,'2026-05-28T20:26:40.000000+00:00','2026-05-28T20:26:40+00:00','done','2026-11-29T16:53:24.759509+00:00',NULL);
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
	key_hash BLOB NOT NULL, 
	"key" TEXT NOT NULL, 
	PRIMARY KEY (target, resource, namespace, key_hash)
);
CREATE TABLE unverified (
	kind VARCHAR(8) NOT NULL, 
	name VARCHAR(192) NOT NULL, 
	PRIMARY KEY (kind, name)
);
CREATE TABLE waiting_records (
	stream VARCHAR(192) NOT NULL, 
	key_hash BLOB NOT NULL, 
	"key" TEXT NOT NULL, 
	record_fp BLOB, 
	position TEXT, 
	raw TEXT NOT NULL, 
	source TEXT NOT NULL, 
	line BIGINT NOT NULL, 
	waits_for TEXT NOT NULL, 
	run_id INTEGER NOT NULL, 
	since TEXT NOT NULL, 
	idle_under VARCHAR(64), 
	PRIMARY KEY (stream, key_hash), 
	FOREIGN KEY(run_id) REFERENCES runs (id)
);
INSERT INTO "waiting_records" VALUES('wms.invoices',X'475982AFBCAA3F3CE28911027FCF803F','4',X'00000000000000004C8DC907985C5B48',NULL,'{"columns":["INVNO","CUSTNO","SKU","QTY"],"lines":[5],"rows":[["4","C9","P1","1"]]}','INV_1.csv',5,'[{"key":"C9","namespace":"wms","resource":"customer"}]',1,'2026-11-29T16:53:24.394668+00:00','88f0ec5793856cd0ccd7ff75b45eecea1ea8d81be07f7298b7c5d72cead42bca');
CREATE TABLE wave_approvals (
	migration_id INTEGER NOT NULL, 
	wave VARCHAR(64) NOT NULL, 
	approved_at TEXT NOT NULL, 
	approved_by VARCHAR(128) NOT NULL, 
	open TEXT NOT NULL, 
	PRIMARY KEY (migration_id, wave), 
	FOREIGN KEY(migration_id) REFERENCES migrations (id)
);
CREATE TABLE webhooks (
	connection VARCHAR(64) NOT NULL, 
	delivery VARCHAR(512) NOT NULL, 
	received_at TEXT NOT NULL, 
	topic TEXT NOT NULL, 
	problem TEXT, 
	PRIMARY KEY (connection, delivery)
);
CREATE INDEX ix_webhooks_received_at ON webhooks (received_at);
CREATE INDEX ix_hints_stream_due_at ON hints (stream, due_at);
CREATE INDEX ix_audit_log_action ON audit_log (action, at, id);
CREATE INDEX ix_audit_log_subject ON audit_log (subject, at, id);
CREATE INDEX ix_audit_log_person ON audit_log (person, at, id);
CREATE INDEX ix_audit_log_at ON audit_log (at, id);
CREATE INDEX ix_bindings_run ON bindings (run_id);
CREATE INDEX ix_bindings_target_id ON bindings (target_id);
CREATE INDEX ix_bindings_unverified ON bindings (target, resource, namespace, key_hash) WHERE unverified IS 1;
CREATE INDEX ix_intents_key ON intents (target, resource, namespace, key_hash);
CREATE INDEX ix_intents_target_id ON intents (target_id);
CREATE INDEX ix_intents_status ON intents (status);
CREATE INDEX ix_intents_place ON intents (substr(source, 1, 200), line);
CREATE INDEX ix_intents_run ON intents (run_id);
CREATE INDEX ix_intents_batch ON intents (batch_id);
CREATE INDEX ix_batches_target_number ON batches (target, number);
CREATE INDEX ix_batches_target_name ON batches (target, name);
CREATE INDEX ix_dead_letters_place ON dead_letters (substr(source, 1, 200), line);
CREATE INDEX ix_dead_letters_listed ON dead_letters (status, stream, code, refused_at, key_hash, first_run_id, run_id);
CREATE INDEX ix_waiting_records_place ON waiting_records (substr(source, 1, 200), line);
COMMIT;
