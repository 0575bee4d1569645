package migrations

import (
	"io/fs"
	"regexp"
	"strings"
	"testing"
)

// breaks are the changes that the previous release does not survive (infra/adr/0024): a thing that it reads or writes is gone, has another name or
// type, or wants more than it gives. A statement that needs one of these says why the previous release still runs, in a comment "-- additive: ..." in front of it.
var breaks = []struct {
	what string
	re   *regexp.Regexp
}{
	{"removes a table, view or type", regexp.MustCompile(`(?i)\bDROP\s+(TABLE|VIEW|MATERIALIZED\s+VIEW|TYPE|SCHEMA|SEQUENCE|FUNCTION)\b`)},
	{"removes a column", regexp.MustCompile(`(?i)\bDROP\s+(COLUMN\b|IF\s+EXISTS\b|[a-z_"]+\s*(,|$))`)},
	{"removes a trigger", regexp.MustCompile(`(?i)\bDROP\s+TRIGGER\b`)},
	{"renames", regexp.MustCompile(`(?i)\bRENAME\b`)},
	{"changes a type", regexp.MustCompile(`(?i)\bALTER\s+(COLUMN\s+)?[a-z_0-9"]+\s+(SET\s+DATA\s+)?TYPE\b`)},
	{"wants a value that the previous release does not give", regexp.MustCompile(`(?i)\bSET\s+NOT\s+NULL\b`)},
	{"takes a default away", regexp.MustCompile(`(?i)\bDROP\s+DEFAULT\b`)},
	{"refuses rows that were good", regexp.MustCompile(`(?i)\bALTER\s+TABLE\b[^;]*\bADD\s+(CONSTRAINT|CHECK|UNIQUE|EXCLUDE|FOREIGN|PRIMARY)\b`)},
	{"empties a table", regexp.MustCompile(`(?i)(^|;)\s*TRUNCATE\b`)},
}

// added finds columns that are added to a table that exists; wanted is one of them without a value of its own.
var added = regexp.MustCompile(`(?i)\bADD\s+(COLUMN\s+)?(IF\s+NOT\s+EXISTS\s+)?[a-z_0-9"]+\s+[^,;]*\bNOT\s+NULL\b[^,;]*`)

var (
	comment  = regexp.MustCompile(`--[^\n]*`)
	function = regexp.MustCompile(`(?s)\$\$.*?\$\$`)
	text     = regexp.MustCompile(`'[^']*'`)
	marked   = regexp.MustCompile(`(?m)^-- additive: \S.{15,}$`)
)

// problems returns why the previous release would not run on a migration. A mark excuses the statement that follows it.
func problems(sql string) (out []string) {
	for _, statement := range statements(sql) {
		if marked.MatchString(statement) {
			continue
		}
		s := strings.Join(strings.Fields(text.ReplaceAllString(comment.ReplaceAllString(statement, ""), "''")), " ")
		for _, b := range breaks {
			if b.re.MatchString(s) {
				out = append(out, b.what+": "+short(s))
			}
		}
		if strings.HasPrefix(strings.ToUpper(s), "ALTER TABLE") {
			for _, c := range added.FindAllString(s, -1) {
				if u := strings.ToUpper(c); !strings.Contains(u, "DEFAULT") && !strings.Contains(u, "GENERATED") {
					out = append(out, "adds a column that wants a value: "+short(c))
				}
			}
		}
	}
	return out
}

func short(s string) string { return s[:min(len(s), 100)] }

// statements splits a file; a function's body is not looked at, because it replaces no table.
func statements(sql string) []string {
	return strings.Split(function.ReplaceAllString(sql, "''"), ";")
}

// accepted are migrations from before the rule; each was looked at, and runs beside its previous release.
var accepted = map[string]string{
	"0014_certs_standing.sql":  "a value that may be absent is one more that the previous release does not write",
	"0025_audit_chain.sql":     "a trigger fills the new columns",
	"0108_problem_settled.sql": "another trigger takes the place of the one that goes",
}

// TestMigrationsAreAdditive: kenneld of the previous release runs on the tables of this one, so that two can run side by side while one is replaced.
func TestMigrationsAreAdditive(t *testing.T) {
	files, err := fs.Glob(FS, "*.sql")
	if err != nil || len(files) < 30 {
		t.Fatalf("%d migrations, %v", len(files), err)
	}
	for _, f := range files {
		b, err := fs.ReadFile(FS, f)
		if err != nil {
			t.Fatal(err)
		}
		if found := problems(string(b)); len(found) > 0 && accepted[f] == "" {
			t.Errorf("%s: the previous release does not run on it; if it does, say why in a line \"-- additive: ...\" before the statement:\n%s", f, strings.Join(found, "\n"))
		}
	}
}

// TestAdditiveRule: what the rule takes and what it does not.
func TestAdditiveRule(t *testing.T) {
	for sql, says := range map[string]string{
		"DROP TABLE x;":                                        "removes a table",
		"ALTER TABLE x DROP COLUMN y;":                         "removes a column",
		"ALTER TABLE x DROP y;":                                "removes a column",
		"ALTER TABLE x RENAME COLUMN y TO z;":                  "renames",
		"ALTER TABLE x\n  RENAME TO z;":                        "renames",
		"ALTER TABLE x ALTER COLUMN y TYPE bigint;":            "changes a type",
		"ALTER TABLE x ALTER y SET DATA TYPE bigint;":          "changes a type",
		"ALTER TABLE x ALTER COLUMN y SET NOT NULL;":           "wants a value",
		"ALTER TABLE x ALTER COLUMN y DROP DEFAULT;":           "takes a default away",
		"ALTER TABLE x ADD COLUMN y text NOT NULL;":            "adds a column that wants",
		"ALTER TABLE x ADD COLUMN a int, ADD y text NOT NULL;": "adds a column that wants",
		"ALTER TABLE x ADD CONSTRAINT y CHECK (z > 0);":        "refuses rows",
		"TRUNCATE x;":          "empties",
		"DROP TRIGGER y ON x;": "removes a trigger",
		"DROP FUNCTION y;":     "removes a table",
		"-- additive: nobody reads it since two releases\nDROP TABLE x; DROP TABLE y;": "removes a table",

		"-- additive: nobody reads it since two releases\nDROP TABLE x;": "",
		"CREATE TABLE x (y text NOT NULL, CHECK (y <> ''));":             "",
		"ALTER TABLE x ADD COLUMN y text NOT NULL DEFAULT '';":           "",
		"ALTER TABLE x ADD COLUMN y text, ALTER COLUMN z DROP NOT NULL;": "",
		"-- DROP TABLE x;\nCREATE INDEX y ON x (z);":                     "",
		"DROP INDEX y;": "",
		"CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN DROP TABLE t; END $$;": "",
		"INSERT INTO x VALUES ('DROP TABLE y');":                                                 "",
		"CREATE TRIGGER t BEFORE UPDATE OR TRUNCATE ON x EXECUTE FUNCTION f();":                  "",
	} {
		got := strings.Join(problems(sql), "; ")
		if says == "" && got != "" || says != "" && !strings.Contains(got, says) {
			t.Errorf("%s: %q, want %q", sql, got, says)
		}
	}
}
