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
INSERT INTO "attempts" VALUES(21,2,'2026-11-29T17:32:11.330457+00:00','delivered',201,'');
INSERT INTO "attempts" VALUES(13,2,'2026-11-29T17:32:11.330510+00:00','delivered',201,'');
INSERT INTO "attempts" VALUES(16,2,'2026-11-29T17:32:11.330529+00:00','delivered',201,'');
INSERT INTO "attempts" VALUES(17,2,'2026-11-29T17:32:11.330544+00:00','delivered',201,'');
INSERT INTO "attempts" VALUES(22,2,'2026-11-29T17:32:11.330558+00:00','delivered',201,'');
INSERT INTO "attempts" VALUES(14,2,'2026-11-29T17:32:11.330572+00:00','delivered',201,'');
INSERT INTO "attempts" VALUES(15,2,'2026-11-29T17:32:11.330585+00:00','delivered',201,'');
INSERT INTO "attempts" VALUES(24,1,'2026-11-29T17:32:11.380592+00:00','in_doubt',NULL,'request failed: the server closed the connection without a response');
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
INSERT INTO "audit_log" VALUES(1,'43bb585a65b443d192d425105d8ad65d','2026-11-29T17:32:10.149258+00:00','operator','command line, host','init','state','',NULL,'{"version":26}','done','');
INSERT INTO "audit_log" VALUES(2,'8b7af46f3c4a4a309e64ea0aa1415d9a','2026-11-29T17:32:10.173451+00:00','operator','command line, host','sync','run 1','',NULL,'{"command":"sync","delivered":25,"open":3,"requests":25,"status":"degraded"}','done','');
INSERT INTO "audit_log" VALUES(3,'3682683f58c44425b48c12095f8ab7d3','2026-11-29T17:32:11.505339+00:00','operator','command line, host','schedule --once','run 2','',NULL,'{"business_date":"2026-11-28","delivered":1,"job":"nightly","open":4,"requests":1,"status":"incomplete"}','refused','PROD_2.csv: 16 of 20 records are gone, more than gone.at_most_percent (5); none of them is removed: P6, P17, P8, P15, P13, ...; list them: crossdock plan wms.products --limit 16; to allow the removal, after a sync that ended with this message: crossdock approve wms.products 16');
INSERT INTO "audit_log" VALUES(4,'d515df5c49ee4f75bec18b63dccbda1b','2026-11-29T17:32:11.673866+00:00','operator','command line, host','records drop','record wms.invoices 5','','{"rejected":1}','{"dropped":1}','done','');
INSERT INTO "audit_log" VALUES(5,'b810d2c8952444b28565625a2cccc100','2026-11-29T17:32:11.701858+00:00','operator','command line, host','jobs pause','job nightly','','"active"','"paused"','done','');
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
INSERT INTO "batches" VALUES(1,1,'depot','orders',1,'a544bf92f0ad4cfdb5238d6cbba5a3ca','ord_000001.csv','/srv/project depot as .{name}.part',X'6F726465725F69642C736B752C7175616E746974790A4F312C50312C310A4F322C50322C320A','0085c5639617972469374fab4ec0b0550df8500c25be62401a514d4d727a0aaf',2,'2026-11-29T17:32:11.412450+00:00','2026-11-29T17:32:11.428926+00:00',NULL,'');
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
INSERT INTO "bindings" VALUES('platform','customer','wms',X'2CB29BD862760F503B7D0D206099CA33','C1','cus_1a2285d4260c4af88afbaa7c6',X'00000000000000005C9CF2B4E8511924','whole',NULL,'{"externalId":"wms:C1","name":"Vogel"}','"2"','2026-11-29T17:32:10.208295Z',1,1,'2026-11-29T17:32:10.215440+00:00',NULL,NULL);
INSERT INTO "bindings" VALUES('platform','customer','wms',X'14C38134BD3CBA520DB0735024AE3545','C2','cus_1a2285d425f40675615ddef14',X'000000000000000075F317E415FD8E11','whole',NULL,'{"externalId":"wms:C2","name":"Drossel"}','"25"','2026-11-29T17:32:11.536610Z',2,2,'2026-11-29T17:32:11.538608+00:00',NULL,NULL);
INSERT INTO "bindings" VALUES('platform','product','wms',X'74F029DAF01A5DC24FCA212E7D70DC7C','P2','prd_1a2285d42ae44e795eafd992b',X'0000000000000000696ECA6F6959C493','whole',NULL,'{"active":true,"externalId":"wms:P2","name":"Bolt 2","sku":"P2","unitPrice":1.5}','"3"','2026-11-29T17:32:10.286675Z',1,1,'2026-11-29T17:32:10.300315+00:00',NULL,NULL);
INSERT INTO "bindings" VALUES('platform','product','wms',X'F83D4CE41CC45A9F8DDE78FFFF48ADF8','P1','prd_1a2285d42aef5ebf3df004e69',X'0000000000000000D7AFA4BC2A96BD73','whole',NULL,'{"active":true,"externalId":"wms:P1","name":"Bolt 1","sku":"P1","unitPrice":1.5}','"4"','2026-11-29T17:32:10.286933Z',1,1,'2026-11-29T17:32:10.300315+00:00',NULL,NULL);
INSERT INTO "bindings" VALUES('platform','product','wms',X'F36C7CB09181C9863F32C69EEFAF5956','P0','prd_1a2285d42b7640df1b1378235',X'0000000000000000E24E767716018A3A','whole',NULL,'{"active":true,"externalId":"wms:P0","name":"Bolt 0","sku":"P0","unitPrice":1.5}','"5"','2026-11-29T17:32:10.295258Z',1,1,'2026-11-29T17:32:10.300315+00:00',NULL,NULL);
INSERT INTO "bindings" VALUES('platform','product','wms',X'0029E527DC3F478A7F3CB354E6A40C5E','P3','prd_1a2285d42b765769b2c275806',X'0000000000000000FD26C8BA079044B1','whole',NULL,'{"active":true,"externalId":"wms:P3","name":"Bolt 3","sku":"P3","unitPrice":1.5}','"6"','2026-11-29T17:32:10.295386Z',1,1,'2026-11-29T17:32:10.300315+00:00',NULL,NULL);
INSERT INTO "bindings" VALUES('platform','product','wms',X'92CB61DF796CDE81DDA20856533A3990','P5','prd_1a2285d42b7391a77db4deffd',X'00000000000000008E977C16B60A9AF5','whole',NULL,'{"active":true,"externalId":"wms:P5","name":"Bolt 5","sku":"P5","unitPrice":1.5}','"7"','2026-11-29T17:32:10.295448Z',1,1,'2026-11-29T17:32:10.309646+00:00',NULL,NULL);
INSERT INTO "bindings" VALUES('platform','product','wms',X'3B77257D395BE609CFFE1B79567F6BB2','P6','prd_1a2285d42b9e95c3a9264ac3d',X'00000000000000006A1B66D03FC170B2','whole',NULL,'{"active":true,"externalId":"wms:P6","name":"Bolt 6","sku":"P6","unitPrice":1.5}','"9"','2026-11-29T17:32:10.297087Z',1,1,'2026-11-29T17:32:10.309646+00:00',NULL,NULL);
INSERT INTO "bindings" VALUES('platform','product','wms',X'965FA03BB800594EA23BB4AFF887506E','P4','prd_1a2285d42b926149ea17984bc',X'0000000000000000F614977F07D1FB27','whole',NULL,'{"active":true,"externalId":"wms:P4","name":"Bolt 4","sku":"P4","unitPrice":1.5}','"8"','2026-11-29T17:32:10.297004Z',1,1,'2026-11-29T17:32:10.309646+00:00',NULL,NULL);
INSERT INTO "bindings" VALUES('platform','product','wms',X'D2BDA13DB2155C446BABA9C48356AC25','P7','prd_1a2285d42b9b4c876780e3025',X'0000000000000000415340FE2AEA3058','whole',NULL,'{"active":true,"externalId":"wms:P7","name":"Bolt 7","sku":"P7","unitPrice":1.5}','"10"','2026-11-29T17:32:10.297498Z',1,1,'2026-11-29T17:32:10.309646+00:00',NULL,NULL);
INSERT INTO "bindings" VALUES('platform','product','wms',X'714ABCDADB722F9F91162E7B573B4C9C','P15','prd_1a2285d42c276cd421760bbc3',X'000000000000000098FA0EDB188296F1','whole',NULL,'{"active":true,"externalId":"wms:P15","name":"Bolt 15","sku":"P15","unitPrice":1.5}','"14"','2026-11-29T17:32:10.306157Z',1,1,'2026-11-29T17:32:10.309646+00:00',NULL,NULL);
INSERT INTO "bindings" VALUES('platform','product','wms',X'612510008D3BE12C54909CAF8013C1E5','P8','prd_1a2285d42c02ef0f10f5d1724',X'0000000000000000308520A2EFAC153A','whole',NULL,'{"active":true,"externalId":"wms:P8","name":"Bolt 8","sku":"P8","unitPrice":1.5}','"11"','2026-11-29T17:32:10.304773Z',1,1,'2026-11-29T17:32:10.309646+00:00',NULL,NULL);
INSERT INTO "bindings" VALUES('platform','product','wms',X'53F0A6DB3FF64B8E5375EA5D4B2F6343','P17','prd_1a2285d42c29c876ab91a5659',X'00000000000000009D0E12EA9AD2CB5F','whole',NULL,'{"active":true,"externalId":"wms:P17","name":"Bolt 17","sku":"P17","unitPrice":1.5}','"15"','2026-11-29T17:32:10.306186Z',1,1,'2026-11-29T17:32:10.309646+00:00',NULL,NULL);
INSERT INTO "bindings" VALUES('platform','product','wms',X'87EE1C0397A4928E3F37E15B915268BB','P16','prd_1a2285d42c2705211b4bbcf40',X'00000000000000006B63218A1E66DB5B','whole',NULL,'{"active":true,"externalId":"wms:P16","name":"Bolt 16","sku":"P16","unitPrice":1.5}','"12"','2026-11-29T17:32:10.306040Z',1,1,'2026-11-29T17:32:10.309646+00:00',NULL,NULL);
INSERT INTO "bindings" VALUES('platform','product','wms',X'F0C04E64A1F600D5843ED9FFBB6A137A','P9','prd_1a2285d42c2579207a64f2daf',X'000000000000000071D7116C30A30999','whole',NULL,'{"active":true,"externalId":"wms:P9","name":"Bolt 9","sku":"P9","unitPrice":1.5}','"13"','2026-11-29T17:32:10.306122Z',1,1,'2026-11-29T17:32:10.309646+00:00',NULL,NULL);
INSERT INTO "bindings" VALUES('platform','product','wms',X'94BF1BBD865A661E9BAC1BD899AC7F02','P18','prd_1a2285d46baaff41878ebade7',X'0000000000000000AC129130D8FC4016','whole',NULL,'{"active":true,"externalId":"wms:P18","name":"Bolt 18","sku":"P18","unitPrice":1.5}','"17"','2026-11-29T17:32:11.322840Z',1,1,'2026-11-29T17:32:11.330614+00:00',NULL,NULL);
INSERT INTO "bindings" VALUES('platform','product','wms',X'A3B3932B0D006AC18833D9F54EFCD621','P10','prd_1a2285d46baf7dfa5880d66c5',X'00000000000000008A4FB80985F0578B','whole',NULL,'{"active":true,"externalId":"wms:P10","name":"Bolt 10","sku":"P10","unitPrice":1.5}','"16"','2026-11-29T17:32:11.322645Z',1,1,'2026-11-29T17:32:11.330614+00:00',NULL,NULL);
INSERT INTO "bindings" VALUES('platform','product','wms',X'83D2F5A66BEFEA6477BCC7E413232C21','P13','prd_1a2285d46ba559da9a21839c0',X'0000000000000000E8733FFEBC5CCFFD','whole',NULL,'{"active":true,"externalId":"wms:P13","name":"Bolt 13","sku":"P13","unitPrice":1.5}','"20"','2026-11-29T17:32:11.322944Z',1,1,'2026-11-29T17:32:11.330614+00:00',NULL,NULL);
INSERT INTO "bindings" VALUES('platform','product','wms',X'A39C7BC89864CFB5235E0E33F139E6AC','P14','prd_1a2285d46bad8ffa35fd02f94',X'0000000000000000896361C929199913','whole',NULL,'{"active":true,"externalId":"wms:P14","name":"Bolt 14","sku":"P14","unitPrice":1.5}','"19"','2026-11-29T17:32:11.322914Z',1,1,'2026-11-29T17:32:11.330614+00:00',NULL,NULL);
INSERT INTO "bindings" VALUES('platform','product','wms',X'8FDC5B13064E44F84CBCD61493E78294','P19','prd_1a2285d46ba5282a7bddd755b',X'000000000000000075BFAFDAC4B8CA16','whole',NULL,'{"active":true,"externalId":"wms:P19","name":"Bolt 19","sku":"P19","unitPrice":1.5}','"18"','2026-11-29T17:32:11.322883Z',1,1,'2026-11-29T17:32:11.330614+00:00',NULL,NULL);
INSERT INTO "bindings" VALUES('platform','product','wms',X'8BCE931B09242D29CD93B5A3E50D276D','P11','prd_1a2285d46bece6f91ddb5cd10',X'0000000000000000B791A53D911F9884','whole',NULL,'{"active":true,"externalId":"wms:P11","name":"Bolt 11","sku":"P11","unitPrice":1.5}','"21"','2026-11-29T17:32:11.326908Z',1,1,'2026-11-29T17:32:11.330614+00:00',NULL,NULL);
INSERT INTO "bindings" VALUES('platform','product','wms',X'9ABD52214E42C69BBF81CA150A982224','P12','prd_1a2285d46bf3b3ab0e417a7f6',X'00000000000000003F5715615FF6A510','whole',NULL,'{"active":true,"externalId":"wms:P12","name":"Bolt 12","sku":"P12","unitPrice":1.5}','"22"','2026-11-29T17:32:11.327870Z',1,1,'2026-11-29T17:32:11.330614+00:00',NULL,NULL);
INSERT INTO "bindings" VALUES('platform','invoice','wms',X'DF3CE784D856334D65CD25028F98F158','1','inv_1a2285d46ec6b984e6c6ff463',X'0000000000000000F3981414256DDFCA','whole',NULL,'{"currency":"EUR","customerId":"cus_1a2285d4260c4af88afbaa7c6","items":[{"productId":"prd_1a2285d42aef5ebf3df004e69","quantity":2,"unitPrice":2}]}','"23"','2026-11-29T17:32:11.372806Z',1,1,'2026-11-29T17:32:11.380660+00:00',NULL,NULL);
INSERT INTO "bindings" VALUES('depot','orders','depot',X'AE3CA2DA179F19931A1E5C9610EADAF3','O1','O1',X'0000000000000000BC3DA5BAB6491FB9','whole',NULL,'{"order_id":"O1","quantity":"1","sku":"P1"}',NULL,NULL,1,1,'2026-11-29T17:32:11.428926+00:00',NULL,NULL);
INSERT INTO "bindings" VALUES('depot','orders','depot',X'769CAB44F982EB6A9D362E723CC19BA2','O2','O2',X'00000000000000006C5699C9B9CE154A','whole',NULL,'{"order_id":"O2","quantity":"2","sku":"P2"}',NULL,NULL,1,1,'2026-11-29T17:32:11.428926+00:00',NULL,NULL);
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
INSERT INTO "buckets" VALUES('platform',1.66666666666666657197e+02,2000,1.79597353153081750872e+09,1.79597353153681755068e+09,0.0,32,0,0,'{"rate_per_s": 166.66666666666666, "rate_from": "documented", "burst": 2000, "burst_from": "reported", "agreed": 0, "most_at_once": 1000000000}');
INSERT INTO "buckets" VALUES('depot',1000.0,1000,1.7959735314249157906e+09,1.79597353142591571804e+09,0.0,2,0,0,'{"rate_per_s": 1000.0, "rate_from": "set", "burst": 1000, "burst_from": "set", "agreed": 0, "most_per_s": 1000.0, "most_at_once": 1000}');
CREATE TABLE configs (
	digest VARCHAR(64) NOT NULL, 
	content TEXT NOT NULL, 
	PRIMARY KEY (digest)
);
INSERT INTO "configs" VALUES('fee1f5459e33e07b457281513bbd53b5fc46ed7c0074ecfe347aaa3939f8b746','{"connections":{"depot":{"kind":"folder_warehouse","path":"/srv/project","settle_s":0,"sources":{},"streams":{"orders":{"adopt":"never","changes":{"at_most":100,"at_most_percent":30},"columns":{},"conflicts":"overwrite","contributes":[],"duplicates":"refuse","empty":"refuse","enabled":true,"fewer_rows_percent":20,"files":"out/ORD_*","fingerprint":"xxh3_64","format":{"delimiter":";","encoding":"utf-8","header":true,"kind":"delimited","quote":"\""},"gone":{"at_most":100,"at_most_percent":5,"referenced":"keep","rows_within_percent":20},"join":{},"key":["ORDER"],"lookup":{},"map":{"quantity":"QTY","sku":"SKU"},"mapping_failed":{"at_most":20,"at_most_percent":5},"matches":"key","mode":"append","on_gone":"nothing","personal":[],"skip":{},"to":"depot.orders","trim_keys":true}},"target":{"first_number":1,"resources":{"orders":{"content":{"bom":false,"column_names":true,"decimal_mark":".","delimiter":",","encoding":"utf-8","header":[],"kind":"delimited","line_end":"lf","quote":"\"","quoting":"minimal","rows":[{"columns":{"order_id":{"cut":false,"false_text":"false","template":"{external_id}","true_text":"true"},"quantity":{"cut":false,"false_text":"false","template":"{quantity}","true_text":"true"},"sku":{"cut":false,"false_text":"false","template":"{sku}","true_text":"true"}},"named":"line"}],"trailer":[]},"copies":false,"file":"ord_{number:6}.csv","folder":"depot","if_missing":"in_doubt","members":{"quantity":{"members":{},"personal":false,"required":false,"type":"text"},"sku":{"members":{},"personal":false,"required":false,"type":"text"}},"name":"order_id","name_form":"{key}","name_max_length":64,"records_per_file":1000,"taken":[],"temporary":".{name}.part"}},"retry":{"attempts":6,"base_s":0.5,"cap_s":60,"give_up_after_s":300},"timezone":"UTC"}},"wms":{"kind":"folder_warehouse","path":"/srv/project/out","settle_s":0,"sources":{},"streams":{"customers":{"adopt":"never","changes":{"at_most":100,"at_most_percent":30},"columns":{},"conflicts":"overwrite","contributes":[],"duplicates":"refuse","empty":"refuse","enabled":true,"fewer_rows_percent":20,"files":"CUST_*","fingerprint":"xxh3_64","format":{"delimiter":";","encoding":"utf-8","header":true,"kind":"delimited","quote":"\""},"gone":{"at_most":100,"at_most_percent":5,"referenced":"keep","rows_within_percent":20},"join":{},"key":["CUSTNO"],"lookup":{},"map":{"name":"NAME"},"mapping_failed":{"at_most":20,"at_most_percent":5},"matches":"key","mode":"append","on_gone":"nothing","personal":[],"resource":"customer","skip":{},"to":"platform","trim_keys":true},"invoices":{"adopt":"never","changes":{"at_most":100,"at_most_percent":30},"columns":{},"conflicts":"overwrite","contributes":[],"duplicates":"refuse","empty":"refuse","enabled":true,"fewer_rows_percent":20,"files":"INV_*","fingerprint":"xxh3_64","format":{"delimiter":";","encoding":"utf-8","header":true,"kind":"delimited","quote":"\""},"gone":{"at_most":100,"at_most_percent":5,"referenced":"keep","rows_within_percent":20},"group_by":["INVNO"],"join":{},"key":["INVNO"],"lookup":{},"map":{"currency":{"const":"EUR"},"customerId":{"key":"CUSTNO","ref":"customer"},"items":{"each":{"productId":{"key":"SKU","ref":"product"},"quantity":{"as":"decimal","decimal_mark":".","false_text":"false","from":"QTY","true_text":"true"},"unitPrice":{"const":2}}}},"mapping_failed":{"at_most":20,"at_most_percent":5},"matches":"key","mode":"append","on_gone":"nothing","personal":[],"resource":"invoice","skip":{},"to":"platform","trim_keys":true},"products":{"adopt":"never","changes":{"at_most":100,"at_most_percent":30},"columns":{},"conflicts":"overwrite","contributes":[],"duplicates":"refuse","empty":"refuse","enabled":true,"fewer_rows_percent":20,"files":"PROD_*","fingerprint":"xxh3_64","format":{"delimiter":";","encoding":"utf-8","header":true,"kind":"delimited","quote":"\"","trailer":{"count":1,"count_includes":0,"prefix":"TRL"}},"gone":{"at_most":100,"at_most_percent":5,"referenced":"keep","rows_within_percent":20},"join":{},"key":["SKU"],"lookup":{},"map":{"name":"NAME","sku":"SKU","unitPrice":{"as":"decimal","decimal_mark":".","false_text":"false","from":"PRICE","true_text":"true"}},"mapping_failed":{"at_most":20,"at_most_percent":5},"matches":"key","mode":"snapshot","on_gone":"delete","personal":[],"resource":"product","skip":{},"to":"platform","trim_keys":true}}}},"jobs":{"nightly":{"after":[],"overlap":"queue","schedule":{"at":["02:00"],"blackouts":[],"business_date":"same_day","catch_up":"latest","catch_up_within":"7d","days":["mon","tue","wed","thu","fri","sat","sun"],"holidays":[],"on_holiday":"skip","time_zone":"UTC"},"streams":["wms","depot"]}},"platform":{"auth":{"kind":"api_key","token":"env:CROSSDOCK_API_KEY"},"base_url":"http://platform.example","conditional_updates":true,"http":{"connect_timeout_s":5,"max_response_bytes":8388608,"read_timeout_s":30,"total_timeout_s":60,"trust_env":false},"idempotency":{"enabled":false,"header":"Idempotency-Key","kept_s":86400,"quoted":true},"in_flight":100,"lookup":{"enabled":true,"parameter":"externalId","settle_s":60},"max_clock_skew_s":300,"paths":{},"rate":{},"retry":{"attempts":2,"base_s":0.01,"cap_s":60,"give_up_after_s":0.1},"scope_names":{},"tenant":"sandbox","tenant_header":"x-tenant-slug"},"retention":"90d","spool":"/srv/project/state.db.spool","state":"sqlite:////srv/project/state.db"}');
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
INSERT INTO "crossdock_meta" VALUES('version','26');
INSERT INTO "crossdock_meta" VALUES('base_url','http://platform.example');
INSERT INTO "crossdock_meta" VALUES('tenant','sandbox');
INSERT INTO "crossdock_meta" VALUES('id','adccfa7c214b4f8598b1e75b29341fef');
INSERT INTO "crossdock_meta" VALUES('retention_applied_at','2026-11-29T17:32:11.635185+00:00');
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
INSERT INTO "dead_letters" VALUES('wms.invoices',X'CB358FCEE0DFDE56FB95A7322F5DA314','2',X'00000000000000008D17EF93F364A733',NULL,'{"columns":["INVNO","CUSTNO","SKU","QTY"],"lines":[3],"rows":[["2","C2","P1","x"]]}','INV_1.csv',3,'whole','mapping','bad_value','QTY','is not a number with decimal mark ''.'', no thousands marks and a leading sign',NULL,'rejected',1,1,1,'2026-11-29T17:32:11.363638+00:00');
INSERT INTO "dead_letters" VALUES('wms.invoices',X'562591323B675829DEDB980100C87E72','5',X'0000000000000000805175291899D2BF',NULL,'{"columns":["INVNO","CUSTNO","SKU","QTY"],"lines":[2],"rows":[["5","C2","P3","y"]]}','INV_2.csv',2,'whole','mapping','bad_value','QTY','is not a number with decimal mark ''.'', no thousands marks and a leading sign',NULL,'dropped',1,2,2,'2026-11-29T17:32:11.596762+00:00');
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
INSERT INTO "intents" VALUES(1,1,1,'wms.customers','platform','customer','wms',X'2CB29BD862760F503B7D0D206099CA33','C1',X'00000000000000005C9CF2B4E8511924',NULL,'{}','CUST_1.csv',2,'create',1,'42154786cd6e1f8bef6ac53b9d709be7366e41f4','POST','/api/v1/sales/customers',X'7B2265787465726E616C4964223A22776D733A4331222C226E616D65223A22566F67656C227D',NULL,NULL,'whole',NULL,'delivered',1,'2026-11-29T17:32:10.200179+00:00','2026-11-29T17:32:10.200179+00:00','2026-11-29T17:32:10.215440+00:00',201,'cus_1a2285d4260c4af88afbaa7c6',0,NULL,NULL,NULL,NULL);
INSERT INTO "intents" VALUES(2,1,1,'wms.customers','platform','customer','wms',X'14C38134BD3CBA520DB0735024AE3545','C2',X'000000000000000039A8A18F7619E537',NULL,'{}','CUST_1.csv',3,'create',1,'3ecf4523147beb35db5f23abe42b93ea96917886','POST','/api/v1/sales/customers',X'7B2265787465726E616C4964223A22776D733A4332222C226E616D65223A22416D73656C227D',NULL,NULL,'whole',NULL,'delivered',1,'2026-11-29T17:32:10.200179+00:00','2026-11-29T17:32:10.200179+00:00','2026-11-29T17:32:10.215440+00:00',201,'cus_1a2285d425f40675615ddef14',0,NULL,NULL,NULL,NULL);
INSERT INTO "intents" VALUES(3,1,1,'wms.products','platform','product','wms',X'F36C7CB09181C9863F32C69EEFAF5956','P0',X'0000000000000000E24E767716018A3A',NULL,'{}','PROD_1.csv',2,'create',1,'3944c855511e1eb8d5471b453a038466b4dd3d76','POST','/api/v1/catalog/products',X'7B22616374697665223A747275652C2265787465726E616C4964223A22776D733A5030222C226E616D65223A22426F6C742030222C22736B75223A225030222C22756E69745072696365223A312E357D',NULL,NULL,'whole',NULL,'delivered',1,'2026-11-29T17:32:10.239961+00:00','2026-11-29T17:32:10.239961+00:00','2026-11-29T17:32:10.300315+00:00',201,'prd_1a2285d42b7640df1b1378235',0,NULL,NULL,NULL,NULL);
INSERT INTO "intents" VALUES(4,1,1,'wms.products','platform','product','wms',X'F83D4CE41CC45A9F8DDE78FFFF48ADF8','P1',X'0000000000000000D7AFA4BC2A96BD73',NULL,'{}','PROD_1.csv',3,'create',1,'5b133b5b9ba6e6ed14676f64aadaeef4cd367f93','POST','/api/v1/catalog/products',X'7B22616374697665223A747275652C2265787465726E616C4964223A22776D733A5031222C226E616D65223A22426F6C742031222C22736B75223A225031222C22756E69745072696365223A312E357D',NULL,NULL,'whole',NULL,'delivered',1,'2026-11-29T17:32:10.239961+00:00','2026-11-29T17:32:10.239961+00:00','2026-11-29T17:32:10.300315+00:00',201,'prd_1a2285d42aef5ebf3df004e69',0,NULL,NULL,NULL,NULL);
INSERT INTO "intents" VALUES(5,1,1,'wms.products','platform','product','wms',X'74F029DAF01A5DC24FCA212E7D70DC7C','P2',X'0000000000000000696ECA6F6959C493',NULL,'{}','PROD_1.csv',4,'create',1,'8b9a795b727dd68650baab0b7e84a5c1967de35d','POST','/api/v1/catalog/products',X'7B22616374697665223A747275652C2265787465726E616C4964223A22776D733A5032222C226E616D65223A22426F6C742032222C22736B75223A225032222C22756E69745072696365223A312E357D',NULL,NULL,'whole',NULL,'delivered',1,'2026-11-29T17:32:10.239961+00:00','2026-11-29T17:32:10.239961+00:00','2026-11-29T17:32:10.300315+00:00',201,'prd_1a2285d42ae44e795eafd992b',0,NULL,NULL,NULL,NULL);
INSERT INTO "intents" VALUES(6,1,1,'wms.products','platform','product','wms',X'0029E527DC3F478A7F3CB354E6A40C5E','P3',X'0000000000000000FD26C8BA079044B1',NULL,'{}','PROD_1.csv',5,'create',1,'a18513a439fecd8a89439ac6f3508d6441560fe1','POST','/api/v1/catalog/products',X'7B22616374697665223A747275652C2265787465726E616C4964223A22776D733A5033222C226E616D65223A22426F6C742033222C22736B75223A225033222C22756E69745072696365223A312E357D',NULL,NULL,'whole',NULL,'delivered',1,'2026-11-29T17:32:10.239961+00:00','2026-11-29T17:32:10.239961+00:00','2026-11-29T17:32:10.300315+00:00',201,'prd_1a2285d42b765769b2c275806',0,NULL,NULL,NULL,NULL);
INSERT INTO "intents" VALUES(7,1,1,'wms.products','platform','product','wms',X'965FA03BB800594EA23BB4AFF887506E','P4',X'0000000000000000F614977F07D1FB27',NULL,'{}','PROD_1.csv',6,'create',1,'a5ebc0c0b3eaac0aacecee2b5a429ea149f01d5b','POST','/api/v1/catalog/products',X'7B22616374697665223A747275652C2265787465726E616C4964223A22776D733A5034222C226E616D65223A22426F6C742034222C22736B75223A225034222C22756E69745072696365223A312E357D',NULL,NULL,'whole',NULL,'delivered',1,'2026-11-29T17:32:10.239961+00:00','2026-11-29T17:32:10.239961+00:00','2026-11-29T17:32:10.309646+00:00',201,'prd_1a2285d42b926149ea17984bc',0,NULL,NULL,NULL,NULL);
INSERT INTO "intents" VALUES(8,1,1,'wms.products','platform','product','wms',X'92CB61DF796CDE81DDA20856533A3990','P5',X'00000000000000008E977C16B60A9AF5',NULL,'{}','PROD_1.csv',7,'create',1,'512f90cbdf0ab53fd3d65df372471b8ccb6fe080','POST','/api/v1/catalog/products',X'7B22616374697665223A747275652C2265787465726E616C4964223A22776D733A5035222C226E616D65223A22426F6C742035222C22736B75223A225035222C22756E69745072696365223A312E357D',NULL,NULL,'whole',NULL,'delivered',1,'2026-11-29T17:32:10.239961+00:00','2026-11-29T17:32:10.239961+00:00','2026-11-29T17:32:10.309646+00:00',201,'prd_1a2285d42b7391a77db4deffd',0,NULL,NULL,NULL,NULL);
INSERT INTO "intents" VALUES(9,1,1,'wms.products','platform','product','wms',X'3B77257D395BE609CFFE1B79567F6BB2','P6',X'00000000000000006A1B66D03FC170B2',NULL,'{}','PROD_1.csv',8,'create',1,'2c1404c737c9da71ba30d784403854734a0acf12','POST','/api/v1/catalog/products',X'7B22616374697665223A747275652C2265787465726E616C4964223A22776D733A5036222C226E616D65223A22426F6C742036222C22736B75223A225036222C22756E69745072696365223A312E357D',NULL,NULL,'whole',NULL,'delivered',1,'2026-11-29T17:32:10.239961+00:00','2026-11-29T17:32:10.239961+00:00','2026-11-29T17:32:10.309646+00:00',201,'prd_1a2285d42b9e95c3a9264ac3d',0,NULL,NULL,NULL,NULL);
INSERT INTO "intents" VALUES(10,1,1,'wms.products','platform','product','wms',X'D2BDA13DB2155C446BABA9C48356AC25','P7',X'0000000000000000415340FE2AEA3058',NULL,'{}','PROD_1.csv',9,'create',1,'c8f85d6416c0f63142f8e03b12ed4cfd98a8d1aa','POST','/api/v1/catalog/products',X'7B22616374697665223A747275652C2265787465726E616C4964223A22776D733A5037222C226E616D65223A22426F6C742037222C22736B75223A225037222C22756E69745072696365223A312E357D',NULL,NULL,'whole',NULL,'delivered',1,'2026-11-29T17:32:10.239961+00:00','2026-11-29T17:32:10.239961+00:00','2026-11-29T17:32:10.309646+00:00',201,'prd_1a2285d42b9b4c876780e3025',0,NULL,NULL,NULL,NULL);
INSERT INTO "intents" VALUES(11,1,1,'wms.products','platform','product','wms',X'612510008D3BE12C54909CAF8013C1E5','P8',X'0000000000000000308520A2EFAC153A',NULL,'{}','PROD_1.csv',10,'create',1,'d1eac6ad3307a9488cff1a90b3913d20087b6a5b','POST','/api/v1/catalog/products',X'7B22616374697665223A747275652C2265787465726E616C4964223A22776D733A5038222C226E616D65223A22426F6C742038222C22736B75223A225038222C22756E69745072696365223A312E357D',NULL,NULL,'whole',NULL,'delivered',1,'2026-11-29T17:32:10.239961+00:00','2026-11-29T17:32:10.239961+00:00','2026-11-29T17:32:10.309646+00:00',201,'prd_1a2285d42c02ef0f10f5d1724',0,NULL,NULL,NULL,NULL);
INSERT INTO "intents" VALUES(12,1,1,'wms.products','platform','product','wms',X'F0C04E64A1F600D5843ED9FFBB6A137A','P9',X'000000000000000071D7116C30A30999',NULL,'{}','PROD_1.csv',11,'create',1,'908accfda1843370345781a8bdea965a15e84210','POST','/api/v1/catalog/products',X'7B22616374697665223A747275652C2265787465726E616C4964223A22776D733A5039222C226E616D65223A22426F6C742039222C22736B75223A225039222C22756E69745072696365223A312E357D',NULL,NULL,'whole',NULL,'delivered',1,'2026-11-29T17:32:10.239961+00:00','2026-11-29T17:32:10.239961+00:00','2026-11-29T17:32:10.309646+00:00',201,'prd_1a2285d42c2579207a64f2daf',0,NULL,NULL,NULL,NULL);
INSERT INTO "intents" VALUES(13,1,1,'wms.products','platform','product','wms',X'A3B3932B0D006AC18833D9F54EFCD621','P10',X'00000000000000008A4FB80985F0578B',NULL,'{}','PROD_1.csv',12,'create',1,'b5e31ccfd41a2bef53698c5ddd71c5cbd26225d1','POST','/api/v1/catalog/products',X'7B22616374697665223A747275652C2265787465726E616C4964223A22776D733A503130222C226E616D65223A22426F6C74203130222C22736B75223A22503130222C22756E69745072696365223A312E357D',NULL,NULL,'whole',NULL,'delivered',2,'2026-11-29T17:32:10.239961+00:00','2026-11-29T17:32:11.317058+00:00','2026-11-29T17:32:11.330614+00:00',201,'prd_1a2285d46baf7dfa5880d66c5',0,NULL,NULL,NULL,NULL);
INSERT INTO "intents" VALUES(14,1,1,'wms.products','platform','product','wms',X'8BCE931B09242D29CD93B5A3E50D276D','P11',X'0000000000000000B791A53D911F9884',NULL,'{}','PROD_1.csv',13,'create',1,'764570bf2a8b5a6f8ef9f27e265a681360a62c92','POST','/api/v1/catalog/products',X'7B22616374697665223A747275652C2265787465726E616C4964223A22776D733A503131222C226E616D65223A22426F6C74203131222C22736B75223A22503131222C22756E69745072696365223A312E357D',NULL,NULL,'whole',NULL,'delivered',2,'2026-11-29T17:32:10.239961+00:00','2026-11-29T17:32:11.317058+00:00','2026-11-29T17:32:11.330614+00:00',201,'prd_1a2285d46bece6f91ddb5cd10',0,NULL,NULL,NULL,NULL);
INSERT INTO "intents" VALUES(15,1,1,'wms.products','platform','product','wms',X'9ABD52214E42C69BBF81CA150A982224','P12',X'00000000000000003F5715615FF6A510',NULL,'{}','PROD_1.csv',14,'create',1,'499909fab8fe6a5ddb72debd2dbc6a3c03254708','POST','/api/v1/catalog/products',X'7B22616374697665223A747275652C2265787465726E616C4964223A22776D733A503132222C226E616D65223A22426F6C74203132222C22736B75223A22503132222C22756E69745072696365223A312E357D',NULL,NULL,'whole',NULL,'delivered',2,'2026-11-29T17:32:10.239961+00:00','2026-11-29T17:32:11.317058+00:00','2026-11-29T17:32:11.330614+00:00',201,'prd_1a2285d46bf3b3ab0e417a7f6',0,NULL,NULL,NULL,NULL);
INSERT INTO "intents" VALUES(16,1,1,'wms.products','platform','product','wms',X'83D2F5A66BEFEA6477BCC7E413232C21','P13',X'0000000000000000E8733FFEBC5CCFFD',NULL,'{}','PROD_1.csv',15,'create',1,'c2a9f922a7797baf9a70699283eecfbc347f63e2','POST','/api/v1/catalog/products',X'7B22616374697665223A747275652C2265787465726E616C4964223A22776D733A503133222C226E616D65223A22426F6C74203133222C22736B75223A22503133222C22756E69745072696365223A312E357D',NULL,NULL,'whole',NULL,'delivered',2,'2026-11-29T17:32:10.239961+00:00','2026-11-29T17:32:11.317058+00:00','2026-11-29T17:32:11.330614+00:00',201,'prd_1a2285d46ba559da9a21839c0',0,NULL,NULL,NULL,NULL);
INSERT INTO "intents" VALUES(17,1,1,'wms.products','platform','product','wms',X'A39C7BC89864CFB5235E0E33F139E6AC','P14',X'0000000000000000896361C929199913',NULL,'{}','PROD_1.csv',16,'create',1,'78c68318f83ddd2389fa24e679af16759891e55f','POST','/api/v1/catalog/products',X'7B22616374697665223A747275652C2265787465726E616C4964223A22776D733A503134222C226E616D65223A22426F6C74203134222C22736B75223A22503134222C22756E69745072696365223A312E357D',NULL,NULL,'whole',NULL,'delivered',2,'2026-11-29T17:32:10.239961+00:00','2026-11-29T17:32:11.317058+00:00','2026-11-29T17:32:11.330614+00:00',201,'prd_1a2285d46bad8ffa35fd02f94',0,NULL,NULL,NULL,NULL);
INSERT INTO "intents" VALUES(18,1,1,'wms.products','platform','product','wms',X'714ABCDADB722F9F91162E7B573B4C9C','P15',X'000000000000000098FA0EDB188296F1',NULL,'{}','PROD_1.csv',17,'create',1,'6ac9d4a30cbd970bcabaf13b65c9ed279fa713dc','POST','/api/v1/catalog/products',X'7B22616374697665223A747275652C2265787465726E616C4964223A22776D733A503135222C226E616D65223A22426F6C74203135222C22736B75223A22503135222C22756E69745072696365223A312E357D',NULL,NULL,'whole',NULL,'delivered',1,'2026-11-29T17:32:10.239961+00:00','2026-11-29T17:32:10.239961+00:00','2026-11-29T17:32:10.309646+00:00',201,'prd_1a2285d42c276cd421760bbc3',0,NULL,NULL,NULL,NULL);
INSERT INTO "intents" VALUES(19,1,1,'wms.products','platform','product','wms',X'87EE1C0397A4928E3F37E15B915268BB','P16',X'00000000000000006B63218A1E66DB5B',NULL,'{}','PROD_1.csv',18,'create',1,'928818c62e72c4d0f332c0495591ff8ffec675f3','POST','/api/v1/catalog/products',X'7B22616374697665223A747275652C2265787465726E616C4964223A22776D733A503136222C226E616D65223A22426F6C74203136222C22736B75223A22503136222C22756E69745072696365223A312E357D',NULL,NULL,'whole',NULL,'delivered',1,'2026-11-29T17:32:10.239961+00:00','2026-11-29T17:32:10.239961+00:00','2026-11-29T17:32:10.309646+00:00',201,'prd_1a2285d42c2705211b4bbcf40',0,NULL,NULL,NULL,NULL);
INSERT INTO "intents" VALUES(20,1,1,'wms.products','platform','product','wms',X'53F0A6DB3FF64B8E5375EA5D4B2F6343','P17',X'00000000000000009D0E12EA9AD2CB5F',NULL,'{}','PROD_1.csv',19,'create',1,'9bfe3123745c805f291bb2a4151db12949380a80','POST','/api/v1/catalog/products',X'7B22616374697665223A747275652C2265787465726E616C4964223A22776D733A503137222C226E616D65223A22426F6C74203137222C22736B75223A22503137222C22756E69745072696365223A312E357D',NULL,NULL,'whole',NULL,'delivered',1,'2026-11-29T17:32:10.239961+00:00','2026-11-29T17:32:10.239961+00:00','2026-11-29T17:32:10.309646+00:00',201,'prd_1a2285d42c29c876ab91a5659',0,NULL,NULL,NULL,NULL);
INSERT INTO "intents" VALUES(21,1,1,'wms.products','platform','product','wms',X'94BF1BBD865A661E9BAC1BD899AC7F02','P18',X'0000000000000000AC129130D8FC4016',NULL,'{}','PROD_1.csv',20,'create',1,'4f18c7bc785cd6935deb68b0c5e7fae909e60941','POST','/api/v1/catalog/products',X'7B22616374697665223A747275652C2265787465726E616C4964223A22776D733A503138222C226E616D65223A22426F6C74203138222C22736B75223A22503138222C22756E69745072696365223A312E357D',NULL,NULL,'whole',NULL,'delivered',2,'2026-11-29T17:32:10.239961+00:00','2026-11-29T17:32:11.317058+00:00','2026-11-29T17:32:11.330614+00:00',201,'prd_1a2285d46baaff41878ebade7',0,NULL,NULL,NULL,NULL);
INSERT INTO "intents" VALUES(22,1,1,'wms.products','platform','product','wms',X'8FDC5B13064E44F84CBCD61493E78294','P19',X'000000000000000075BFAFDAC4B8CA16',NULL,'{}','PROD_1.csv',21,'create',1,'f81e53cfda74eed9a5efe572565d08bac07771b5','POST','/api/v1/catalog/products',X'7B22616374697665223A747275652C2265787465726E616C4964223A22776D733A503139222C226E616D65223A22426F6C74203139222C22736B75223A22503139222C22756E69745072696365223A312E357D',NULL,NULL,'whole',NULL,'delivered',2,'2026-11-29T17:32:10.239961+00:00','2026-11-29T17:32:11.317058+00:00','2026-11-29T17:32:11.330614+00:00',201,'prd_1a2285d46ba5282a7bddd755b',0,NULL,NULL,NULL,NULL);
INSERT INTO "intents" VALUES(23,1,1,'wms.invoices','platform','invoice','wms',X'DF3CE784D856334D65CD25028F98F158','1',X'0000000000000000F3981414256DDFCA',NULL,'{}','INV_1.csv',2,'create',1,'1cbe6d800875db0d1c961c0eb1e381d7f50b2d7b','POST','/api/v1/finance/invoices',X'7B2263757272656E6379223A22455552222C22637573746F6D65724964223A226375735F31613232383564343236306334616638386166626161376336222C226974656D73223A5B7B2270726F647563744964223A227072645F31613232383564343261656635656266336466303034653639222C227175616E74697479223A322C22756E69745072696365223A327D5D7D',NULL,NULL,'whole',NULL,'delivered',1,'2026-11-29T17:32:11.367634+00:00','2026-11-29T17:32:11.367634+00:00','2026-11-29T17:32:11.380660+00:00',201,'inv_1a2285d46ec6b984e6c6ff463',0,NULL,NULL,NULL,NULL);
INSERT INTO "intents" VALUES(24,1,1,'wms.invoices','platform','invoice','wms',X'5FCDDC9C0829C4457324DC1E7E9474F0','3',X'0000000000000000313C4EB871CB14D6',NULL,'{"columns":["INVNO","CUSTNO","SKU","QTY"],"lines":[4],"rows":[["3","C1","P2","100"]]}','INV_1.csv',4,'create',1,'6c0c8f0204885d6411d55c06ad96c74702567855','POST','/api/v1/finance/invoices',X'7B2263757272656E6379223A22455552222C22637573746F6D65724964223A226375735F31613232383564343236306334616638386166626161376336222C226974656D73223A5B7B2270726F647563744964223A227072645F31613232383564343261653434653739356561666439393262222C227175616E74697479223A3130302C22756E69745072696365223A327D5D7D',NULL,NULL,'whole',NULL,'in_doubt',1,'2026-11-29T17:32:11.367634+00:00','2026-11-29T17:32:11.367634+00:00',NULL,NULL,NULL,0,NULL,NULL,NULL,NULL);
INSERT INTO "intents" VALUES(25,1,1,'depot.orders','depot','orders','depot',X'AE3CA2DA179F19931A1E5C9610EADAF3','O1',X'0000000000000000BC3DA5BAB6491FB9',NULL,'{}','ORD_1.csv',2,'create',1,'5d94fa8ac07b0bd72d16d419a899e987c4c7e33a','PUT','/orders',X'7B226F726465725F6964223A224F31222C227175616E74697479223A2231222C22736B75223A225031227D',NULL,NULL,'whole',NULL,'delivered',1,'2026-11-29T17:32:11.407100+00:00','2026-11-29T17:32:11.424995+00:00','2026-11-29T17:32:11.428926+00:00',200,'O1',0,NULL,NULL,1,0);
INSERT INTO "intents" VALUES(26,1,1,'depot.orders','depot','orders','depot',X'769CAB44F982EB6A9D362E723CC19BA2','O2',X'00000000000000006C5699C9B9CE154A',NULL,'{}','ORD_1.csv',3,'create',1,'106faaee99f7ea2b5357da403a12c8085685c1ce','PUT','/orders',X'7B226F726465725F6964223A224F32222C227175616E74697479223A2232222C22736B75223A225032227D',NULL,NULL,'whole',NULL,'delivered',1,'2026-11-29T17:32:11.407100+00:00','2026-11-29T17:32:11.424995+00:00','2026-11-29T17:32:11.428926+00:00',200,'O2',0,NULL,NULL,1,1);
INSERT INTO "intents" VALUES(27,2,2,'wms.customers','platform','customer','wms',X'14C38134BD3CBA520DB0735024AE3545','C2',X'000000000000000075F317E415FD8E11',NULL,'{}','CUST_2.csv',2,'update',2,'821994af215b2d89bdfa35e210ecb2421e6ed35e','PATCH','/api/v1/sales/customers/cus_1a2285d425f40675615ddef14',X'7B226E616D65223A2244726F7373656C227D','{"externalId":"wms:C2","name":"Amsel"}','{"externalId":"wms:C2","name":"Drossel"}','whole','"1"','delivered',1,'2026-11-29T17:32:11.530892+00:00','2026-11-29T17:32:11.530892+00:00','2026-11-29T17:32:11.538608+00:00',200,'cus_1a2285d425f40675615ddef14',0,NULL,NULL,NULL,NULL);
CREATE TABLE jobs (
	name VARCHAR(64) NOT NULL, 
	since TEXT NOT NULL, 
	paused BOOLEAN NOT NULL, 
	done_until TEXT, 
	PRIMARY KEY (name)
);
INSERT INTO "jobs" VALUES('nightly','2026-11-29T17:32:11.703498+00:00',1,NULL);
CREATE TABLE key_stamps (
	target VARCHAR(64) NOT NULL, 
	resource VARCHAR(32) NOT NULL, 
	namespace VARCHAR(128) NOT NULL, 
	stamp BIGINT NOT NULL, 
	PRIMARY KEY (target, resource, namespace)
);
INSERT INTO "key_stamps" VALUES('platform','customer','wms',2373028429272334064);
INSERT INTO "key_stamps" VALUES('platform','product','wms',4064753687451560786);
INSERT INTO "key_stamps" VALUES('platform','invoice','wms',1084531134854928491);
INSERT INTO "key_stamps" VALUES('depot','orders','depot',526395465816003641);
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
INSERT INTO "pending_removals" VALUES('wms.products','delete product of wms on the platform',X'3B77257D395BE609CFFE1B79567F6BB253F0A6DB3FF64B8E5375EA5D4B2F6343612510008D3BE12C54909CAF8013C1E5714ABCDADB722F9F91162E7B573B4C9C83D2F5A66BEFEA6477BCC7E413232C2187EE1C0397A4928E3F37E15B915268BB8BCE931B09242D29CD93B5A3E50D276D8FDC5B13064E44F84CBCD61493E7829492CB61DF796CDE81DDA20856533A399094BF1BBD865A661E9BAC1BD899AC7F02965FA03BB800594EA23BB4AFF887506E9ABD52214E42C69BBF81CA150A982224A39C7BC89864CFB5235E0E33F139E6ACA3B3932B0D006AC18833D9F54EFCD621D2BDA13DB2155C446BABA9C48356AC25F0C04E64A1F600D5843ED9FFBB6A137A','2026-11-29T17:32:11.564880+00:00',NULL);
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
INSERT INTO "runs" VALUES(1,NULL,'2026-11-29','2026-11-29T17:32:10.173451+00:00','2026-11-29T17:32:11.441246+00:00',1265,'degraded',25,0,'{"depot.orders":{"balanced":true,"files":[{"name":"ORD_1.csv","rows":2}],"input":"new","more_files":0,"newest_file":null,"open":{"in_doubt":0,"overdue":0,"pending":0,"rejected":0,"unverified":0,"waiting":0},"parts":{},"records":{"acknowledged":0,"carried_on":0,"carried_over":0,"created":2,"deleted":0,"delivered":2,"dropped":0,"gone":0,"handed_over":0,"ignored":0,"read":2,"rejected":0,"replaced":0,"suppressed":0,"unchanged":0,"updated":0},"rows":{"filtered":{},"in_records":2,"read":2,"rejected":0,"superseded":0}},"wms.customers":{"balanced":true,"files":[{"name":"CUST_1.csv","rows":2}],"input":"new","more_files":0,"newest_file":null,"open":{"in_doubt":0,"overdue":0,"pending":0,"rejected":0,"unverified":0,"waiting":0},"parts":{},"records":{"acknowledged":0,"carried_on":0,"carried_over":0,"created":2,"deleted":0,"delivered":2,"dropped":0,"gone":0,"handed_over":0,"ignored":0,"read":2,"rejected":0,"replaced":0,"suppressed":0,"unchanged":0,"updated":0},"rows":{"filtered":{},"in_records":2,"read":2,"rejected":0,"superseded":0}},"wms.invoices":{"balanced":true,"files":[{"name":"INV_1.csv","rows":4}],"input":"new","more_files":0,"newest_file":null,"open":{"in_doubt":1,"overdue":0,"pending":0,"rejected":1,"unverified":0,"waiting":1},"parts":{},"records":{"acknowledged":0,"carried_on":2,"carried_over":0,"created":1,"deleted":0,"delivered":1,"dropped":0,"gone":0,"handed_over":0,"ignored":0,"read":4,"rejected":1,"replaced":0,"suppressed":0,"unchanged":0,"updated":0},"rows":{"filtered":{},"in_records":4,"read":4,"rejected":0,"superseded":0}},"wms.products":{"balanced":true,"files":[{"name":"PROD_1.csv","rows":20}],"input":"new","more_files":0,"newest_file":null,"open":{"in_doubt":0,"overdue":0,"pending":0,"rejected":0,"unverified":0,"waiting":0},"parts":{},"records":{"acknowledged":0,"carried_on":0,"carried_over":0,"created":20,"deleted":0,"delivered":20,"dropped":0,"gone":0,"handed_over":0,"ignored":0,"read":20,"rejected":0,"replaced":0,"suppressed":0,"unchanged":0,"updated":0},"rows":{"filtered":{},"in_records":20,"read":20,"rejected":0,"superseded":0}}}','{"apis":{},"samples":[[40,1998],[126,1983],[134,1996],[1156,1995],[1205,2000],[1254,1000]],"steps":[["starting",0,4],["sending what the last run left",4,3],["reading wms.customers",7,1],["fetching CUST_1.csv",8,0],["reading wms.customers",8,11],["sending wms.customers",20,20],["remembering wms.customers",40,7],["reading wms.products",48,1],["fetching PROD_1.csv",50,0],["reading wms.products",50,10],["sending wms.products",60,1096],["remembering wms.products",1156,12],["reading wms.invoices",1168,1],["fetching INV_1.csv",1169,0],["reading wms.invoices",1170,14],["sending wms.invoices",1184,21],["remembering wms.invoices",1205,5],["sending what the last run left",1211,2],["reading depot.orders",1214,1],["fetching ORD_1.csv",1215,0],["reading depot.orders",1215,11],["sending depot.orders",1227,27],["remembering depot.orders",1254,10]]}','sync','fee1f5459e33e07b457281513bbd53b5fc46ed7c0074ecfe347aaa3939f8b746',1);
INSERT INTO "runs" VALUES(2,'nightly','2026-11-28','2026-11-29T17:32:11.505339+00:00','2026-11-29T17:32:11.619758+00:00',112,'incomplete',1,0,'{"depot.orders":{"balanced":true,"files":[],"input":"none","more_files":0,"newest_file":{"modified_at":"2026-05-28T20:26:40+00:00","name":"ORD_1.csv"},"open":{"in_doubt":0,"overdue":0,"pending":0,"rejected":0,"unverified":0,"waiting":0},"parts":{},"records":{"acknowledged":0,"carried_on":0,"carried_over":0,"created":0,"deleted":0,"delivered":0,"dropped":0,"gone":0,"handed_over":0,"ignored":0,"read":0,"rejected":0,"replaced":0,"suppressed":0,"unchanged":0,"updated":0},"rows":{"filtered":{},"in_records":0,"read":0,"rejected":0,"superseded":0}},"wms.customers":{"balanced":true,"files":[{"name":"CUST_2.csv","rows":1}],"input":"new","more_files":0,"newest_file":{"modified_at":"2026-05-28T20:26:40+00:00","name":"CUST_1.csv"},"open":{"in_doubt":0,"overdue":0,"pending":0,"rejected":0,"unverified":0,"waiting":0},"parts":{},"records":{"acknowledged":0,"carried_on":0,"carried_over":0,"created":0,"deleted":0,"delivered":1,"dropped":0,"gone":0,"handed_over":0,"ignored":0,"read":1,"rejected":0,"replaced":0,"suppressed":0,"unchanged":0,"updated":1},"rows":{"filtered":{},"in_records":1,"read":1,"rejected":0,"superseded":0}},"wms.invoices":{"balanced":true,"files":[{"name":"INV_2.csv","rows":1}],"input":"new","more_files":0,"newest_file":{"modified_at":"2026-05-28T20:26:40+00:00","name":"INV_1.csv"},"open":{"in_doubt":1,"overdue":0,"pending":0,"rejected":2,"unverified":0,"waiting":1},"parts":{},"records":{"acknowledged":0,"carried_on":2,"carried_over":2,"created":0,"deleted":0,"delivered":0,"dropped":0,"gone":0,"handed_over":0,"ignored":0,"read":1,"rejected":1,"replaced":0,"suppressed":0,"unchanged":0,"updated":0},"rows":{"filtered":{},"in_records":1,"read":1,"rejected":0,"superseded":0}},"wms.products":{"balanced":true,"files":[{"name":"PROD_2.csv","rows":4}],"input":"new","more_files":0,"newest_file":{"modified_at":"2026-05-28T20:26:40+00:00","name":"PROD_1.csv"},"open":{"in_doubt":0,"overdue":0,"pending":0,"rejected":0,"unverified":0,"waiting":0},"parts":{},"records":{"acknowledged":0,"carried_on":0,"carried_over":0,"created":0,"deleted":0,"delivered":0,"dropped":0,"gone":16,"handed_over":0,"ignored":16,"read":4,"rejected":0,"replaced":0,"suppressed":0,"unchanged":4,"updated":0},"rows":{"filtered":{},"in_records":4,"read":4,"rejected":0,"superseded":0}}}','{"apis":{},"samples":[[5,2000],[31,1999]],"steps":[["starting",0,5],["sending what the last run left",5,3],["reading wms.customers",8,1],["fetching CUST_2.csv",9,0],["reading wms.customers",9,11],["sending wms.customers",21,10],["remembering wms.customers",31,8],["reading wms.products",40,1],["fetching PROD_2.csv",41,0],["reading wms.products",41,22],["sending wms.products",64,0],["remembering wms.products",64,6],["reading wms.invoices",70,1],["fetching INV_2.csv",71,0],["reading wms.invoices",71,15],["sending wms.invoices",86,4],["remembering wms.invoices",91,4],["sending what the last run left",95,3],["reading depot.orders",98,8],["sending depot.orders",107,0],["remembering depot.orders",107,4]]}',NULL,'fee1f5459e33e07b457281513bbd53b5fc46ed7c0074ecfe347aaa3939f8b746',2);
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
INSERT INTO "scheduled_runs" VALUES('nightly','2026-11-28T02:00:00.000000+00:00','2026-11-28','incomplete',1,2,'2026-11-29T17:32:11.503969+00:00','2026-11-29T17:32:11.619758+00:00',NULL,2);
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
INSERT INTO "snapshots" VALUES('wms.products','b69ccc369f3051d66c580ba2c2822d0d7b8923cc60c5d42dabdb8f67ad48599c',20,20,'2026-11-29T17:32:11.334621+00:00');
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
INSERT INTO "taken_files" VALUES('wms.customers','a94fb20bbdc21c02940875aa6618b9f00a02aace1f253731d769b1805aa670d0','9e446447aa83f5c3f90a76758e36473d','CUST_1.csv',30,'2026-05-28T20:26:40.000000+00:00','2026-05-28T20:26:40+00:00','done','2026-11-29T17:32:10.196379+00:00',NULL);
INSERT INTO "taken_files" VALUES('wms.products','b69ccc369f3051d66c580ba2c2822d0d7b8923cc60c5d42dabdb8f67ad48599c','1beaafd000b060c1b404da2ba47088f3','PROD_1.csv',342,'2026-05-28T20:26:40.000000+00:00','2026-05-28T20:26:40+00:00','done','2026-11-29T17:32:10.235933+00:00',NULL);
INSERT INTO "taken_files" VALUES('wms.invoices','1bed47a7f82ae90dc934fc744fe01c16feeb010685db4857f444d6c954d6cae4','e7e0e377eef6cf44dfffddad05b79e66','INV_1.csv',63,'2026-05-28T20:26:40.000000+00:00','2026-05-28T20:26:40+00:00','done','2026-11-29T17:32:11.359804+00:00',NULL);
INSERT INTO "taken_files" VALUES('depot.orders','70308febd32825566f1595c43fc1d1f8d9e9eca9954933dd2ae7aaf3ea154a65','c5f1f30b706fa28f256fbd830ec2acde','ORD_1.csv',30,'2026-05-28T20:26:40.000000+00:00','2026-05-28T20:26:40+00:00','done','2026-11-29T17:32:11.403097+00:00',NULL);
INSERT INTO "taken_files" VALUES('wms.customers','293f36d07ef5ccffb85220fdc56dcd89889ca8763ad38db281f5e8421209716a','9e446447aa83f5c3f90a76758e36473d','CUST_2.csv',23,'2026-05-28T20:26:40.000000+00:00','2026-05-28T20:26:40+00:00','done','2026-11-29T17:32:11.528423+00:00',NULL);
INSERT INTO "taken_files" VALUES('wms.products','acc0bfc9e656e5bc67790c81a7d4da920f0206b29da56fd2768b60888a9cc677','1beaafd000b060c1b404da2ba47088f3','PROD_2.csv',81,'2026-05-28T20:26:40.000000+00:00','2026-05-28T20:26:40+00:00','accepted','2026-11-29T17:32:11.570232+00:00',NULL);
INSERT INTO "taken_files" VALUES('wms.invoices','a355f6e5d7a16ac958f99174c6d74d4ecf46f691df26a27486249fbcc285e686','e7e0e377eef6cf44dfffddad05b79e66','INV_2.csv',31,'2026-05-28T20:26:40.000000+00:00','2026-05-28T20:26:40+00:00','done','2026-11-29T17:32:11.594062+00:00',NULL);
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
INSERT INTO "waiting_records" VALUES('wms.invoices',X'475982AFBCAA3F3CE28911027FCF803F','4',X'00000000000000004C8DC907985C5B48',NULL,'{"columns":["INVNO","CUSTNO","SKU","QTY"],"lines":[5],"rows":[["4","C9","P1","1"]]}','INV_1.csv',5,'[{"key":"C9","namespace":"wms","resource":"customer"}]',1,'2026-11-29T17:32:11.363638+00:00','3b97781085a6f7ed3077589783a448b0fdd1bfc8584d92d63a825d12d0259fa0');
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
CREATE INDEX ix_runs_business_date ON runs (business_date, job, status);
CREATE INDEX ix_webhooks_received_at ON webhooks (received_at);
CREATE INDEX ix_hints_stream_due_at ON hints (stream, due_at);
CREATE INDEX ix_audit_log_at ON audit_log (at, id);
CREATE INDEX ix_audit_log_action ON audit_log (action, at, id);
CREATE INDEX ix_audit_log_subject ON audit_log (subject, at, id);
CREATE INDEX ix_audit_log_person ON audit_log (person, at, id);
CREATE INDEX ix_bindings_unverified ON bindings (target, resource, namespace, key_hash) WHERE unverified IS 1;
CREATE INDEX ix_bindings_target_id ON bindings (target_id);
CREATE INDEX ix_bindings_run ON bindings (run_id);
CREATE INDEX ix_intents_place ON intents (substr(source, 1, 200), line);
CREATE INDEX ix_intents_run ON intents (run_id);
CREATE INDEX ix_intents_batch ON intents (batch_id);
CREATE INDEX ix_intents_target_id ON intents (target_id);
CREATE INDEX ix_intents_key ON intents (target, resource, namespace, key_hash);
CREATE INDEX ix_intents_status ON intents (status);
CREATE INDEX ix_batches_target_name ON batches (target, name);
CREATE INDEX ix_batches_target_number ON batches (target, number);
CREATE INDEX ix_dead_letters_place ON dead_letters (substr(source, 1, 200), line);
CREATE INDEX ix_dead_letters_listed ON dead_letters (status, stream, code, refused_at, key_hash, first_run_id, run_id);
CREATE INDEX ix_waiting_records_place ON waiting_records (substr(source, 1, 200), line);
COMMIT;
