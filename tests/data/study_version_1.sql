BEGIN TRANSACTION;
CREATE TABLE alembic_version (
	version_num VARCHAR(32) NOT NULL, 
	CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num)
);
INSERT INTO "alembic_version" VALUES('v3.2.0.a');
CREATE TABLE studies (
	study_id INTEGER NOT NULL, 
	study_name VARCHAR(512) NOT NULL, 
	PRIMARY KEY (study_id)
);
INSERT INTO "studies" VALUES(1,'old');
CREATE TABLE study_directions (
	study_direction_id INTEGER NOT NULL, 
	direction VARCHAR(8) NOT NULL, 
	study_id INTEGER NOT NULL, 
	objective INTEGER NOT NULL, 
	PRIMARY KEY (study_direction_id), 
	UNIQUE (study_id, objective), 
	FOREIGN KEY(study_id) REFERENCES studies (study_id)
);
INSERT INTO "study_directions" VALUES(1,'MINIMIZE',1,0);
CREATE TABLE study_system_attributes (
	study_system_attribute_id INTEGER NOT NULL, 
	study_id INTEGER, 
	"key" VARCHAR(512), 
	value_json TEXT, 
	PRIMARY KEY (study_system_attribute_id), 
	UNIQUE (study_id, "key"), 
	FOREIGN KEY(study_id) REFERENCES studies (study_id)
);
CREATE TABLE study_user_attributes (
	study_user_attribute_id INTEGER NOT NULL, 
	study_id INTEGER, 
	"key" VARCHAR(512), 
	value_json TEXT, 
	PRIMARY KEY (study_user_attribute_id), 
	UNIQUE (study_id, "key"), 
	FOREIGN KEY(study_id) REFERENCES studies (study_id)
);
INSERT INTO "study_user_attributes" VALUES(1,1,'sumbo:study','{"version": 1, "space": {"params": [{"name": "a", "type": "float", "low": 0.0, "high": 2.0, "log": false}, {"name": "n", "type": "int", "low": 1, "high": 9, "log": false}, {"name": "c", "type": "categorical", "choices": ["plain", "two words", "$(touch hacked); `x` ''q'' \"d\" * & | > out"]}]}, "seed": 1}');
CREATE TABLE trial_heartbeats (
	trial_heartbeat_id INTEGER NOT NULL, 
	trial_id INTEGER NOT NULL, 
	heartbeat DATETIME NOT NULL, 
	PRIMARY KEY (trial_heartbeat_id), 
	UNIQUE (trial_id), 
	FOREIGN KEY(trial_id) REFERENCES trials (trial_id)
);
CREATE TABLE trial_intermediate_values (
	trial_intermediate_value_id INTEGER NOT NULL, 
	trial_id INTEGER NOT NULL, 
	step INTEGER NOT NULL, 
	intermediate_value FLOAT, 
	intermediate_value_type VARCHAR(7) NOT NULL, 
	PRIMARY KEY (trial_intermediate_value_id), 
	UNIQUE (trial_id, step), 
	FOREIGN KEY(trial_id) REFERENCES trials (trial_id)
);
CREATE TABLE trial_params (
	param_id INTEGER NOT NULL, 
	trial_id INTEGER, 
	param_name VARCHAR(512), 
	param_value FLOAT, 
	distribution_json TEXT, 
	PRIMARY KEY (param_id), 
	UNIQUE (trial_id, param_name), 
	FOREIGN KEY(trial_id) REFERENCES trials (trial_id)
);
INSERT INTO "trial_params" VALUES(1,1,'a',1.39806909487367136968e+00,'{"name": "FloatDistribution", "attributes": {"step": null, "low": 0.0, "high": 2.0, "log": false}}');
INSERT INTO "trial_params" VALUES(2,1,'n',6.0,'{"name": "IntDistribution", "attributes": {"log": false, "step": 1, "low": 1, "high": 9}}');
INSERT INTO "trial_params" VALUES(3,1,'c',0.0,'{"name": "CategoricalDistribution", "attributes": {"choices": ["plain", "two words", "$(touch hacked); `x` ''q'' \"d\" * & | > out"]}}');
INSERT INTO "trial_params" VALUES(4,2,'a',9.51529037179981163063e-01,'{"name": "FloatDistribution", "attributes": {"step": null, "low": 0.0, "high": 2.0, "log": false}}');
INSERT INTO "trial_params" VALUES(5,2,'n',3.0,'{"name": "IntDistribution", "attributes": {"log": false, "step": 1, "low": 1, "high": 9}}');
INSERT INTO "trial_params" VALUES(6,2,'c',1.0,'{"name": "CategoricalDistribution", "attributes": {"choices": ["plain", "two words", "$(touch hacked); `x` ''q'' \"d\" * & | > out"]}}');
INSERT INTO "trial_params" VALUES(7,3,'a',0.0,'{"name": "FloatDistribution", "attributes": {"step": null, "low": 0.0, "high": 2.0, "log": false}}');
INSERT INTO "trial_params" VALUES(8,3,'n',9.0,'{"name": "IntDistribution", "attributes": {"log": false, "step": 1, "low": 1, "high": 9}}');
INSERT INTO "trial_params" VALUES(9,3,'c',2.0,'{"name": "CategoricalDistribution", "attributes": {"choices": ["plain", "two words", "$(touch hacked); `x` ''q'' \"d\" * & | > out"]}}');
INSERT INTO "trial_params" VALUES(10,4,'a',2.0,'{"name": "FloatDistribution", "attributes": {"step": null, "low": 0.0, "high": 2.0, "log": false}}');
INSERT INTO "trial_params" VALUES(11,4,'n',7.0,'{"name": "IntDistribution", "attributes": {"log": false, "step": 1, "low": 1, "high": 9}}');
INSERT INTO "trial_params" VALUES(12,4,'c',0.0,'{"name": "CategoricalDistribution", "attributes": {"choices": ["plain", "two words", "$(touch hacked); `x` ''q'' \"d\" * & | > out"]}}');
CREATE TABLE trial_system_attributes (
	trial_system_attribute_id INTEGER NOT NULL, 
	trial_id INTEGER, 
	"key" VARCHAR(512), 
	value_json TEXT, 
	PRIMARY KEY (trial_system_attribute_id), 
	UNIQUE (trial_id, "key"), 
	FOREIGN KEY(trial_id) REFERENCES trials (trial_id)
);
INSERT INTO "trial_system_attributes" VALUES(1,1,'sumbo:state:0','[1, "{\"signature\": \"d03816a191fb6c94\", \"told\": 0, \"state\": {\"group\": 0, \"inner\": {}}}"]');
INSERT INTO "trial_system_attributes" VALUES(2,1,'sumbo:point:0','[1, "{\"signature\": \"edec2ee7575020a6\", \"x\": [1.3980690948736714, 0.0, 5.0], \"by\": \"d03816a191fb6c94\", \"note\": 0, \"seconds\": 0.0328, \"basis\": {\"told\": \"\", \"running\": \"\", \"state\": null, \"moves\": []}, \"earlier\": []}"]');
INSERT INTO "trial_system_attributes" VALUES(3,2,'sumbo:point:0','[1, "{\"signature\": \"edec2ee7575020a6\", \"x\": [0.9515290371799812, 1.0, 2.0], \"by\": \"d03816a191fb6c94\", \"note\": 0, \"seconds\": 0.0032, \"basis\": {\"told\": \"0\", \"running\": \"\", \"state\": 0, \"moves\": []}, \"earlier\": []}"]');
INSERT INTO "trial_system_attributes" VALUES(4,3,'sumbo:state:0','[1, "{\"signature\": \"d03816a191fb6c94\", \"told\": 2, \"state\": {\"group\": 0, \"inner\": {\"learned_at\": 2, \"chosen_at\": 0, \"groups\": [[0, 1, 2]], \"lengthscales\": [1.0697488041966166, 1.1035689153023978, 1.0720259892284605], \"scales\": [0.36825792159778226], \"noise_variance\": 9.95896654802447e-05}}}"]');
INSERT INTO "trial_system_attributes" VALUES(5,3,'sumbo:point:0','[1, "{\"signature\": \"edec2ee7575020a6\", \"x\": [0.0, 2.0, 8.0], \"by\": \"d03816a191fb6c94\", \"note\": 0, \"seconds\": 0.847, \"basis\": {\"told\": \"0-1\", \"running\": \"\", \"state\": 0, \"moves\": []}, \"earlier\": []}"]');
INSERT INTO "trial_system_attributes" VALUES(6,4,'sumbo:point:0','[1, "{\"signature\": \"edec2ee7575020a6\", \"x\": [2.0, 0.0, 6.0], \"by\": \"d03816a191fb6c94\", \"note\": 0, \"seconds\": 0.0206, \"basis\": {\"told\": \"0-2\", \"running\": \"\", \"state\": 2, \"moves\": []}, \"earlier\": []}"]');
CREATE TABLE trial_user_attributes (
	trial_user_attribute_id INTEGER NOT NULL, 
	trial_id INTEGER, 
	"key" VARCHAR(512), 
	value_json TEXT, 
	PRIMARY KEY (trial_user_attribute_id), 
	UNIQUE (trial_id, "key"), 
	FOREIGN KEY(trial_id) REFERENCES trials (trial_id)
);
INSERT INTO "trial_user_attributes" VALUES(1,1,'sumbo:owner','{"by": "hand", "host": "lab", "place": "a boot long ago", "pid": 4321, "started": "123"}');
INSERT INTO "trial_user_attributes" VALUES(2,2,'sumbo:owner','{"by": "hand", "host": "lab", "place": "a boot long ago", "pid": 4321, "started": "123"}');
INSERT INTO "trial_user_attributes" VALUES(3,2,'sumbo:reason','"failed, as told by hand"');
INSERT INTO "trial_user_attributes" VALUES(4,3,'sumbo:owner','{"by": "hand", "host": "lab", "place": "a boot long ago", "pid": 4321, "started": "123"}');
INSERT INTO "trial_user_attributes" VALUES(5,4,'sumbo:owner','{"by": "hand", "host": "lab", "place": "a boot long ago", "pid": 4321, "started": "123"}');
INSERT INTO "trial_user_attributes" VALUES(6,3,'sumbo:replaced','[2.5]');
INSERT INTO "trial_user_attributes" VALUES(7,3,'sumbo:reason','null');
CREATE TABLE trial_values (
	trial_value_id INTEGER NOT NULL, 
	trial_id INTEGER NOT NULL, 
	objective INTEGER NOT NULL, 
	value FLOAT, 
	value_type VARCHAR(7) NOT NULL, 
	PRIMARY KEY (trial_value_id), 
	UNIQUE (trial_id, objective), 
	FOREIGN KEY(trial_id) REFERENCES trials (trial_id)
);
INSERT INTO "trial_values" VALUES(1,1,0,0.5,'FINITE');
INSERT INTO "trial_values" VALUES(2,3,0,2.25,'FINITE');
CREATE TABLE trials (
	trial_id INTEGER NOT NULL, 
	number INTEGER, 
	study_id INTEGER, 
	state VARCHAR(8) NOT NULL, 
	datetime_start DATETIME, 
	datetime_complete DATETIME, 
	PRIMARY KEY (trial_id), 
	FOREIGN KEY(study_id) REFERENCES studies (study_id)
);
INSERT INTO "trials" VALUES(1,0,1,'COMPLETE','2026-11-16 06:20:49.977744','2026-11-16 06:20:50.257963');
INSERT INTO "trials" VALUES(2,1,1,'FAIL','2026-11-16 06:20:50.489728','2026-11-16 06:20:50.689504');
INSERT INTO "trials" VALUES(3,2,1,'COMPLETE','2026-11-16 06:20:50.817875','2026-11-16 06:20:51.894272');
INSERT INTO "trials" VALUES(4,3,1,'RUNNING','2026-11-16 06:20:52.061658',NULL);
CREATE TABLE version_info (
	version_info_id INTEGER NOT NULL, 
	schema_version INTEGER, 
	library_version VARCHAR(256), 
	PRIMARY KEY (version_info_id), 
	CHECK (version_info_id=1)
);
INSERT INTO "version_info" VALUES(1,12,'5.0.0');
CREATE UNIQUE INDEX ix_studies_study_name ON studies (study_name);
CREATE INDEX ix_trials_study_id ON trials (study_id);
COMMIT;
