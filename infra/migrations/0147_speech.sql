-- +goose Up
-- What became of requests that people spoke to robots (speech/session). A robot leads to its owner, so the words are in a table without robots
-- (VEC-NLP-07).
CREATE TABLE speech_session (
	thing      text        NOT NULL,
	at         timestamptz NOT NULL,
	session    text        NOT NULL,
	kind       text        NOT NULL,
	language   text        NOT NULL,
	firmware   text        NOT NULL,
	encoding   text        NOT NULL,
	recognizer text        NOT NULL,
	intent     text        NOT NULL, -- as the cloud names it; '': none
	confidence real        NOT NULL,
	failed     text        NOT NULL, -- the step; '': none
	why        text        NOT NULL,
	audio_ms   integer     NOT NULL,
	took_ms    integer     NOT NULL,
	skip_das   boolean     NOT NULL,
	PRIMARY KEY (thing, at, session)
);
CREATE INDEX speech_session_at ON speech_session (at DESC);
CREATE INDEX speech_session_failed ON speech_session (at DESC) WHERE failed <> '';

CREATE TABLE speech_day (
	day      date   NOT NULL,
	firmware text   NOT NULL,
	language text   NOT NULL,
	failed   text   NOT NULL,
	sessions bigint NOT NULL,
	took_ms  bigint NOT NULL, -- of all together
	PRIMARY KEY (day, firmware, language, failed)
);

CREATE TABLE speech_words (
	day      date   NOT NULL,
	firmware text   NOT NULL,
	language text   NOT NULL,
	intent   text   NOT NULL, -- '': not understood
	words    text   NOT NULL,
	times    bigint NOT NULL,
	PRIMARY KEY (day, firmware, language, intent, words)
);

-- Robots whose owners allow that what they hear is kept, until they forbid it or the robot has another owner.
CREATE TABLE speech_audio (
	thing text        PRIMARY KEY,
	owner text        NOT NULL, -- account
	since timestamptz NOT NULL
);
